"""Intervals, paired tests, corrections and effect sizes.

Everything that is scored here is a function of sums over samples (a confusion matrix is one). So a bootstrap needs the
sums of each resample alone: one matrix product of how often a cluster was drawn with what the clusters sum to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_CELLS_AT_ONCE = 1 << 22  # fixed, so that the draws don't depend on the machine; bounds the memory to about 100 MB


def cluster_codes(clusters: Sequence[str] | npt.NDArray | None, n: int) -> npt.NDArray[np.int64]:
    """Return the cluster of each of n samples as a code 0..g-1; without clusters each sample is its own.

    Fewer than two clusters can't be resampled: then, too, each sample is its own (callers say so).
    """
    if clusters is None:
        return np.arange(n)
    if len(clusters) != n:
        raise ValueError(f"clusters: expected {n}, one per sample, got {len(clusters)}")
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return codes.astype(np.int64) if len(names) > 1 else np.arange(n)


def bootstrap_sums(
    terms: npt.ArrayLike,
    clusters: Sequence[str] | npt.NDArray | None = None,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Array:
    """Return the column sums of `terms` in each bootstrap resample.

    Parameters
    ----------
    terms : array_like (n, t)
        What each sample adds to each sum.
    clusters : sequence of length n, optional
        Samples of one cluster (a participant) are drawn together (cluster bootstrap; Davison & Hinkley 1997, 3.8).
    n_resamples, seed : int
        Number of resamples and seed of the draws.

    Returns
    -------
    ndarray (n_resamples, t), float64
    """
    values = np.asarray(terms, dtype=np.float64)
    codes = cluster_codes(clusters, len(values))
    sums = _sums_of_clusters(values, codes)
    resampled = np.empty((n_resamples, values.shape[1]))
    start = 0
    for counts in _draw_counts(len(sums), n_resamples, seed):
        resampled[start : start + len(counts)] = counts @ sums
        start += len(counts)
    return resampled


def bootstrap_indices(
    n: int, clusters: Sequence[str] | npt.NDArray | None = None, *, n_resamples: int = 1000, seed: int = 0
) -> Iterator[npt.NDArray[np.int64]]:
    """Give the sample indices of each resample, for statistics that are no function of sums (rank correlations)."""
    codes = cluster_codes(clusters, n)
    members = np.argsort(codes, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes))]) if n else np.zeros(1, dtype=np.int64)
    groups = len(bounds) - 1
    rng = np.random.default_rng(seed)
    for _ in range(n_resamples if groups else 0):
        drawn = rng.integers(groups, size=groups)
        yield np.concatenate([members[bounds[g] : bounds[g + 1]] for g in drawn]) if groups < n else members[drawn]


def mean_of_defined(values: npt.ArrayLike) -> float:
    """Return the mean of the values that are defined; `nan` without one."""
    given = np.asarray(values, dtype=np.float64)
    defined = given[np.isfinite(given)]
    return float(defined.mean()) if len(defined) else float("nan")


def percentile_interval(values: npt.ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of bootstrap `values` (r,); undefined resamples (`nan`) are left out.

    `(nan, nan)` if fewer than half of the resamples are defined: the rest would flatter.
    """
    given = np.asarray(values, dtype=np.float64)
    defined = given[np.isfinite(given)]
    if not len(defined) or 2 * len(defined) < len(given):
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_p(differences: npt.ArrayLike) -> float:
    """Return the two-sided p value of "no difference" from bootstrapped differences (r,).

    Twice the smaller share of resamples at or beyond 0, each count one higher so that p is never 0
    (Davison & Hinkley 1997, 4.2). `nan` without a defined resample; 1 where all are exactly 0.
    """
    given = np.asarray(differences, dtype=np.float64)
    given = given[np.isfinite(given)]
    if not len(given):
        return float("nan")
    tail = min(int(np.sum(given <= 0)), int(np.sum(given >= 0)))
    return min(1.0, 2 * (tail + 1) / (len(given) + 1))


def holm(p_values: npt.ArrayLike) -> Array:
    """Return p values adjusted by Holm's step-down method (family-wise error); `nan` stays and is not counted."""
    return _adjust(p_values, lambda p, m: np.maximum.accumulate((m - np.arange(len(p))) * p))


def benjamini_hochberg(p_values: npt.ArrayLike) -> Array:
    """Return p values adjusted by Benjamini and Hochberg's step-up method (false discovery rate)."""
    return _adjust(p_values, lambda p, m: np.minimum.accumulate((m / np.arange(1, len(p) + 1) * p)[::-1])[::-1])


def bonferroni(p_values: npt.ArrayLike) -> Array:
    """Return p values times their number (family-wise error)."""
    return _adjust(p_values, lambda p, m: m * p)


CORRECTIONS: dict[str, Callable[[npt.ArrayLike], Array]] = {
    "holm": holm,
    "benjamini-hochberg": benjamini_hochberg,
    "bonferroni": bonferroni,
}


def cohens_dz(differences: npt.ArrayLike) -> float:
    """Return Cohen's d of paired `differences` (n,): mean over standard deviation (ddof 1).

    `nan` for fewer than two, and where all are equal.
    """
    given = np.asarray(differences, dtype=np.float64)
    given = given[np.isfinite(given)]
    spread = float(given.std(ddof=1)) if len(given) > 1 else 0.0
    return float(given.mean()) / spread if spread > 0 else float("nan")


def cohens_h(one: float, other: float) -> float:
    """Return Cohen's h of two proportions: the difference of their arcsine transforms."""
    return float(2 * np.arcsin(np.sqrt(one)) - 2 * np.arcsin(np.sqrt(other)))


def cliffs_delta(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return Cliff's delta: P(one > other) - P(one < other) over all pairs; `nan` if a side is empty."""
    a, b = np.asarray(one, dtype=np.float64), np.sort(np.asarray(other, dtype=np.float64))
    if not len(a) or not len(b):
        return float("nan")
    below = np.searchsorted(b, a, side="left").sum()
    above = (len(b) - np.searchsorted(b, a, side="right")).sum()
    return float(below - above) / (len(a) * len(b))


def roc_auc(positive: npt.ArrayLike, negative: npt.ArrayLike) -> float:
    """Return the area under the ROC curve (ties count half): P(positive > negative) + P(equal) / 2."""
    return 0.5 * (cliffs_delta(positive, negative) + 1)


def resampled_auc(
    values: npt.ArrayLike,
    positive: npt.ArrayLike,
    clusters: Sequence[str] | npt.NDArray | None = None,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Array:
    """Return the ROC AUC (n_resamples,) of `values` (n,) for `positive` (n,) in bootstrap resamples of clusters.

    `nan` in a resample without either kind.
    """
    if not np.size(values):
        return np.full(n_resamples, np.nan)
    value, is_positive = np.asarray(values, dtype=np.float64), np.asarray(positive, dtype=bool)
    codes = cluster_codes(clusters, len(value))
    order = np.argsort(value, kind="stable")
    value, is_positive, codes = value[order], is_positive[order], codes[order]
    ties = np.flatnonzero(np.concatenate([[True], value[1:] != value[:-1]]))
    found = []
    for counts in _draw_counts(int(codes.max()) + 1, n_resamples, seed):
        for drawn in counts:
            times = drawn[codes]
            above, below = (np.add.reduceat(times * of, ties) for of in (is_positive, ~is_positive))
            pairs = above.sum() * below.sum()
            # A positive beats all negatives of lower value, and half of its equals.
            found.append(float(above @ (np.cumsum(below) - below / 2)) / pairs if pairs else float("nan"))
    return np.array(found)


def _adjust(p_values: npt.ArrayLike, rule: Callable[[Array, int], Array]) -> Array:
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(len(given), np.nan)
    where = np.flatnonzero(np.isfinite(given))
    order = where[np.argsort(given[where], kind="stable")]
    if len(order):
        adjusted[order] = np.minimum(1.0, rule(given[order], len(order)))
    return adjusted


def _sums_of_clusters(values: Array, codes: npt.NDArray[np.int64]) -> Array:
    groups = int(codes.max()) + 1 if len(codes) else 0
    if groups == len(values):
        return values[np.argsort(codes)]
    return np.stack([np.bincount(codes, weights=column, minlength=groups) for column in values.T], axis=1)


def _draw_counts(groups: int, n_resamples: int, seed: int) -> Iterator[Array]:
    """Give, in batches (b, groups), how often each cluster is drawn in each resample."""
    rng = np.random.default_rng(seed)
    batch = max(1, _CELLS_AT_ONCE // max(groups, 1))
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        drawn = rng.integers(groups, size=(size, groups)) if groups else np.empty((size, 0), dtype=np.int64)
        flat = (drawn + groups * np.arange(size)[:, None]).ravel()
        yield np.bincount(flat, minlength=size * groups).reshape(size, groups).astype(np.float64)
