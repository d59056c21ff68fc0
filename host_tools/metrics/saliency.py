"""How well a saliency map predicts where people looked.

A map is a float array (h, w), row = y; fixations are pixel positions with (0, 0) at the top left corner of the top left
pixel, so that pixel (row 2, column 1) holds 1 <= x < 2, 2 <= y < 3. Definitions as in Bylinskii et al., "What do
different evaluation metrics tell us about saliency models?" (2019), without jitter unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host_tools.metrics.statistics import roc_auc

Array = npt.NDArray[np.float64]
Pixels = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
JITTER = 1e-7  # size of the classic tie breaker
KL_EPSILON = float(np.finfo(np.float64).eps)
DEFAULT_SIGMA_PX = 10.0


@dataclass(frozen=True, slots=True)
class SaliencyScores:
    """Scores of one map. All `nan` without a fixation on the picture. `n_fixations` are those on it."""

    auc_judd: float
    nss: float
    cc: float
    sim: float
    kl: float
    auc_shuffled: float
    n_fixations: int
    n_off_image: int


def to_pixels(
    x_px: npt.ArrayLike, y_px: npt.ArrayLike, shape: Sequence[int], *, once: bool = False
) -> tuple[Pixels, int]:
    """Return rows and columns of the fixations on a picture of `shape` (h, w), and how many are off it (or no number).

    A fixation off the picture is dropped and counted, never moved to its edge. Repeated fixations count each, or, with
    `once`, a pixel counts one time.
    """
    x, y = np.asarray(x_px, dtype=np.float64), np.asarray(y_px, dtype=np.float64)
    on = (x >= 0) & (y >= 0) & (x < shape[1]) & (y < shape[0])
    rows, columns = np.floor(y[on]).astype(np.int64), np.floor(x[on]).astype(np.int64)
    if once and len(rows):
        rows, columns = np.divmod(np.unique(rows * shape[1] + columns), shape[1])
    return (rows, columns), int(np.sum(~on))


def from_fixation_map(counts: npt.ArrayLike) -> Pixels:
    """Return the fixated pixels of a fixation map (h, w) of whole counts.

    Raises
    ------
    ValueError
        If a value is no count: a blurred density can't be turned back into fixations.
    """
    values = np.asarray(counts)
    if values.ndim != 2 or (values < 0).any() or (values != np.floor(values)).any():
        raise ValueError("expected a fixation map (h, w) of whole counts; this is a density, or no map")
    rows, columns = np.nonzero(values)
    times = values[rows, columns].astype(np.int64)
    return np.repeat(rows, times), np.repeat(columns, times)


def auc_judd(saliency: Array, fixated: Pixels, jitter_seed: int | None = None) -> float:
    """Return the area under the ROC curve with thresholds at the distinct saliency values of fixated pixels.

    True positives: share of fixations at or above the threshold; false positives: share of the pixels without any
    fixation; trapezoids from (0, 0) to (1, 1) (Judd et al. 2009). 0.5 on a constant map; `nan` without fixations or
    where every pixel is fixated.
    """
    values = saliency
    if jitter_seed is not None:
        values = saliency + JITTER * np.random.default_rng(jitter_seed).random(saliency.shape)
    free = np.ones(values.shape, dtype=bool)
    free[fixated] = False
    at, negative = values[fixated], values[free]
    if not len(at) or not len(negative):
        return float("nan")
    thresholds = np.unique(at)
    hits = _share_at_or_above(thresholds, at)[::-1]
    false_alarms = _share_at_or_above(thresholds, negative)[::-1]
    x, y = np.concatenate([[0.0], false_alarms, [1.0]]), np.concatenate([[0.0], hits, [1.0]])
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def auc_shuffled(saliency: Array, fixated: Pixels, others: Pixels) -> float:
    """Return the AUC of this picture's fixations against those of `others` (other pictures): centre bias cancels."""
    return roc_auc(saliency[fixated], saliency[others])


def nss(saliency: Array, fixated: Pixels) -> float:
    """Return the mean of the standardised map (population std) at the fixations; 0 on a constant map."""
    if not len(fixated[0]):
        return float("nan")
    spread = saliency.std()
    return float((saliency[fixated].mean() - saliency.mean()) / spread) if _varies(saliency) else 0.0


def density(shape: Sequence[int], fixated: Pixels, sigma_px: float) -> Array:
    """Return the fixation density (h, w): counts blurred with a Gaussian, mirrored at the edges."""
    from scipy.ndimage import gaussian_filter

    counts = np.zeros((shape[0], shape[1]))
    np.add.at(counts, fixated, 1.0)
    blurred: Array = gaussian_filter(counts, sigma_px, mode="reflect")
    return blurred


def cc(one: Array, other: Array) -> float:
    """Return Pearson's correlation of two maps; 0 if one is constant."""
    if not _varies(one) or not _varies(other):
        return 0.0
    a, b = one - one.mean(), other - other.mean()
    return float(np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b)))


def sim(one: Array, other: Array) -> float:
    """Return the overlap of two maps as distributions: the sum of the smaller values, 0 to 1."""
    return float(np.minimum(_distribution(one), _distribution(other)).sum())


def kl(saliency: Array, truth: Array) -> float:
    """Return the divergence of the map from the density `truth`: sum q log(eps + q / (p + eps)), in nats."""
    p, q = _distribution(saliency), _distribution(truth)
    return float(np.sum(q * np.log(KL_EPSILON + q / (p + KL_EPSILON))))


def score(
    saliency: npt.ArrayLike,
    x_px: npt.ArrayLike,
    y_px: npt.ArrayLike,
    *,
    sigma_px: float = DEFAULT_SIGMA_PX,
    once: bool = False,
    jitter_seed: int | None = None,
    others: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> SaliencyScores:
    """Return all scores of a map (h, w) against fixations.

    Parameters
    ----------
    saliency : array_like (h, w)
        The map; any scale (negative values are shifted to 0 where a distribution is needed).
    x_px, y_px : array_like (n,)
        Fixations.
    sigma_px : float
        Blur of the density that `cc`, `sim` and `kl` compare with; one degree of visual angle is usual.
    once : bool
        Whether a pixel fixated several times counts one time.
    jitter_seed : int, optional
        Seed of the classic tie breaker of `auc_judd`.
    others : pair of array_like, optional
        x and y of fixations on other pictures, for `auc_shuffled`.

    Raises
    ------
    ValueError
        If the map is not two-dimensional, is empty or holds a value that is no number.
    """
    values = as_map(saliency)
    fixated, off = to_pixels(x_px, y_px, values.shape, once=once)
    if not len(fixated[0]):
        nan = float("nan")
        return SaliencyScores(nan, nan, nan, nan, nan, nan, 0, off)
    truth = density(values.shape, fixated, sigma_px)
    shuffled = float("nan")
    if others is not None:
        shuffled = auc_shuffled(values, fixated, to_pixels(*others, values.shape)[0])
    return SaliencyScores(
        auc_judd=auc_judd(values, fixated, jitter_seed),
        nss=nss(values, fixated),
        cc=cc(values, truth),
        sim=sim(values, truth),
        kl=kl(values, truth),
        auc_shuffled=shuffled,
        n_fixations=len(fixated[0]),
        n_off_image=off,
    )


def as_map(saliency: npt.ArrayLike) -> Array:
    """Return a map as float64 (h, w), or raise ValueError if it is none."""
    values = np.asarray(saliency, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"expected a saliency map (h, w), got an array {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"the saliency map holds {int(np.sum(~np.isfinite(values)))} values that are no number")
    return values


def peaks(saliency: npt.ArrayLike, n: int, radius_px: float) -> tuple[Array, Array]:
    """Return x and y (pixel centres) of the n highest peaks, with inhibition of return.

    Each peak takes a disc of `radius_px` out of the map before the next is looked for; fewer come back if the map is
    used up. So a system that predicts a map is compared by as many fixations as were recorded.
    """
    values = as_map(saliency).copy()
    rows, columns = np.ogrid[: values.shape[0], : values.shape[1]]
    found: list[tuple[float, float]] = []
    while len(found) < n:
        row, column = np.unravel_index(np.argmax(values), values.shape)
        if values[row, column] == -np.inf:
            break
        found.append((float(column) + 0.5, float(row) + 0.5))
        values[(rows - row) ** 2 + (columns - column) ** 2 <= radius_px**2] = -np.inf
    x, y = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return x, y


def _share_at_or_above(thresholds: Array, values: Array) -> Array:
    passed = np.bincount(np.searchsorted(thresholds, values, side="right"), minlength=len(thresholds) + 1)
    return np.cumsum(passed[::-1])[::-1][1:] / len(values)


def _varies(values: Array) -> bool:
    return bool(values.max() > values.min())


def _distribution(values: Array) -> Array:
    lifted = values - min(0.0, float(values.min()))
    total = lifted.sum()
    return lifted / total if total > 0 else np.full(values.shape, 1 / values.size)
