"""Text-to-image models judged by what raters see in their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from host_tools.memo.archive import Archive, Picture
from host_tools.memo.classes import CLASSES
from host_tools.memo.degree import spearman
from host_tools.memo.settings import StatisticsSettings
from host_tools.memo.shares import Shares, class_contrast, count_shares, quintiles
from host_tools.metrics.estimates import Estimate
from host_tools.metrics.statistics import mean_of_defined

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
OUTCOMES = (*CLASSES, "rejected")


@dataclass(frozen=True)
class Generation:
    """How the generators did.

    Attributes
    ----------
    models : list of str
    counts : list of dict
        Per model: asked, refused, rejected, kept, judged (kept and with a class).
    by_model, by_style, by_model_and_style : Shares
        What raters saw by what was asked for; `by_style` is per prompt style over all models.
    quality, degree : float64 (models, 6)
        Mean MOS per model and prompt class; nan without pictures.
    quality_accuracy : float
        Rank correlation over the models of mean quality with G_acc.
    """

    models: list[str]
    counts: list[dict[str, Any]]
    by_model: Shares
    by_style: Shares
    by_model_and_style: Shares
    quality: Floats
    degree: Floats
    mean_quality: Floats
    quality_accuracy: float
    quintiles: dict[str, list[dict[str, float]]]
    contrasts: dict[str, Estimate]
    n_without_class: int


def judge_generation(
    archive: Archive, statistics: StatisticsSettings, *, rejected: Literal["errors", "left-out"] = "errors"
) -> Generation:
    """Judge all generators of an archive.

    A refused prompt leaves the denominator of G_acc. A picture that review rejected is an error, in a column of its
    own, or is left out. A kept picture on which no rater named a class is left out and counted.
    """
    pictures = [p for p in archive.pictures if p.status != "refused"]
    models = sorted({p.model for p in archive.pictures})
    styles = sorted({p.style or "(unknown)" for p in pictures})
    prompt = np.array([p.emotion for p in pictures], np.int64)
    seen = _seen(archive, pictures, rejected)
    model = np.array([models.index(p.model) for p in pictures], np.int64)
    style = np.array([styles.index(p.style or "(unknown)") for p in pictures], np.int64)
    clusters = [p.prompt or p.image for p in pictures]
    draws = {"clusters": clusters, "n_resamples": statistics.n_resamples, "seed": statistics.seed}
    by_model = count_shares((models, model), prompt, (OUTCOMES, seen), **draws)  # type: ignore[arg-type]
    both_names = [f"{m}, {s}" for m in models for s in styles]
    by_both = count_shares((both_names, model * len(styles) + style), prompt, (OUTCOMES, seen), **draws)  # type: ignore[arg-type]
    by_style = count_shares((styles, style), prompt, (OUTCOMES, seen), **draws)  # type: ignore[arg-type]
    kept = np.array([p.status == "kept" for p in pictures], bool)
    truth = archive.truth
    quality, degree = (
        _means(values, model[kept], prompt[kept], len(models)) for values in (truth.quality, truth.degree)
    )
    mean_quality = np.array([mean_of_defined(truth.quality[model[kept] == m]) for m in range(len(models))])
    accuracy = np.array([by_model.micro(m).value for m in range(len(models))])
    both = np.isfinite(mean_quality) & np.isfinite(accuracy)
    judged = seen[kept] >= 0
    right = seen[kept] == prompt[kept]
    resampling = {"n_resamples": statistics.n_resamples, "seed": statistics.seed}
    return Generation(
        models,
        [_counts(archive, m, seen, pictures) for m in models],
        by_model,
        by_style,
        by_both,
        quality,
        degree,
        mean_quality,
        spearman(mean_quality[both], accuracy[both]) if both.sum() > 1 else float("nan"),
        {n: quintiles(right[judged], v[judged]) for n, v in (("quality", truth.quality), ("degree", truth.degree))},
        {
            n: class_contrast(v, prompt[kept], **resampling)
            for n, v in (("quality", truth.quality), ("degree", truth.degree))
        },
        int((~judged).sum()),
    )


def _seen(archive: Archive, pictures: Sequence[Picture], rejected: str) -> Ints:
    """Return what came out of each picture: the class that raters saw, 6 for rejected, -1 for neither."""
    classes = iter(archive.truth.category)
    other = len(CLASSES) if rejected == "errors" else -1
    return np.array([next(classes) if p.status == "kept" else other for p in pictures], np.int64)


def _counts(archive: Archive, model: str, seen: Ints, pictures: Sequence[Picture]) -> dict[str, Any]:
    own = [p.status for p in archive.pictures if p.model == model]
    judged = sum(p.model == model and p.status == "kept" and s >= 0 for p, s in zip(pictures, seen, strict=True))
    asked = max(archive.integrity["asked_per_cell"] * len(CLASSES), len(own))
    return {
        "model": model,
        "asked": asked,
        "refused": own.count("refused"),
        "rejected": own.count("rejected"),
        "unexplained": asked - len(own),
        "kept": own.count("kept"),
        "judged": int(judged),
    }


def _means(values: Floats, model: Ints, prompt: Ints, n_models: int) -> Floats:
    means = np.full((n_models, len(CLASSES)), np.nan)
    for m in range(n_models):
        for k in range(len(CLASSES)):
            means[m, k] = mean_of_defined(values[(model == m) & (prompt == k)])
    return means
