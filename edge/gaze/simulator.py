"""A seeded simulator of gaze: fixations with noise and drift, saccades on the main sequence, blinks.

It exists for demos and tests. What it writes carries `# simulated: yes`, so that every output made from it says so.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.errors import SourceError
from edge.gaze.geometry import Camera, Geometry
from edge.gaze.mapping import CameraPlane
from edge.gaze.sources.base import GazeInfo
from edge.gaze.sources.csv import write_table
from edge.records import NAN, RawGaze


@dataclass(frozen=True, slots=True)
class Look:
    """Look at (x, y) in degrees (right, up) from `start_s` to `end_s`.

    The saccade there ends at `start_s` if the look before leaves it time, else as late as the main sequence demands.
    """

    start_s: float
    end_s: float
    x_deg: float
    y_deg: float


@dataclass(frozen=True, slots=True)
class EyeModel:
    """Constants of the simulated eye.

    Main sequence: a saccade of amplitude A (deg) lasts 2.2 A + 21 ms (Carpenter, 1988); its course is that of minimum
    jerk. `noise_deg` is the standard deviation of white noise per axis, `drift_deg_s` that of the drift's speed.
    """

    noise_deg: float = 0.03
    drift_deg_s: float = 0.3
    blinks_per_min: float = 12.0
    blink_ms: tuple[float, float] = (100.0, 250.0)
    fixation_ms: tuple[float, float] = (180.0, 600.0)
    field_deg: tuple[float, float] = (15.0, 10.0)


@dataclass(frozen=True, slots=True)
class SimulatedGaze:
    """Samples and the truth behind them: t_s, x_deg, y_deg, openness (n,) and valid (n,); `fixations` in seconds."""

    t_s: npt.NDArray[np.float64]
    x_deg: npt.NDArray[np.float64]
    y_deg: npt.NDArray[np.float64]
    openness: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]
    fixations: list[tuple[float, float]]
    blinks: list[tuple[float, float]]


def saccade_s(amplitude_deg: float) -> float:
    """Return the duration (s) of a saccade by the main sequence."""
    return (2.2 * amplitude_deg + 21.0) / 1000.0


def free_looks(duration_s: float, seed: int, eye: EyeModel | None = None) -> list[Look]:
    """Return a seeded scan path: fixations of random length at random places, saccades between them."""
    eye = eye or EyeModel()
    rng = np.random.default_rng(seed)
    looks: list[Look] = []
    t, place = 0.0, (0.0, 0.0)
    while t < duration_s:
        end = min(duration_s, t + rng.uniform(*eye.fixation_ms) / 1000)
        looks.append(Look(t, end, *place))
        target = (rng.uniform(-1, 1) * eye.field_deg[0], rng.uniform(-1, 1) * eye.field_deg[1])
        t = end + saccade_s(math.dist(place, target))
        place = target
    return looks


def simulate(looks: Sequence[Look], hz: float, seed: int, eye: EyeModel | None = None) -> SimulatedGaze:
    """Sample the movement that a list of looks describes.

    Parameters
    ----------
    looks : sequence of Look
        In order of time, not overlapping; between two, the eye dwells on the first and then jumps.
    hz : float
        Sample rate. Movement, drift and blinks depend on the seed alone, so two rates sample one movement.
    seed : int
        Seeds drift, blinks and noise.

    Raises
    ------
    ValueError
        No look, or looks that overlap.
    """
    eye = eye or EyeModel()
    if not looks or any(a.end_s > b.start_s for a, b in pairwise(looks)):
        raise ValueError("looks must be given, in order of time, without overlap")
    rng = np.random.default_rng(seed)
    drift = rng.normal(0.0, eye.drift_deg_s, (len(looks), 2))
    blinks = _blinks(looks, rng, eye)
    t = np.arange(round(looks[0].start_s * hz), math.floor(looks[-1].end_s * hz + 1e-6) + 1) / hz
    xy, fixations = _path(looks, drift, t)
    openness = _openness(t, blinks)
    xy += rng.normal(0.0, eye.noise_deg, xy.shape)
    xy[:, 1] -= 3.0 * (1.0 - openness)  # the falling lid pulls the apparent gaze down
    valid = openness > 0.2
    return SimulatedGaze(t, xy[:, 0], xy[:, 1], openness, valid, fixations, blinks)


def _path(
    looks: Sequence[Look], drift: npt.NDArray[np.float64], t: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], list[tuple[float, float]]]:
    xy = np.empty((len(t), 2))
    fixations = []
    start = looks[0].start_s
    for i, look in enumerate(looks):
        following = looks[i + 1] if i + 1 < len(looks) else None
        here = np.array([look.x_deg, look.y_deg])
        end = look.end_s
        if following:
            there = np.array([following.x_deg, following.y_deg])
            duration = saccade_s(float(np.linalg.norm(there - here)))
            end = max(look.end_s, following.start_s - duration)
        steady = (t >= start - 1e-12) & (t <= end + 1e-12)
        xy[steady] = here + drift[i] * (t[steady, None] - start)
        fixations.append((start, end))
        if following:
            flight = (t > end + 1e-12) & (t < end + duration - 1e-12)
            u = (t[flight, None] - end) / duration
            begin = here + drift[i] * (end - start)
            xy[flight] = begin + (there - begin) * (10 * u**3 - 15 * u**4 + 6 * u**5)
            start = end + duration
    return xy, fixations


def _blinks(looks: Sequence[Look], rng: np.random.Generator, eye: EyeModel) -> list[tuple[float, float]]:
    blinks: list[tuple[float, float]] = []
    if eye.blinks_per_min <= 0:
        return blinks
    t = looks[0].start_s + rng.exponential(60 / eye.blinks_per_min)
    while t < looks[-1].end_s - 0.5:
        length = rng.uniform(*eye.blink_ms) / 1000
        blinks.append((t, t + length))
        t += length + 0.5 + rng.exponential(60 / eye.blinks_per_min)
    return blinks


def _openness(t: npt.NDArray[np.float64], blinks: list[tuple[float, float]], ramp_s: float = 0.04) -> npt.NDArray:
    openness = np.ones(len(t))
    for start, end in blinks:
        lid = np.interp(t, [start - ramp_s, start, end, end + ramp_s], [1.0, 0.0, 0.0, 1.0])
        openness = np.minimum(openness, lid)
    return openness


def write_csv(path: Path, gaze: SimulatedGaze, *, seed: int, hz: float, camera: Camera | None = None) -> None:
    """Write a CSV that declares its units and that it is simulated.

    Parameters
    ----------
    path : Path
        The file.
    gaze : SimulatedGaze
        What to write.
    seed, hz
        Go into the head.
    camera : Camera, optional
        Write pixels of this camera (and its intrinsics into the head) instead of degrees.
    """
    places = list(zip(gaze.x_deg.tolist(), gaze.y_deg.tolist(), strict=True))
    info = GazeInfo(
        str(path), "direction", "deg", "top-left", False, hz, simulated=True, note=f"simulated, seed {seed}"
    )
    geometry = None
    if camera is not None:
        plane, geometry = CameraPlane(camera), Geometry(camera=camera)
        places = [plane.place(*place) for place in places]
        info = replace(info, frame="scene_px", units="px")
    rows = zip(gaze.t_s.tolist(), places, gaze.valid.tolist(), gaze.openness.tolist(), strict=True)
    samples = [RawGaze(i, round(t * 1e9), x, y, 1.0, ok, NAN, lid) for i, (t, (x, y), ok, lid) in enumerate(rows)]
    write_table(path, samples, info, geometry)


def read_looks(path: Path, camera: Camera | None = None) -> list[Look]:
    """Read looks from a CSV with the columns start_s, end_s, x, y: pixels of `camera`, or degrees without one.

    Raises
    ------
    SourceError
        The file can't be read or isn't such a table.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[float(row[name]) for name in ("start_s", "end_s", "x", "y")] for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise SourceError(str(path), f"can't be read: {error}", expected="columns start_s,end_s,x,y") from error
    plane = CameraPlane(camera) if camera else None
    return [Look(start, end, *(plane.direction(x, y) if plane else (x, y))) for start, end, x, y in rows]
