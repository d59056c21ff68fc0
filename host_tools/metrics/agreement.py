"""Agreement of people who labelled the same things."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


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
