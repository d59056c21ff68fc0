"""Shares of outcomes per group and class with bootstrap intervals: what generation and understanding have in common.

Every figure here is a function of counts, outcome by class by group; a bootstrap resamples the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host_tools.memo.classes import CLASSES
from host_tools.metrics.estimates import Estimate
from host_tools.metrics.statistics import CORRECTIONS, bootstrap_p, bootstrap_sums, cohens_h, percentile_interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
K = len(CLASSES)
POSITIVE = [CLASSES.index(c) for c in ("HAP", "NEU")]
NEGATIVE = [CLASSES.index(c) for c in ("SAD", "ANG", "WOR")]  # surprise has no valence and stands apart


@dataclass(frozen=True)
class Shares:
    """Counts of outcomes and their resamples.

    Attributes
    ----------
    groups : list of str
        Models, or styles of prompts.
    outcomes : list of str
        The six classes first, then whatever else can come out.
    counts : float64 (groups, 6, outcomes)
    resampled : float64 (resamples, groups, 6, outcomes)
    """

    groups: Sequence[str]
    outcomes: Sequence[str]
    counts: Floats
    resampled: Floats

    def matrix(self, group: int) -> Floats:
        """Return the shares (6, outcomes) of a group: rows sum to 1, or are nan where nothing was counted."""
        return _divide(self.counts[group], self.counts[group].sum(axis=-1, keepdims=True))

    def per_class(self, group: int) -> list[Estimate]:
        """Return the share of each class that came out as itself."""
        values, resampled = (_right(c[..., group, :, :]) for c in (self.counts, self.resampled))
        return [Estimate(float(values[k]), percentile_interval(resampled[:, k])) for k in range(K)]

    def micro(self, group: int) -> Estimate:
        """Return the share of all pictures that came out as their class."""
        return self._estimate(lambda c: _micro(c[..., group, :, :]))

    def macro(self, group: int) -> Estimate:
        """Return the mean over the classes of their shares; a class without pictures is left out."""
        return self._estimate(lambda c: _mean(_right(c[..., group, :, :]), list(range(K))))

    def valence(self, group: int) -> Estimate:
        """Return the mean share over HAP and NEU minus that over SAD, ANG and WOR."""
        return self._estimate(lambda c: _contrast(_right(c[..., group, :, :])))

    def compare(self, correction: str = "holm") -> list[dict[str, object]]:
        """Compare all groups in pairs: difference of `micro`, interval, p (adjusted by `correction`), Cohen's h."""
        pairs = [(a, b) for a in range(len(self.groups)) for b in range(a + 1, len(self.groups))]
        point, draws = _micro(self.counts), _micro(self.resampled)
        p = [bootstrap_p(draws[:, a] - draws[:, b]) for a, b in pairs]
        adjusted = CORRECTIONS[correction](p)
        return [
            {
                "first": self.groups[a],
                "second": self.groups[b],
                "difference": point[a] - point[b],
                "ci95": percentile_interval(draws[:, a] - draws[:, b]),
                "p": p[i],
                f"p_{correction}": adjusted[i],
                "cohens_h": cohens_h(point[a], point[b]),
            }
            for i, (a, b) in enumerate(pairs)
        ]

    def _estimate(self, statistic) -> Estimate:  # type: ignore[no-untyped-def]
        return Estimate(float(statistic(self.counts)), percentile_interval(statistic(self.resampled)))


def count_shares(
    groups: tuple[Sequence[str], Ints],
    true: Ints,
    outcome: tuple[Sequence[str], Ints],
    *,
    clusters: Sequence[str] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Shares:
    """Count outcomes by group and class, and resample the counts.

    Parameters
    ----------
    groups, outcome : (names, int64 (n,))
        Names, and the index of each picture's; -1 leaves the picture out.
    true : int64 (n,)
        Class of each picture, -1 leaves it out.
    clusters : sequence of str, optional
        Pictures drawn together in a resample (those of one prompt, so that models are compared in pairs).
    """
    names, group = groups
    kinds, out = outcome
    shape = (len(names), K, len(kinds))
    counted = (group >= 0) & (true >= 0) & (out >= 0)
    cell = np.ravel_multi_index((group[counted], true[counted], out[counted]), shape)
    codes = np.arange(len(group)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    n_cells = int(np.prod(shape))
    n_clusters = int(codes.max()) + 1 if len(codes) else 0
    sums = np.bincount(codes[counted] * n_cells + cell, minlength=n_clusters * n_cells).reshape(n_clusters, n_cells)
    resampled = bootstrap_sums(sums, n_resamples=n_resamples, seed=seed)
    return Shares(names, kinds, sums.sum(axis=0).reshape(shape).astype(float), resampled.reshape(-1, *shape))


def class_contrast(values: Floats, classes: Ints, *, n_resamples: int = 1000, seed: int = 0) -> Estimate:
    """Return the valence contrast of a score: mean over HAP and NEU minus mean over SAD, ANG and WOR.

    The mean of a side is that of its classes' means, so that a rare class counts as much as a frequent one.

    Parameters
    ----------
    values : float64 (n,)
        Scores; nan is left out.
    classes : int64 (n,)
    """
    given = np.isfinite(values) & (classes >= 0)
    chosen = np.eye(K)[classes[given]]
    terms = np.hstack([chosen * values[given, None], chosen])
    point, draws = terms.sum(axis=0), bootstrap_sums(terms, n_resamples=n_resamples, seed=seed)
    means = [_divide(sums[..., :K], sums[..., K:]) for sums in (point, draws)]
    return Estimate(float(_contrast(means[0])), percentile_interval(_contrast(means[1])))


def quintiles(right: npt.NDArray[np.bool_], scores: Floats) -> list[dict[str, float]]:
    """Return P(right) by fifths of a score: lower and upper edge, n and the share; ties fall into one fifth."""
    given = np.isfinite(scores)
    if not given.any():
        return []
    edges = np.quantile(scores[given], [0, 0.2, 0.4, 0.6, 0.8, 1])
    fifth = np.searchsorted(edges[1:-1], scores[given], side="left")
    rows = []
    for i in range(5):
        inside = right[given][fifth == i]
        share = float(inside.mean()) if len(inside) else float("nan")
        rows.append({"low": float(edges[i]), "high": float(edges[i + 1]), "n": len(inside), "p_correct": share})
    return rows


def _right(counts: Floats) -> Floats:
    """Share of each class that came out as itself, (..., 6)."""
    right = np.diagonal(counts[..., :K], axis1=-2, axis2=-1)
    return _divide(right, counts.sum(axis=-1))


def _micro(counts: Floats) -> Floats:
    right = np.diagonal(counts[..., :K], axis1=-2, axis2=-1).sum(axis=-1)
    return _divide(right, counts.sum(axis=(-2, -1)))


def _contrast(per_class: Floats) -> Floats:
    return _mean(per_class, POSITIVE) - _mean(per_class, NEGATIVE)


def _mean(values: Floats, columns: list[int]) -> Floats:
    chosen = values[..., columns]
    given = np.isfinite(chosen)
    return _divide(np.where(given, chosen, 0.0).sum(axis=-1), given.sum(axis=-1))


def _divide(a: Floats, b: npt.NDArray) -> Floats:
    return np.divide(a, b, out=np.full(np.broadcast_shapes(a.shape, b.shape), np.nan), where=b > 0)
