"""The fixation-context consistency score (FCC): pure arithmetic, float64 inside.

For a fixation with L2-normalised embeddings v (what is looked at) and e (what the environment holds)::

    sim_local  = cos(v_local, e_local)          window around the fixation
    sim_global = cos(v_global, e_global)        whole scene
    s          = alpha * sim_local + beta * sim_global,   alpha + beta = 1
    FCC        = mean over the fixations of 0.5 * (s + 1)

The mean runs over the fixations of one sample: a picture, a clip, or live the last seconds. What is undefined is
``nan`` with a reason beside it, is left out of means and is counted; it is never 0 and never 1.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edge.labels import canonical
from edge.records import NAN

_FIXED = (0.7, 0.3)
_OTHER = "other"
_SUM_TOLERANCE = 1e-9
#: Weight of the local and of the global similarity, per table and emotion of the person who looks. `merged` settles
#: where the two published tables (`doc-3.2`, `doc-5.2`) disagree; `fixed` is what applies without an emotion.
WEIGHTS: dict[str, dict[str, tuple[float, float]]] = {
    "merged": {
        "angry": (0.8, 0.2),
        "fear": (0.8, 0.2),
        "surprise": (0.5, 0.5),
        "happy": (0.4, 0.6),
        _OTHER: (0.6, 0.4),
    },
    "doc-3.2": {
        "angry": (0.8, 0.2),
        "fear": (0.8, 0.2),
        "surprise": (0.5, 0.5),
        "happy": (0.5, 0.5),
        _OTHER: (0.7, 0.3),
    },
    "doc-5.2": {
        "angry": (0.8, 0.2),
        "fear": (0.8, 0.2),
        "surprise": (0.6, 0.4),
        "happy": (0.4, 0.6),
        _OTHER: (0.6, 0.4),
    },
    "fixed": {_OTHER: _FIXED},
}

Floats = npt.NDArray[np.float64]


class Weights(NamedTuple):
    """alpha (local) and beta (global), and the table that they come from: `fixed` where no emotion was known."""

    alpha: float
    beta: float
    table: str


def weights_for(table: str, emotion: str) -> Weights:
    """Return the weights of an emotion.

    Parameters
    ----------
    table : str
        `merged`, `fixed`, `doc-3.2` or `doc-5.2`.
    emotion : str
        Emotion of the person who looks, in any spelling that `edge.labels` knows; empty where there is none.

    Examples
    --------
    >>> weights_for("merged", "happy")
    Weights(alpha=0.4, beta=0.6, table='merged')
    >>> weights_for("merged", "")
    Weights(alpha=0.7, beta=0.3, table='fixed')
    """
    if table not in WEIGHTS:
        raise ValueError(f"weights {table!r}: expected one of {', '.join(WEIGHTS)}")
    if not emotion:
        return Weights(*_FIXED, "fixed")
    row = WEIGHTS[table]
    return Weights(*row.get(canonical(emotion), row[_OTHER]), table)


def to_unit(s: float) -> float:
    """Map a cosine onto the unit interval: 0.5 * (s + 1)."""
    return 0.5 * (s + 1.0)


def fcc_now(sim_local: float, sim_global: float, alpha: float, beta: float) -> float:
    """Return the FCC of one moment, in [0, 1]; nan where a similarity is undefined (nan).

    Raises
    ------
    ValueError
        If a weight is negative, the weights don't sum to 1, or a similarity lies outside [-1, 1].
    """
    if alpha < 0 or beta < 0 or abs(alpha + beta - 1.0) > _SUM_TOLERANCE:
        raise ValueError(f"alpha and beta must be at least 0 and sum to 1; got {alpha} and {beta}")
    if abs(sim_local) > 1.0 or abs(sim_global) > 1.0:
        raise ValueError(f"similarities lie in [-1, 1]; got {sim_local} and {sim_global}")
    return to_unit(alpha * float(sim_local) + beta * float(sim_global))


@dataclass(slots=True)
class _FixationFrames:
    """The defined frames of one fixation that lie in the window, and their mean."""

    frames: deque[tuple[int, float]] = field(default_factory=deque)
    mean: float = NAN

    def update(self) -> None:
        self.mean = math.fsum(value for _, value in self.frames) / len(self.frames)


class FccWindow:
    """Mean FCC over the fixations of the last `window_s` seconds, each fixation being the mean of its frames.

    The window is half open, (t - window_s, t]. Its value is summed anew from the frames it holds and never by
    subtracting what left, so that it doesn't depend on what went before.
    """

    def __init__(self, window_s: float) -> None:
        if not window_s > 0:
            raise ValueError(f"window_s must be positive, got {window_s}")
        self._window_ns = round(window_s * 1e9)
        self._fixations: dict[int, _FixationFrames] = {}
        self._newest_ns: int | None = None

    def add(self, t_ns: int, fixation_id: int, value: float) -> float:
        """Take the FCC of a frame (nan: undefined, left out) and return the window's mean, or nan if it holds none.

        A time before the newest one starts a new window: none spans a step of the clock.
        """
        if self._newest_ns is not None and t_ns < self._newest_ns:
            self.clear()
        self._newest_ns = t_ns
        self._drop_until(t_ns - self._window_ns)
        if not math.isnan(value):
            fixation = self._fixations.setdefault(fixation_id, _FixationFrames())
            fixation.frames.append((t_ns, value))
            fixation.update()
        if not self._fixations:
            return NAN
        return math.fsum(fixation.mean for fixation in self._fixations.values()) / len(self._fixations)

    def clear(self) -> None:
        """Forget everything, as after a step of the clock."""
        self._fixations.clear()
        self._newest_ns = None

    def _drop_until(self, t_ns: int) -> None:
        while self._fixations:
            fixation_id, oldest = next(iter(self._fixations.items()))
            if oldest.frames[0][0] > t_ns:
                return
            while oldest.frames and oldest.frames[0][0] <= t_ns:
                oldest.frames.popleft()
            if oldest.frames:
                oldest.update()
                return
            del self._fixations[fixation_id]


@dataclass(frozen=True, slots=True)
class SampleFcc:
    """FCC per sample, in the order of first appearance: `fcc` float64 (n,), nan where no fixation is defined."""

    samples: list[str]
    fcc: Floats
    n_fixations: npt.NDArray[np.int64]
    n_undefined: npt.NDArray[np.int64]


def fcc_of_fixations(
    sim_local: npt.ArrayLike, sim_global: npt.ArrayLike, alpha: npt.ArrayLike, beta: npt.ArrayLike
) -> Floats:
    """Return 0.5 * (alpha * sim_local + beta * sim_global + 1) elementwise, float64; nan stays nan.

    Parameters
    ----------
    sim_local, sim_global : array_like of float, (n,)
        Cosines in [-1, 1], or nan. Sums that leave the interval by rounding are clipped.
    alpha, beta : array_like of float, scalar or (n,)
        Weights; alpha + beta = 1.
    """
    a, b = np.asarray(alpha, np.float64), np.asarray(beta, np.float64)
    if not (np.all(a >= 0) and np.all(b >= 0) and np.all(np.abs(a + b - 1.0) <= _SUM_TOLERANCE)):
        raise ValueError("alpha and beta must be at least 0 and sum to 1")
    local, global_ = (np.clip(np.asarray(s, np.float64), -1.0, 1.0) for s in (sim_local, sim_global))
    return 0.5 * (a * local + b * global_ + 1.0)


def fcc_of_samples(samples: list[str], fcc: npt.ArrayLike) -> SampleFcc:
    """Return the mean FCC of each sample's fixations.

    Parameters
    ----------
    samples : list of str, (n,)
        Name of the sample that each fixation belongs to.
    fcc : array_like of float, (n,)
        FCC of each fixation; nan is undefined: left out of the mean and counted.
    """
    values = np.asarray(fcc, np.float64)
    if values.shape != (len(samples),):
        raise ValueError(f"expected one FCC for each of {len(samples)} fixations, got an array of {values.shape}")
    order = list(dict.fromkeys(samples))
    row = {name: i for i, name in enumerate(order)}
    index = np.array([row[name] for name in samples], dtype=np.int64)
    defined = ~np.isnan(values)
    n_all = np.bincount(index, minlength=len(order))
    n_defined = np.bincount(index[defined], minlength=len(order))
    total = np.bincount(index[defined], weights=values[defined], minlength=len(order))
    mean = np.full(len(order), NAN)
    np.divide(total, n_defined, out=mean, where=n_defined > 0)
    return SampleFcc(order, mean, n_all, n_all - n_defined)
