"""The delay between a scene camera and a gaze stream, from the two together.

Who keeps looking at one point of the world while turning the head moves gaze through the scene picture exactly as the
picture's content moves. The cross-correlation of the two velocities therefore peaks at the lag between their clocks,
whatever part of it is transport, exposure or stamping.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.capture.base import FrameSource
from edge.errors import DataError
from edge.gaze.fixations import usable
from edge.records import GazeSample

Floats = npt.NDArray[np.float64]
GRID_HZ = 500.0
WORK_WIDTH_PX = 160
CLEAR_CORRELATION = 0.5  #: below this no delay is claimed
MIN_OVERLAP_S = 3.0


@dataclass(frozen=True, slots=True)
class Motion:
    """A velocity over time: `t_s` (n,) and `v` (n, 2) in scene pixels per second."""

    t_s: Floats
    v: Floats


@dataclass(frozen=True, slots=True)
class SyncEstimate:
    """`offset_ms` is what to add to gaze times (`gaze.offset_ms`); `clear` says whether the peak can be trusted."""

    offset_ms: float
    correlation: float
    overlap_s: float
    clear: bool


def image_motion(source: FrameSource) -> Motion:
    """Return the motion of the picture's content as a whole, by phase correlation of successive pictures.

    Raises
    ------
    DataError
        Fewer than three pictures.
    """
    import cv2

    times, speeds = [], []
    before: tuple[int, npt.NDArray[np.float32]] | None = None
    window = None
    while (frame := source.read()) is not None:
        scale = frame.width / WORK_WIDTH_PX
        size = (WORK_WIDTH_PX, max(1, round(frame.height / scale)))
        gray = cv2.cvtColor(cv2.resize(frame.image, size, interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2GRAY)
        small = gray.astype(np.float32)
        window = cv2.createHanningWindow(size, cv2.CV_32F) if window is None else window
        if before is not None and frame.t_ns > before[0]:
            (dx, dy), _ = cv2.phaseCorrelate(before[1], small, window)
            step_s = (frame.t_ns - before[0]) / 1e9
            times.append((frame.t_ns + before[0]) / 2e9)
            speeds.append((dx * scale / step_s, dy * scale / step_s))
        before = (frame.t_ns, small)
    if len(times) < 2:
        raise DataError(source.info.source, "has too few pictures to see them move", expected="at least 3")
    return Motion(np.array(times), np.array(speeds))


def gaze_motion(samples: Iterable[GazeSample]) -> Motion:
    """Return the velocity of gaze in the scene picture between successive usable samples.

    Raises
    ------
    DataError
        Fewer than three usable samples with pixels.
    """
    good = [(s.t_ns / 1e9, s.x_px, s.y_px) for s in samples if usable(s) and np.isfinite(s.x_px)]
    table = np.array(good).reshape(-1, 3)
    step = np.diff(table[:, 0])
    near = (step > 0) & (step < 0.1)
    if near.sum() < 2:
        raise DataError("gaze", "has too few usable samples in scene pixels", expected="at least 3")
    middle = (table[1:, 0] + table[:-1, 0]) / 2
    return Motion(middle[near], (np.diff(table[:, 1:], axis=0)[near]) / step[near, None])


def estimate_offset(image: Motion, gaze: Motion, max_lag_ms: float = 500.0) -> SyncEstimate:
    """Return the offset of gaze times at which both motions agree best.

    Parameters
    ----------
    image, gaze : Motion
        Both in scene pixels per second, each on its own clock.
    max_lag_ms : float
        Offsets up to this are tried.

    Raises
    ------
    DataError
        The two overlap for less than three seconds.
    """
    max_lag_s = max_lag_ms / 1000
    start = max(image.t_s[0], gaze.t_s[0] + max_lag_s)
    end = min(image.t_s[-1], gaze.t_s[-1] - max_lag_s)
    if end - start < MIN_OVERLAP_S:
        raise DataError(
            "synchronisation",
            "the clip and the gaze share too little time",
            expected=f"at least {MIN_OVERLAP_S + 2 * max_lag_s:g} s",
            got=f"{max(0.0, min(image.t_s[-1], gaze.t_s[-1]) - max(image.t_s[0], gaze.t_s[0])):.1f} s",
        )
    grid = np.arange(start, end, 1 / GRID_HZ)
    smooth_s = float(np.median(np.diff(image.t_s)))  # gaze is averaged over a picture's interval, as the picture is
    reference = _resampled(image, grid, 0.0)
    lags = np.arange(-round(max_lag_s * GRID_HZ), round(max_lag_s * GRID_HZ) + 1)
    wide = np.arange(start - max_lag_s - 1 / GRID_HZ, end + max_lag_s + 1 / GRID_HZ, 1 / GRID_HZ)
    moving = _resampled(gaze, wide, smooth_s)
    first = round((start - wide[0]) * GRID_HZ)
    # With an offset of `lag` the gaze at time t bears the stamp t - lag.
    scores = np.array([_correlation(reference, moving[first - k : first - k + len(grid)]) for k in lags])
    best = int(np.argmax(scores))
    offset_ms = (lags[best] + _peak(scores, best)) / GRID_HZ * 1000
    at_edge = best in (0, len(lags) - 1)
    clear = bool(scores[best] >= CLEAR_CORRELATION and not at_edge)
    return SyncEstimate(float(offset_ms), float(scores[best]), float(end - start), clear)


def _resampled(motion: Motion, grid: Floats, smooth_s: float) -> Floats:
    """Return the motion on `grid`, outliers (saccades) clipped to three robust deviations, mean removed."""
    columns = []
    for v in motion.v.T:
        middle = np.median(v)
        spread = 1.4826 * np.median(np.abs(v - middle)) or float(np.std(v))
        column = np.interp(grid, motion.t_s, np.clip(v, middle - 3 * spread, middle + 3 * spread))
        width = round(smooth_s * GRID_HZ)
        columns.append(np.convolve(column, np.ones(width) / width, mode="same") if width > 1 else column)
    return np.column_stack(columns) - np.mean(columns, axis=1)


def _correlation(a: Floats, b: Floats) -> float:
    """Return the Pearson correlation over both axes together."""
    b = b - b.mean(axis=0)
    norm = float(np.sqrt(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / norm if norm > 0 else 0.0


def _peak(scores: Floats, best: int) -> float:
    """Return where between its neighbours the peak lies: the vertex of a parabola through three points."""
    if best in (0, len(scores) - 1):
        return 0.0
    left, middle, right = scores[best - 1 : best + 2]
    bend = left - 2 * middle + right
    return float((left - right) / (2 * bend)) if bend < 0 else 0.0
