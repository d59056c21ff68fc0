"""Gaze on a series of targets, from a live source: the session behind `emogaze calibrate`."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge.clock import NS_PER_S, Clock, monotonic_ns
from edge.errors import DataError, StalledError
from edge.files import write_atomic
from edge.gaze.geometry import Geometry
from edge.gaze.mapping import Mapping
from edge.gaze.sources.base import GazeInfo, GazeSource
from edge.gaze.sources.csv import write_table
from edge.gaze.validation import Target
from edge.records import RawGaze

Place = tuple[float, float]
Cue = Callable[[int, Place], None]
SHARES = (0.1, 0.5, 0.9)  #: of a picture's or a screen's sides
ANGLES_DEG = ((-10.0, 0.0, 10.0), (7.0, 0.0, -7.0))
POLL_S = 0.01


@dataclass
class Session:
    """What was looked at when, and the gaze of all of it, as its source gave it."""

    places: list[Place]
    spans_ns: list[tuple[int, int]] = field(default_factory=list)
    gaze: list[RawGaze] = field(default_factory=list)

    def targets(self, mapping: Mapping) -> list[Target]:
        """Return the targets in degrees."""
        mapped = [mapping.without_calibration(RawGaze(0, 0, x, y)) for x, y in self.places]
        return [Target(*span, place.x_deg, place.y_deg) for span, place in zip(self.spans_ns, mapped, strict=False)]

    def write(self, folder: Path, info: GazeInfo, geometry: Geometry | None) -> None:
        """Write `gaze.csv` and `targets.csv`, as `python -m calibration gaze` takes them; times from the first look."""
        zero = self.spans_ns[0][0]
        shifted = [RawGaze(s.seq, s.t_ns - zero, *_values(s)) for s in self.gaze]
        write_table(folder / "gaze.csv", shifted, info, geometry)
        rows = [
            f"{(start - zero) / NS_PER_S:.6f},{(end - zero) / NS_PER_S:.6f},{x:g},{y:g},fit"
            for (start, end), (x, y) in zip(self.spans_ns, self.places, strict=True)
        ]
        write_atomic(folder / "targets.csv", "\n".join(["start_s,end_s,x,y,use", *rows]) + "\n")


def collect(
    source: GazeSource,
    places: Sequence[Place],
    cue: Cue,
    seconds: float,
    *,
    clock: Clock = monotonic_ns,
    sleep: Callable[[float], object] = time.sleep,
) -> Session:
    """Take gaze on each place in turn.

    Parameters
    ----------
    source : GazeSource
        Live.
    places : sequence of (float, float)
        In the frame and unit of the source.
    cue : callable
        Called with the number and the place before each look; returns when the look has begun.
    seconds : float
        How long each look lasts.

    Raises
    ------
    StalledError
        No sample came during a look.
    """
    session = Session(list(places))
    for number, place in enumerate(places):
        cue(number, place)
        source.read_until(clock())
        start_ns = clock()
        end_ns = start_ns + round(seconds * NS_PER_S)
        came = 0
        while clock() < end_ns:
            sleep(POLL_S)
            samples = source.read_until(clock())
            came += len(samples)
            session.gaze += samples
        if not came:
            raise StalledError(source.info.source, f"no sample came while target {number + 1} was looked at")
        session.spans_ns.append((start_ns, end_ns))
    return session


def nine_places(info: GazeInfo, geometry: Geometry | None) -> list[Place]:
    """Return a grid of nine places in the frame and unit of a source, from top left to bottom right.

    On a picture or a screen at 10, 50 and 90 % of its sides; for directions at -10, 0, 10 and 7, 0, -7 degrees.

    Raises
    ------
    DataError
        Directions as vectors, or pixels without a geometry: give the places yourself.
    """
    if info.units == "deg":
        return [(x, y) for y in ANGLES_DEG[1] for x in ANGLES_DEG[0]]
    section = None
    if geometry is not None:
        section = geometry.screen if info.frame.startswith("screen") else geometry.camera
    if info.units == "vector" or (info.units == "px" and section is None):
        raise DataError(info.source, "leaves open where nine targets are", fix="name them with --targets")
    width, height = (section.width_px, section.height_px) if section and info.units == "px" else (1, 1)
    downward = SHARES if info.origin == "top-left" else SHARES[::-1]
    return [(x * width, y * height) for y in downward for x in SHARES]


def read_places(path: Path) -> list[Place]:
    """Read places from a CSV with the columns x and y.

    Raises
    ------
    DataError
        It can't be read, or holds none.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            places = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(str(path), f"can't be read as targets: {error}", expected="columns x,y") from error
    if not places:
        raise DataError(str(path), "holds no target")
    return places


def _values(s: RawGaze) -> tuple[float, float, float, bool, float, float]:
    return s.x, s.y, s.confidence, s.valid, s.pupil_mm, s.openness
