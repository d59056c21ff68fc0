"""Multimodal models judged by what they say about the pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools.memo.classes import CLASSES
from host_tools.memo.degree import DegreeScores, degree_scores
from host_tools.memo.parser import parse_category, parse_degree
from host_tools.memo.remarks import Remarks
from host_tools.memo.settings import StatisticsSettings
from host_tools.memo.shares import Shares, count_shares, quintiles
from host_tools.memo.truth import Truth
from host_tools.tables import read_table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: The six classes, an emotion that is none of them, and an answer that says no emotion or can't be read.
OUTCOMES = (*CLASSES, "other", "unparsed")
OTHER, UNPARSED = len(CLASSES), len(CLASSES) + 1


@dataclass(frozen=True)
class Answers:
    """What one model said: per picture an index into `OUTCOMES` (-1 = not asked) and a degree (nan = none)."""

    name: str
    outcome: Ints
    degree: Floats
    statuses: dict[str, int] = field(default_factory=dict)
    degree_statuses: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    remarks: Remarks = field(default_factory=Remarks)
    access: str = "open"


@dataclass(frozen=True)
class Understanding:
    """How the models did: shares per model; degrees on the pictures each got right, and on those that all got right."""

    models: list[Answers]
    shares: Shares
    degree: list[DegreeScores]
    common: list[DegreeScores]
    n_common: int
    quintiles: list[list[dict[str, float]]]


def read_answers(path: Path, name: str, images: Sequence[str], *, access: str = "open") -> Answers:
    """Read a table of answers: image, category, and degree if it was asked; both as the model gave them."""
    table = read_table(path)
    degrees = table.text("degree") if "degree" in table else [""] * len(table)
    texts = {
        Path(image).name: (category, degree)
        for image, category, degree in zip(table.text("image"), table.text("category"), degrees, strict=True)
    }
    remarks = Remarks()
    remarks.add("duplicate answers; the last one counts", len(table) - len(texts))
    unknown = set(texts) - set(images)
    remarks.add(
        "answers about pictures that aren't in the archive, left out", len(unknown), next(iter(sorted(unknown)), "")
    )
    answers = parse_answers(name, texts, images, access=access)
    answers.remarks.extend(remarks)
    return answers


def parse_answers(
    name: str, texts: Mapping[str, tuple[str, str]], images: Sequence[str], *, access: str = "open"
) -> Answers:
    """Parse answers, picture -> (category text, degree text); pictures without one are counted as not asked.

    Raises
    ------
    DataError
        If there is no answer about any of the pictures.
    """
    outcome, degree = np.full(len(images), -1, np.int64), np.full(len(images), np.nan)
    answers = Answers(name, outcome, degree, access=access)
    for i, image in enumerate(images):
        if image not in texts:
            continue
        category = parse_category(texts[image][0])
        _count(answers.statuses, category.status)
        if category.status == "other":
            _count(answers.named, category.named)
        outcome[i] = (
            CLASSES.index(category.code) if category.code else OTHER if category.status == "other" else UNPARSED
        )
        if texts[image][1]:
            read = parse_degree(texts[image][1])
            _count(answers.degree_statuses, read.status)
            degree[i] = read.value
    n_asked = int((outcome >= 0).sum())
    if not n_asked:
        problem = "are about none of the archive's pictures" if texts else "there are none"
        raise DataError(f"answers of {name}", problem)
    answers.remarks.add("pictures without an answer, left out", len(images) - n_asked)
    return answers


def judge_understanding(models: Sequence[Answers], truth: Truth, statistics: StatisticsSettings) -> Understanding:
    """Judge models against the annotated class, and their degrees against the MOS on what they classified rightly.

    An answer that can't be parsed is wrong and stands in a column of its own. Pictures without an annotated class, and
    those that a model wasn't asked about, are left out of its figures.
    """
    n = len(truth.images)
    names = [m.name for m in models]
    group = np.repeat(np.arange(len(models)), n)
    shares = count_shares(
        (names, group),
        np.tile(truth.category, len(models)),
        (OUTCOMES, np.concatenate([m.outcome for m in models])),
        clusters=list(np.tile(truth.images, len(models))),
        n_resamples=statistics.n_resamples,
        seed=statistics.seed,
    )
    right = [(m.outcome == truth.category) & (truth.category >= 0) for m in models]
    common = np.logical_and.reduce(right)
    degree = [
        degree_scores(m.degree[r], truth.degree[r], n_resamples=statistics.n_resamples, seed=statistics.seed)
        for m, r in zip(models, right, strict=True)
    ]
    asked = [(m.outcome >= 0) & (truth.category >= 0) for m in models]
    return Understanding(
        list(models),
        shares,
        degree,
        [degree_scores(m.degree[common], truth.degree[common]) for m in models],
        int(common.sum()),
        [quintiles(r[a], truth.degree[a]) for r, a in zip(right, asked, strict=True)],
    )


def agreement_as_rater(answers: Answers, truth: Truth) -> dict[str, Any]:
    """Return a model's kappa with the raters' classes; its votes never enter them."""
    from host_tools.metrics.agreement import cohen_kappa

    both = (answers.outcome >= 0) & (truth.category >= 0)
    said = [OUTCOMES[k] for k in answers.outcome[both]]
    return {"model": answers.name, "kappa": cohen_kappa(said, [CLASSES[k] for k in truth.category[both]])}


def _count(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
