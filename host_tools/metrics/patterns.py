"""How an emotion is said to show in where people look, made measurable: one number from 0 to 1 per sample.

A pattern is a hypothesis, not an emotion: its worth on a data set is its ROC AUC against the labels. Each is `nan`
where the data for it is missing.

========  ==============================================================================================
happy     mean percentile, within the scene, of luminance and saturation where people look
sad       long fixations and small saccades, as percentiles among the samples
angry     share of fixation time on regions of threat and on faces
fear      share of moves between two looks at regions of threat or exit that go from one kind to the other
surprise  many shifts of gaze and a wide pupil, as percentiles among the samples
disgust   avoidance of the repellent region: a / (a + d) of its share a of the picture and d of the time
========  ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Pixels = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
NAN = float("nan")


def percentiles_in(reference: npt.ArrayLike, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Array:
    """Return the mid-rank percentile (n,), 0 to 1, of `values` among `reference`: share below plus half of the equal.

    Parameters
    ----------
    reference : array_like
        What is compared with, of any shape; `nan` is left out. Without any, all is `nan`.
    values : array_like (n,)
        `nan` stays.
    weights : array_like, optional
        How much each of `reference` counts (the area of a panorama's pixel); default alike.
    """
    flat, asked = np.ravel(np.asarray(reference, dtype=np.float64)), np.asarray(values, dtype=np.float64)
    weight = np.ones(len(flat)) if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    order = np.argsort(flat, kind="stable")[: int(np.isfinite(flat).sum())]
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    if below[-1] <= 0:
        return np.full(len(asked), NAN)
    left, right = (np.searchsorted(flat[order], asked, side=side) for side in ("left", "right"))  # type: ignore[call-overload]
    return np.where(np.isfinite(asked), (below[left] + below[right]) / 2 / below[-1], NAN)


def both_high(one: npt.ArrayLike, other: npt.ArrayLike) -> Array:
    """Return the mean (n,) of two percentiles among the samples; `nan` where either is missing."""
    return (percentiles_in(one, one) + percentiles_in(other, other)) / 2


def brightness(luminance: npt.ArrayLike, saturation: npt.ArrayLike, at: Pixels, area: npt.ArrayLike) -> float:
    """Return the mean percentile of luminance and of saturation at pixels of a picture; `nan` without one.

    Parameters
    ----------
    luminance, saturation : array_like (h, w)
    at : Pixels
        The fixated ones: rows and columns.
    area : array_like (h, w)
        How much each pixel counts in its scene.
    """
    ranks = [percentiles_in(plane, np.asarray(plane)[at], area) for plane in (luminance, saturation)]
    return float(np.mean(ranks)) if len(ranks[0]) else NAN


def dwell(durations: Sequence[float], inside: Sequence[bool]) -> float:
    """Return the share of fixation time spent inside; `nan` without time."""
    time, where = np.asarray(durations, dtype=np.float64), np.asarray(inside, dtype=bool)
    total = time.sum()
    return float(time[where].sum() / total) if total > 0 else NAN


def alternation(kinds: Sequence[str]) -> float:
    """Return the share of moves between successive looks at regions that go from one kind to another.

    Looks of no kind (an empty name) are passed over; `nan` with fewer than two others.
    """
    moves = list(pairwise(kind for kind in kinds if kind))
    return sum(a != b for a, b in moves) / len(moves) if moves else NAN


def avoidance(area_share: float, time_share: float) -> float:
    """Return how much less a region is looked at than its area would let expect: a / (a + d).

    1/2 where the shares of area and time are equal, 1 where nobody looks at it; `nan` without an area.
    """
    return area_share / (area_share + time_share) if area_share > 0 else NAN
