"""How well an environment tells what belongs to it from what doesn't: ROC AUC and gap of seeded pairs of windows.

*Matched*: a window, and the same window shifted by 15 % of its side with gain 0.8. *Mismatched*: a window, and one of
the same view whose centre is at least two windows away. *Retrieved*: the best match in the index, as at run time, for
shifted windows of this environment against windows of another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.environment import EnvironmentCache
from edge.features import Embedder, crop_window, window_px
from edge.records import NAN, Image, Vector

Floats = npt.NDArray[np.float64]

N_PAIRS = 200
_SHIFT, _GAIN, _APART = 0.15, 0.8, 2.0


def roc_auc(positive: npt.ArrayLike, negative: npt.ArrayLike) -> float:
    """Return the share of (positive, negative) pairs in which the positive is larger, ties counting half.

    This is the area under the ROC curve (Mann-Whitney U over the product of the sizes); nan if a side is empty.
    """
    p, n = np.asarray(positive, np.float64), np.sort(np.asarray(negative, np.float64))
    if not len(p) or not len(n):
        return NAN
    below, not_above = np.searchsorted(n, p, side="left"), np.searchsorted(n, p, side="right")
    return float((below + not_above).sum() / (2 * len(p) * len(n)))


@dataclass(frozen=True, slots=True)
class Probes:
    """Windows of views: each one's view, centre (pixels), its picture, and its shifted and dimmed twin."""

    view: npt.NDArray[np.int64]
    centre: Floats
    side: npt.NDArray[np.int64]
    base: list[Image]
    shifted: list[Image]


def draw_probes(views: list[Image], window: str, *, n: int = N_PAIRS, seed: int = 0) -> Probes:
    """Draw `n` windows evenly over the views, at random places, and shift each in a random direction."""
    rng = np.random.default_rng(seed)
    view = np.arange(n) % len(views) if views else np.empty(0, np.int64)
    centre, side = np.empty((len(view), 2)), np.empty(len(view), np.int64)
    base, shifted = [], []
    for i, k in enumerate(view):
        height, width = views[k].shape[:2]
        side[i] = window_px(width, height, window)
        half, room = side[i] / 2, (width - side[i], height - side[i])
        centre[i] = [half + rng.integers(0, r + 1) for r in room]
        angle = rng.uniform(0, 2 * math.pi)
        step = _SHIFT * side[i] * np.array([math.cos(angle), math.sin(angle)])
        # A shift that would leave the picture goes the other way.
        inside = [half <= c + s <= half + r for c, s, r in zip(centre[i], step, room, strict=True)]
        moved = centre[i] + np.where(inside, step, -step)
        base.append(_window(views[k], centre[i], int(side[i])))
        dimmed = _window(views[k], moved, int(side[i])) * _GAIN
        shifted.append(np.rint(dimmed).astype(np.uint8))
    return Probes(view, centre, side, base, shifted)


def mismatched_pairs(probes: Probes, *, seed: int = 0) -> list[tuple[int, int]]:
    """Return for each window another of the same view at least two windows away, where there is one."""
    rng = np.random.default_rng(seed + 1)
    pairs = []
    for i in range(len(probes.view)):
        distance = np.linalg.norm(probes.centre - probes.centre[i], axis=1)
        far = np.flatnonzero((probes.view == probes.view[i]) & (distance >= _APART * probes.side[i]))
        if len(far):
            pairs.append((i, int(rng.choice(far))))
    return pairs


def separation(
    embedder: Embedder, cache: EnvironmentCache, views: list[Image], others: list[Image], *, seed: int = 0
) -> dict[str, Any]:
    """Measure the separation of a cache.

    Parameters
    ----------
    embedder : Embedder
        The one that built the cache.
    cache : EnvironmentCache
    views : list of pictures
        Reference views of the environment.
    others : list of pictures
        Views of another environment; empty: no retrieved AUC.

    Returns
    -------
    dict
        `auc`, `gap_cos` (difference of the mean cosines), `n_matched`, `n_mismatched`, `auc_retrieved` (nan without
        `others`), `mean_matched`, `mean_mismatched`, `n_retrieved`, `seed`.
    """
    window = cache.info.window
    probes = draw_probes(views, window, seed=seed)
    shifted = embedder.local(probes.shifted)
    unit_base, unit_shifted = (
        cache.transforms[0](f).astype(np.float64) for f in (embedder.local(probes.base), shifted)
    )
    matched = (unit_base * unit_shifted).sum(axis=1)
    pairs = mismatched_pairs(probes, seed=seed)
    mismatched = np.array([unit_base[i] @ unit_shifted[j] for i, j in pairs])
    foreign = embedder.local(draw_probes(others, window, seed=seed).base)
    mean_matched, mean_mismatched = _mean(matched), _mean(mismatched)
    return {
        "auc": roc_auc(_ties(matched), _ties(mismatched)),
        "gap_cos": mean_matched - mean_mismatched,
        "n_matched": len(matched),
        "n_mismatched": len(mismatched),
        "auc_retrieved": roc_auc(_ties(_retrieved(cache, shifted)), _ties(_retrieved(cache, foreign))),
        "mean_matched": mean_matched,
        "mean_mismatched": mean_mismatched,
        "n_retrieved": len(foreign),
        "seed": seed,
    }


def _ties(similarities: npt.ArrayLike) -> Floats:
    """Return cosines to six digits: what differs by float noise alone (a picture of one colour) is a tie."""
    return np.asarray(similarities, np.float64).round(6)


def _retrieved(cache: EnvironmentCache, features: Iterable[Vector]) -> list[float]:
    return [found[0][1] for found in (cache.nearest(row, 1) for row in features) if found]


def _window(view: Image, centre: Floats, side: int) -> Image:
    x, y = centre.tolist()
    window = crop_window(view, x, y, side)
    if window is None:
        raise ValueError(f"({x}, {y}) isn't on a picture of {view.shape[1]}x{view.shape[0]}")
    return window


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else NAN
