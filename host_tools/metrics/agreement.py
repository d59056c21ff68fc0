"""Agreement of people who labelled the same things."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cohen_kappa(one: Sequence[str], other: Sequence[str]) -> float:
    """Return Cohen's kappa of two raters who labelled the same n items.

    kappa = (p_o - p_e) / (1 - p_e), with p_e from each rater's own shares (Cohen 1960). `nan` without items, and where
    both use one and the same label throughout (p_e = 1: agreement by chance can't be told from agreement).

    Raises
    ------
    ValueError
        If the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"both raters must label the same items: got {len(one)} and {len(other)} labels")
    if not one:
        return float("nan")
    labels, codes = np.unique(np.array([*one, *other]), return_inverse=True)
    a, b = codes[: len(one)], codes[len(one) :]
    observed = float(np.mean(a == b))
    k = len(labels)
    chance = float(np.bincount(a, minlength=k) @ np.bincount(b, minlength=k)) / len(a) ** 2
    return (observed - chance) / (1 - chance) if chance < 1 else float("nan")


def fleiss_kappa(counts: npt.ArrayLike) -> float:
    """Return Fleiss' kappa of `counts` (n items, k categories): how many raters chose each (Fleiss 1971).

    Items may have different numbers of raters (at least two; others are left out): the agreement within an item is
    then averaged over the items, and the chance agreement comes from the pooled shares. `nan` where it is undefined.
    """
    table = np.asarray(counts, dtype=np.float64)
    raters = table.sum(axis=1)
    table, raters = table[raters >= 2], raters[raters >= 2]
    if not len(table):
        return float("nan")
    within = (np.sum(table**2, axis=1) - raters) / (raters * (raters - 1))
    chance = float(np.sum((table.sum(axis=0) / table.sum()) ** 2))
    return (float(within.mean()) - chance) / (1 - chance) if chance < 1 else float("nan")


def vote_counts(votes: Ints, n_classes: int) -> Ints:
    """Count the votes per picture and class.

    Parameters
    ----------
    votes : int64 (images, raters)
        Class index, -1 where there is no vote.

    Returns
    -------
    int64 (images, n_classes)
    """
    rows, cols = np.nonzero(votes >= 0)
    flat = rows * n_classes + votes[rows, cols]
    return np.bincount(flat, minlength=votes.shape[0] * n_classes).reshape(votes.shape[0], n_classes)


def krippendorff_nominal(counts: npt.ArrayLike) -> float:
    """Return Krippendorff's alpha for classes: 1 - observed / expected disagreement (Krippendorff 2011).

    Parameters
    ----------
    counts : int64 (images, classes)
        Votes per picture and class; pictures with fewer than two votes are left out. One class only gives nan.
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) >= 2]
    m, total = table.sum(axis=1), table.sum()
    expected = (total**2 - (table.sum(axis=0) ** 2).sum()) / (total - 1) if total else 0.0
    observed = ((m**2 - (table**2).sum(axis=1)) / (m - 1)).sum()
    return float(1 - observed / expected) if expected > 0 else float("nan")


def krippendorff_interval(scores: Floats) -> float:
    """Return Krippendorff's alpha for scores on an interval scale (squared differences).

    Parameters
    ----------
    scores : float64 (images, raters)
        nan where there is no score; pictures with fewer than two are left out. All scores equal gives nan.
    """
    m = np.isfinite(scores).sum(axis=1)
    x = np.nan_to_num(scores[m >= 2] - np.nanmean(scores)) if (m >= 2).any() else np.zeros((0, 1))
    m = m[m >= 2]
    # The sum of squared differences over all ordered pairs of m values is 2 m sum(x^2) - 2 sum(x)^2.
    observed = ((2 * m * (x**2).sum(axis=1) - 2 * x.sum(axis=1) ** 2) / (m - 1)).sum()
    n = m.sum()
    expected = (2 * n * (x**2).sum() - 2 * x.sum() ** 2) / (n - 1) if n else 0.0
    return float(1 - observed / expected) if expected > 0 else float("nan")
