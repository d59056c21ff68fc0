"""How well gaze hits targets: accuracy and precision in degrees.

Accuracy is the mean angular offset arccos(cos dx * cos dy) of the gaze from targets that did not take part in the
calibration; precision is the RMS of successive samples' distances (RMS-S2S) and the standard deviation, both planar,
per target and then averaged (Holmqvist et al., 2012, "Eye tracker data quality").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.gaze.fixations import usable
from edge.records import GazeSample

GOAL_MEAN_DEG, GOAL_WORST_DEG = 0.5, 1.0
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Target:
    """A place (deg) that was looked at from `start_ns` to `end_ns`."""

    start_ns: int
    end_ns: int
    x_deg: float
    y_deg: float
    validates: bool = True


@dataclass(frozen=True, slots=True)
class TargetGaze:
    """Gaze on one target: its median place, offset and precision (deg); nan where no sample was usable."""

    target: Target
    x_deg: float
    y_deg: float
    offset_deg: float
    rms_s2s_deg: float
    std_deg: float
    n_samples: int


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over the targets with gaze; `passed` holds the goals of 0.5 deg on average and 1 deg at worst."""

    accuracy_deg: float
    worst_deg: float
    rms_s2s_deg: float
    std_deg: float
    n_targets: int
    n_lost: int

    @property
    def passed(self) -> bool:
        return self.n_lost == 0 and self.accuracy_deg < GOAL_MEAN_DEG and self.worst_deg < GOAL_WORST_DEG


def offset_deg(dx_deg: npt.ArrayLike, dy_deg: npt.ArrayLike) -> Floats:
    """Return the angle (deg) of offsets along azimuth and elevation: arccos(cos dx * cos dy)."""
    cosine = np.cos(np.radians(dx_deg)) * np.cos(np.radians(dy_deg))
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


def accuracy_deg(dx_deg: npt.ArrayLike, dy_deg: npt.ArrayLike) -> float:
    """Return the mean angle (deg) of offsets; nan without one."""
    offsets = offset_deg(dx_deg, dy_deg)
    return float(np.mean(offsets)) if offsets.size else math.nan


def rms_s2s_deg(x_deg: npt.ArrayLike, y_deg: npt.ArrayLike) -> float:
    """Return the root mean square distance (deg) of successive samples; nan for fewer than two."""
    dx, dy = np.diff(np.asarray(x_deg, float)), np.diff(np.asarray(y_deg, float))
    return float(np.sqrt(np.mean(dx**2 + dy**2))) if dx.size else math.nan


def std_deg(x_deg: npt.ArrayLike, y_deg: npt.ArrayLike) -> float:
    """Return the standard deviation (deg, both axes together, population); nan without a sample."""
    x, y = np.asarray(x_deg, float), np.asarray(y_deg, float)
    return float(np.sqrt(np.var(x) + np.var(y))) if x.size else math.nan


def measure(samples: Iterable[GazeSample], targets: Sequence[Target], settle_ns: int = 500_000_000) -> list[TargetGaze]:
    """Return the gaze on each target.

    Parameters
    ----------
    samples : iterable of GazeSample
        In degrees; unusable ones are left out.
    targets : sequence of Target
        What was looked at when.
    settle_ns : int
        The first part of each look, in which the eye is still on its way, is left out.
    """
    good = [s for s in samples if usable(s)]
    times = np.array([s.t_ns for s in good], dtype=np.int64)
    xy = np.array([(s.x_deg, s.y_deg) for s in good]).reshape(-1, 2)
    return [_on_target(xy[(times >= t.start_ns + settle_ns) & (times <= t.end_ns)], t) for t in targets]


def quality(measured: Sequence[TargetGaze]) -> Quality:
    """Summarise the gaze on targets; all is nan if none has gaze."""
    seen = [m for m in measured if m.n_samples]
    values = np.array([(m.offset_deg, m.rms_s2s_deg, m.std_deg) for m in seen]).reshape(-1, 3)
    if not seen:
        return Quality(math.nan, math.nan, math.nan, math.nan, len(measured), len(measured))
    means = values.mean(axis=0)
    return Quality(
        accuracy_deg=float(means[0]),
        worst_deg=float(values[:, 0].max()),
        rms_s2s_deg=float(means[1]),
        std_deg=float(means[2]),
        n_targets=len(measured),
        n_lost=len(measured) - len(seen),
    )


def _on_target(xy: Floats, target: Target) -> TargetGaze:
    x, y = np.median(xy, axis=0).tolist() if len(xy) else (math.nan, math.nan)
    offset = float(offset_deg(x - target.x_deg, y - target.y_deg))
    return TargetGaze(target, x, y, offset, rms_s2s_deg(*xy.T), std_deg(*xy.T), len(xy))
