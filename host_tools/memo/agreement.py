"""Do the raters agree? Fleiss' kappa and Krippendorff's alpha, for any number of votes per picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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


def fleiss_kappa(counts: Ints) -> float:
    """Return Fleiss' kappa (Fleiss 1971), with per-picture weights for unequal numbers of votes.

    Pictures with fewer than two votes say nothing about agreement and are left out. Where every vote names one class,
    chance alone explains all agreement: kappa is nan.

    Parameters
    ----------
    counts : int64 (images, classes)
        Votes per picture and class.
    """
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    if not len(counts):
        return float("nan")
    n = counts.sum(axis=1)
    agreed = float(np.mean(((counts**2).sum(axis=1) - n) / (n * (n - 1))))
    chance = float(((counts.sum(axis=0) / n.sum()) ** 2).sum())
    return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")


def krippendorff_nominal(counts: Ints) -> float:
    """Return Krippendorff's alpha for classes: 1 - observed / expected disagreement (Krippendorff 2011).

    Parameters
    ----------
    counts : int64 (images, classes)
        Votes per picture and class; pictures with fewer than two votes are left out. One class only gives nan.
    """
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    m, total = counts.sum(axis=1), counts.sum()
    expected = (total**2 - (counts.sum(axis=0) ** 2).sum()) / (total - 1) if total else 0.0
    observed = (((m**2) - (counts**2).sum(axis=1)) / (m - 1)).sum()
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
