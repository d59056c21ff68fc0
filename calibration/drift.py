"""How far an artefact has drifted from its reference: embeddings, classes, and what counts, the FCC of fixations.

Every fixation is scored twice: by the reference against its own environment, and by the candidate against *its* own
(an environment belongs to an artefact; queries of one against the cache of another lose about twice as much, which is
reported beside it). Each held-out picture is one environment; the fixations are windows of it, shifted by 15 % of
their side and dimmed to 0.8, so that none is in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.answers import Answers
from edge.backends.base import Model
from edge.config import ScoreConfig
from edge.environment import EnvironmentCache
from edge.environment_build import View, build
from edge.errors import DataError
from edge.fcc import fcc_of_fixations, fcc_of_samples, weights_for
from edge.features import Embedder
from edge.records import Image
from edge.separation import draw_probes
from models.embedders import embed

N_FIXATIONS = 240
#: The gate: INT8 with its own cache against FP32 with its own, on at least MIN_FIXATIONS fixations.
MIN_FIXATIONS, MAX_MEDIAN, MAX_P95, MIN_SPEARMAN = 200, 0.01, 0.03, 0.98
MAX_CAWF1_CHANGE = 0.012  # relative; judged where labels are given
_GAIN = 0.8
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Scored:
    """What one artefact makes of the fixations, picture by picture."""

    local: list[npt.NDArray[np.float32]]
    scene: list[npt.NDArray[np.float32]]
    caches: list[EnvironmentCache]

    def fcc(self, caches: list[EnvironmentCache], emotions: list[str]) -> list[Floats]:
        """FCC of every fixation against `caches`, picture by picture; an empty emotion has the fixed weights."""
        found = []
        for local, scene, cache, emotion in zip(self.local, self.scene, caches, emotions, strict=True):
            alpha, beta, _ = weights_for("merged", emotion)
            matches = [cache.lookup(row, scene[0]) for row in local]
            sims = ([m.sim_local for m in matches], [m.sim_global for m in matches])
            found.append(fcc_of_fixations(*sims, alpha, beta))
        return found


class Judge:
    """Scores the reference once, and compares candidates with it.

    Parameters
    ----------
    reference : Model
        The FP32 artefact.
    pictures : dict of str to picture
        Ones that no candidate was calibrated on.
    answers : Answers, optional
        Labels of some of the pictures, for cawF1.

    Raises
    ------
    DataError
        There are answers, but none to any of these pictures.
    """

    def __init__(
        self, reference: Model, pictures: dict[str, Image], *, answers: Answers | None = None, seed: int = 0
    ) -> None:
        self._model, self._pictures, self._answers, self._seed = reference, pictures, answers, seed
        if answers and not answers.true.keys() & pictures.keys():
            raise DataError("labels", "none is of a held-out picture", expected=f"some of {', '.join(pictures)}")
        self._scored = self._score(reference)
        self._truth = self._fcc(self._scored, self._scored.caches)

    def measure(self, candidate: Model) -> dict[str, Any]:
        """Compare an artefact of the same network with the reference.

        Returns
        -------
        dict
            ``n_fixations``, ``pictures``, ``reference``; cosine of the embeddings, raw and after subtracting the
            reference's mean (``cosine_*``); ``top1_agreement`` where both have logits; ``dfcc_median`` and
            ``dfcc_p95`` (absolute), ``dfcc_mean`` (relative, signed), ``spearman``; and the same against the
            reference's caches (``*_foreign``). With answers: ``cawf1``, ``cawf1_reference``, ``cawf1_samples`` and
            ``cawf1_change`` (relative, signed).
        """
        from scipy.stats import spearmanr

        scored = self._score(candidate)
        report: dict[str, Any] = {"pictures": len(self._pictures), "reference": self._model.manifest.model_id}
        report |= _cosines(np.concatenate(self._scored.local), np.concatenate(scored.local))
        for suffix, caches in (("", scored.caches), ("_foreign", self._scored.caches)):
            values = self._fcc(scored, caches)
            both = np.isfinite(self._truth) & np.isfinite(values)
            truth, values = self._truth[both], values[both]
            change = np.abs(values - truth)
            report[f"n_fixations{suffix}"] = len(values)
            report[f"dfcc_median{suffix}"] = float(np.median(change))
            report[f"dfcc_p95{suffix}"] = float(np.percentile(change, 95))
            report[f"dfcc_mean{suffix}"] = float(values.mean() / truth.mean() - 1)
            report[f"spearman{suffix}"] = float(spearmanr(truth, values).statistic)
        if all(any(spec.name == "logits" for spec in m.manifest.outputs) for m in (self._model, candidate)):
            report["top1_agreement"] = _agreement(self._model, candidate, list(self._pictures.values()), self._seed)
        return report | (self._cawf1(self._answers, scored) if self._answers else {})

    def _fcc(self, scored: _Scored, caches: list[EnvironmentCache]) -> Floats:
        return np.concatenate(scored.fcc(caches, [""] * len(caches)))

    def _cawf1(self, answers: Answers, scored: _Scored) -> dict[str, float]:
        """Compare cawF1 over the labelled pictures: each is a sample, its true label gives the weights of FCC."""
        emotions = [answers.true.get(name, "") for name in self._pictures]
        labelled = [name for name, emotion in zip(self._pictures, emotions, strict=True) if emotion]

        def of(one: _Scored) -> float:
            by_picture = dict(zip(self._pictures, one.fcc(one.caches, emotions), strict=True))
            owners = [name for name in labelled for _ in by_picture[name]]
            fcc = fcc_of_samples(owners, np.concatenate([by_picture[name] for name in labelled])).fcc
            return answers.cawf1(labelled, fcc)

        before, after = of(self._scored), of(scored)
        change = after / before - 1 if before else float("nan")
        return {"cawf1": after, "cawf1_reference": before, "cawf1_change": change, "cawf1_samples": len(labelled)}

    def _score(self, model: Model) -> _Scored:
        embedder, score = Embedder(model, ScoreConfig()), ScoreConfig()
        n = -(-N_FIXATIONS // len(self._pictures))
        local, scene, caches = [], [], []
        for name, image in self._pictures.items():
            local.append(embedder.local(draw_probes([image], "auto", n=n, seed=self._seed).shifted))
            scene.append(embedder.scenes([np.rint(image * _GAIN).astype(np.uint8)]))
            caches.append(build(embedder, [View(name, image)], score, measured=False))
        return _Scored(local, scene, caches)


def passes(report: dict[str, Any]) -> bool:
    """Whether a drift report passes the gate; an undefined figure doesn't."""
    return bool(
        report["n_fixations"] >= MIN_FIXATIONS
        and report["dfcc_median"] <= MAX_MEDIAN
        and report["dfcc_p95"] <= MAX_P95
        and report["spearman"] >= MIN_SPEARMAN
        and abs(report.get("cawf1_change", 0.0)) <= MAX_CAWF1_CHANGE
    )


def _cosines(reference: npt.NDArray[np.float32], candidate: npt.NDArray[np.float32]) -> dict[str, float]:
    result = {}
    mean = reference.mean(axis=0, dtype=np.float64)
    for label, shift in (("raw", np.zeros_like(mean)), ("centred", mean)):
        a, b = reference - shift, candidate - shift
        cosine = (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
        result[f"cosine_{label}_median"] = float(np.median(cosine))
        result[f"cosine_{label}_p05"] = float(np.percentile(cosine, 5))
    return result


def _agreement(reference: Model, candidate: Model, images: list[Image], seed: int) -> float:
    windows = draw_probes(images, "auto", seed=seed).base
    first, second = (embed(model, windows, "logits").argmax(axis=1) for model in (reference, candidate))
    return float((first == second).mean())
