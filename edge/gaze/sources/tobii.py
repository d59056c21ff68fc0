"""Gaze from Tobii tab-separated exports: the SDK's raw columns (Studio, TX300) and Pro Lab's.

Each eye is used where its own validity says so (SDK: 0 or 1 of 0..4; Pro Lab: `Valid`); gaze is the mean of the eyes in
use, pupil likewise. Gaze is on the screen, normalised or in pixels, origin top left; the screen's size and distance
aren't in the file and must be declared. Time 0 is the first sample.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.config import GazeConfig
from edge.errors import EmptyError, SourceError
from edge.gaze.geometry import read_geometry
from edge.gaze.recorded import Declared, GazeTable, RecordedGaze, gaze_info

Floats = npt.NDArray[np.float64]
#: SDK validity: 0 found for certain, 1 probably, 2 uncertain which eye, 3 probably not, 4 not found.
LAST_VALID_CODE = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the columns of one export: time, and per eye x, y, pupil, validity."""

    time: str
    time_ns: float
    frame: str
    eyes: tuple[tuple[str, str, str, str], ...]


def matches(source: str) -> bool:
    """Whether `source` is a table with the columns of a Tobii export."""
    path = Path(source)
    if path.suffix.lower() not in (".tsv", ".txt", ".csv") or not path.is_file():
        return False
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return find_layout(file.readline().rstrip("\r\n").split("\t")) is not None


def open_source(gaze: GazeConfig) -> RecordedGaze:
    """Read the export whole.

    Raises
    ------
    SourceError
        It can't be read, or its columns are those of no known export.
    """
    path = Path(gaze.source)
    with _reading(path), path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        layout = find_layout(list(rows.fieldnames or ()))
        if layout is None:
            raise SourceError(
                str(path), "has the columns of no known Tobii export", got=", ".join(rows.fieldnames or ())
            )
        times, eyes = _columns(rows, layout)
    if not len(times):
        raise EmptyError(str(path), "holds no gaze sample")
    x, y, pupil, valid = _cyclopean(eyes)
    declared = Declared(frame=layout.frame, device="Tobii", note="time 0 is the first sample")
    geometry = read_geometry(gaze.geometry)
    table = GazeTable(np.round((times - times[0]) * layout.time_ns).astype(np.int64), x, y, valid=valid, pupil_mm=pupil)
    return RecordedGaze(gaze_info(gaze, declared, geometry), table, geometry=geometry, offset_ms=gaze.offset_ms)


def find_layout(names: list[str]) -> Layout | None:
    """Return the layout that a header follows, or None."""
    if {"Time", "LGazePos2dx", "RGazePos2dx", "LValidity", "RValidity"} <= set(names):
        sdk = tuple((f"{e}GazePos2dx", f"{e}GazePos2dy", f"{e}PupilDm", f"{e}Validity") for e in "LR")
        return Layout("Time", 1e3, "screen_norm", sdk)
    time = next((name for name in names if re.fullmatch(r"Recording timestamp( \[(μs|µs|us|ms)\])?", name)), None)
    if time is None:
        return None
    for suffix in (" [DACS px]", " (DACS px)", ""):
        if f"Gaze point left X{suffix}" in names:
            pupil = " [mm]" if "Pupil diameter left [mm]" in names else ""
            eyes = tuple(
                (
                    f"Gaze point {e} X{suffix}",
                    f"Gaze point {e} Y{suffix}",
                    f"Pupil diameter {e}{pupil}",
                    f"Validity {e}",
                )
                for e in ("left", "right")
            )
            return Layout(time, 1e3 if "s]" in time and "ms]" not in time else 1e6, "screen_px", eyes)
    return None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise SourceError(str(path), "no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise SourceError(str(path), f"can't be read: {error}") from error


def _columns(rows: Iterator[Mapping[str, str]], layout: Layout) -> tuple[Floats, Floats]:
    """Return times (n,) in the file's unit and eyes (n, 2, 4): x, y, pupil, valid."""
    times, eyes = [], []
    for row in rows:
        if row.get("Sensor") not in (None, "", "Eye Tracker"):
            continue
        times.append(float(row[layout.time]))
        eyes.append([[*map(_number, (row[x], row[y], row.get(p))), _valid(row.get(v))] for x, y, p, v in layout.eyes])
    return np.array(times), np.array(eyes, dtype=float).reshape(-1, 2, 4)


def _number(text: str | None) -> float:
    return float(text.replace(",", ".")) if text else np.nan


def _valid(text: str | None) -> float:
    word = (text or "").strip().lower()
    return float(int(float(word)) <= LAST_VALID_CODE if word.replace(".", "", 1).isdigit() else word == "valid")


def _cyclopean(eyes: Floats) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """Return x, y, pupil and valid (n,): means over the eyes in use."""
    used = (eyes[:, :, 3] > 0) & np.isfinite(eyes[:, :, 0]) & np.isfinite(eyes[:, :, 1])
    n = used.sum(axis=1)
    x, y = (np.where(used, eyes[:, :, i], 0).sum(axis=1) / np.where(n, n, np.nan) for i in (0, 1))
    seen = used & (eyes[:, :, 2] > 0)
    n_seen = seen.sum(axis=1)
    pupil = np.where(seen, eyes[:, :, 2], 0).sum(axis=1) / np.where(n_seen, n_seen, np.nan)
    return x, y, pupil, n > 0
