"""Gaze from an EyeLink `.asc` file (as edf2asc writes it), monocular or binocular.

Samples between START and END, in screen pixels (GAZE_COORDS), milliseconds. A binocular sample is the mean of the eyes
that were tracked; an eye is lost where its place is `.`. Blocks keep their own times, so a pause between two is a gap.
Pupil size is in the tracker's arbitrary units and therefore left out. The screen's size and distance aren't in the file
and must be declared. Time 0 is the first START.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.geometry import read_geometry
from edge.gaze.recorded import Declared, GazeTable, RecordedGaze, gaze_info

LOST = "."


@dataclass(slots=True)
class Asc:
    """What an `.asc` file holds. Times in ms of the tracker's clock; events as (eye, start, end)."""

    times: list[float] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    fixations: list[tuple[str, float, float]] = field(default_factory=list)
    saccades: list[tuple[str, float, float]] = field(default_factory=list)
    blinks: list[tuple[str, float, float]] = field(default_factory=list)
    messages: list[tuple[float, str]] = field(default_factory=list)
    start: float = np.nan
    hz: float = 0.0
    eyes: int = 1
    screen: tuple[float, ...] = ()


def matches(source: str) -> bool:
    """Whether `source` is an `.asc` file."""
    return Path(source).suffix.lower() == ".asc" and Path(source).is_file()


def open_source(gaze: GazeConfig) -> RecordedGaze:
    """Read the file whole.

    Raises
    ------
    SourceError
        It can't be read or holds no samples.
    """
    asc = read_asc(Path(gaze.source))
    if not asc.times:
        raise SourceError(gaze.source, "holds no samples", fix="convert with edf2asc without -e (events only)")
    size = ""
    if len(asc.screen) == 4:
        width, height = asc.screen[2] - asc.screen[0], asc.screen[3] - asc.screen[1]
        size = f"; the file's screen is {width:g} x {height:g} pixels"
    declared = Declared(frame="screen_px", hz=asc.hz, device="EyeLink", note="time 0 is the first START" + size)
    geometry = read_geometry(gaze.geometry)
    t_ns = np.round((np.array(asc.times) - asc.start) * 1e6).astype(np.int64)
    table = GazeTable(t_ns, np.array(asc.x), np.array(asc.y))
    return RecordedGaze(gaze_info(gaze, declared, geometry), table, geometry=geometry, offset_ms=gaze.offset_ms)


def read_asc(path: Path) -> Asc:
    """Read samples, events and messages.

    Raises
    ------
    SourceError
        The file can't be read, or a sample line isn't one.
    """
    asc = Asc()
    recording = False
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                words = line.split()
                if not words:
                    continue
                if words[0][0].isdigit() and recording:
                    _sample(asc, words, f"{path} line {number}")
                elif words[0] == "START" and len(words) > 1:
                    recording = True
                    asc.start = float(words[1]) if np.isnan(asc.start) else asc.start
                elif words[0] == "END":
                    recording = False
                else:
                    _other(asc, words)
    except OSError as error:
        raise SourceError(str(path), f"can't be read: {error.strerror}") from error
    return asc


def _sample(asc: Asc, words: list[str], thing: str) -> None:
    columns = [words[1 + 3 * eye : 3 + 3 * eye] for eye in range(asc.eyes)]
    try:
        seen = [(float(c[0]), float(c[1])) for c in columns if LOST not in c]
        asc.times.append(float(words[0]))
    except (ValueError, IndexError):
        raise SourceError(thing, "is no sample", got=" ".join(words)) from None
    asc.x.append(sum(x for x, _ in seen) / len(seen) if seen else np.nan)
    asc.y.append(sum(y for _, y in seen) / len(seen) if seen else np.nan)


def _other(asc: Asc, words: list[str]) -> None:
    kind = words[0]
    if kind == "SAMPLES":
        asc.eyes = 2 if "LEFT" in words and "RIGHT" in words else 1
        if "RATE" in words:
            asc.hz = float(words[words.index("RATE") + 1])
    elif kind in ("EFIX", "ESACC", "EBLINK") and len(words) > 3:
        events = {"EFIX": asc.fixations, "ESACC": asc.saccades, "EBLINK": asc.blinks}[kind]
        events.append((words[1], float(words[2]), float(words[3])))
    elif kind == "MSG" and len(words) > 2:
        if words[2] == "GAZE_COORDS":
            asc.screen = tuple(float(w) for w in words[3:7])
        asc.messages.append((float(words[1]), " ".join(words[2:])))
