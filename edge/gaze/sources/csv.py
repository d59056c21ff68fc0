"""Gaze from a table: CSV (comma, semicolon or tab; with or without a byte-order mark) or a structured `.npy`.

Times are taken as they are, in the declared unit, relative to the clip's zero (its first picture). Lines that start
with `#` before the header may declare what the settings leave open, as `# key: value` with the keys time_unit, units,
frame, origin, geometry (TOML), hz, device and simulated.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from edge.config import GazeConfig
from edge.errors import ConfigError, EmptyError, SourceError
from edge.files import write_atomic
from edge.gaze.geometry import Geometry, inline_toml, read_geometry
from edge.gaze.recorded import Declared, GazeTable, RecordedGaze, Undeclared, gaze_info
from edge.gaze.sources.base import GazeInfo
from edge.records import RawGaze

NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
COLUMNS = ("t", "x", "y", "valid", "confidence", "pupil_mm", "openness")
MAX_TIME_NS = 4.5e18  #: so that a time and `gaze.offset_ms` fit into 64 bits together
MISSING = {"", ".", "-", "na", "n/a", "nan", "null", "none"}
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def matches(source: str) -> bool:
    """Whether `source` looks like a table."""
    return Path(source).suffix.lower() in (".csv", ".tsv", ".txt", ".npy") and Path(source).is_file()


def open_source(gaze: GazeConfig) -> RecordedGaze:
    """Read the table whole.

    Raises
    ------
    SourceError
        The file can't be read, lacks a column or holds no sample.
    ConfigError
        The time unit, or the frame and unit of x and y, is undeclared.
    """
    path = Path(gaze.source)
    is_npy = path.suffix.lower() == ".npy"
    declared, names = _npy_head(path) if is_npy else _text_head(path)
    geometry = read_geometry(gaze.geometry) or declared.geometry
    unit = gaze.time_unit or declared.time_unit
    also = [] if unit in NS else [Undeclared("the unit of the times", "gaze.time_unit=s (or ms, us, ns)")]
    if lost := missing_columns(names, gaze.columns):
        if all(map(_is_number, names)):
            raise SourceError(gaze.source, "has no header line", expected="names such as t,x,y", got=",".join(names))
        settings = " --set ".join(f"gaze.columns.{meaning}=NAME" for meaning in lost)
        what = f"the column of {', '.join(lost)} (there are {', '.join(names) or 'none'})"
        also.append(Undeclared(what, settings))
    info = gaze_info(gaze, declared, geometry, also=also)
    chosen = choose_columns(gaze.source, names, gaze.columns)
    values = np.load(path, allow_pickle=False) if is_npy else _read_text(path, chosen)
    table = _table(values, chosen, NS[unit], gaze.source)
    return RecordedGaze(info, table, geometry=geometry, offset_ms=gaze.offset_ms)


def write_table(path: Path, samples: Sequence[RawGaze], info: GazeInfo, geometry: Geometry | None) -> None:
    """Write samples as a CSV that declares all that `info` and `geometry` say, to be read back without settings."""
    used = geometry
    if geometry is not None:  # the line holds one section: that of the frame
        on_screen = info.frame.startswith("screen")
        used = Geometry(screen=geometry.screen) if on_screen else Geometry(camera=geometry.camera)
    said = {
        "simulated": "yes" if info.simulated else "",
        "note": info.note,
        "device": info.device,
        "time_unit": "s",
        "frame": info.frame,
        "units": info.units,
        "origin": info.origin,
        "hz": f"{info.hz_declared:g}" if info.hz_declared else "",
        "geometry": inline_toml(used) if used else "",
    }
    lines = [f"# {key}: {value}" for key, value in said.items() if value]
    lines.append(",".join(COLUMNS))
    for s in samples:
        numbers = (s.x, s.y, int(s.valid), s.confidence, s.pupil_mm, s.openness)
        lines.append(f"{s.t_ns / 1e9:.9f}," + ",".join("" if math.isnan(v) else f"{v:.7g}" for v in numbers))
    write_atomic(path, "\n".join(lines) + "\n")


def missing_columns(names: list[str], wanted: dict[str, str]) -> list[str]:
    """Return which of t, x and y no column is declared for and none is called."""
    return [meaning for meaning in ("t", "x", "y") if meaning not in wanted and meaning not in names]


def choose_columns(source: str, names: list[str], wanted: dict[str, str]) -> dict[str, str]:
    """Return {meaning: column name} of the columns that are there; declared ones must be.

    Raises
    ------
    ConfigError
        An unknown meaning is declared.
    SourceError
        A declared column is absent.
    """
    if unknown := sorted(set(wanted) - set(COLUMNS)):
        raise ConfigError("gaze.columns", f"there is no {unknown[0]!r}", expected="one of " + ", ".join(COLUMNS))
    if absent := [name for name in wanted.values() if name not in names]:
        raise SourceError(source, f"has no column {', '.join(map(repr, absent))}", got=", ".join(names))
    chosen = {meaning: wanted.get(meaning, meaning) for meaning in COLUMNS}
    return {meaning: name for meaning, name in chosen.items() if name in names}


def _npy_head(path: Path) -> tuple[Declared, list[str]]:
    try:
        names = np.load(path, allow_pickle=False, mmap_mode="r").dtype.names
    except (OSError, ValueError) as error:
        raise SourceError(str(path), f"can't be read: {error}") from error
    if names is None:
        raise SourceError(str(path), "has no named fields", expected="a structured array with fields such as t, x, y")
    return Declared(), list(names)


def _text_head(path: Path) -> tuple[Declared, list[str]]:
    """Read the comments and the header of a table."""
    with _table_rows(path) as (comments, names, _):
        return _declared(comments), names


def _read_text(path: Path, chosen: dict[str, str]) -> dict[str, array[float]]:
    """Read the columns that have a meaning."""
    with _table_rows(path) as (comments, names, rows):
        places = {name: names.index(name) for name in chosen.values()}
        return _parse(rows, places, path, first=len(comments) + 2, comma_decimals=rows.dialect.delimiter != ",")


@contextmanager
def _table_rows(path: Path) -> Iterator[tuple[list[str], list[str], Any]]:
    """Give the comment lines, the column names and a reader of the rows; name the file where it can't be read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            comments, header = _head(file)
            if not header:
                raise EmptyError(str(path), "is empty: it has no header line")
            delimiter = next((d for d in "\t;" if d in header), ",")
            first = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True), [])
            names = [name.strip() for name in first]
            yield comments, names, csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    except FileNotFoundError:
        raise SourceError(str(path), "no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(str(path), f"can't be read as a table: {error}") from error


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+0-9.,eE]*[0-9]", text) is not None


def _head(file: Iterator[str]) -> tuple[list[str], str]:
    comments: list[str] = []
    for line in file:
        if not line.startswith("#"):
            return comments, line.rstrip("\r\n")
        comments.append(line[1:].strip())
    return comments, ""


def _parse(
    rows: Iterator[list[str]], places: dict[str, int], path: Path, *, first: int, comma_decimals: bool
) -> dict[str, array[float]]:
    columns = {name: array("d") for name in places}
    targets = [(name, place, columns[name]) for name, place in places.items()]
    for number, row in enumerate(rows, first):
        if not row:
            continue
        for name, place, column in targets:
            text = row[place].strip() if place < len(row) else ""
            try:
                column.append(float(text.replace(",", ".") if comma_decimals else text))
            except ValueError:
                column.append(_word(text, f"{path} line {number} column {name!r}"))
    return columns


def _word(text: str, thing: str) -> float:
    low = text.lower()
    if low in MISSING:
        return math.nan
    if low in WORDS:
        return WORDS[low]
    raise SourceError(thing, f"{text!r} is no number")


def _declared(comments: list[str]) -> Declared:
    said: dict[str, str] = {}
    for line in comments:
        key, colon, value = line.partition(":")
        if colon:
            said[key.strip().lower()] = value.strip()
    hz = said.get("hz", "")
    return Declared(
        time_unit=said.get("time_unit", ""),
        units=said.get("units", ""),
        frame=said.get("frame", ""),
        origin=said.get("origin", ""),
        geometry=read_geometry(said.get("geometry", "")),
        hz=float(hz) if hz.replace(".", "", 1).isdigit() else 0.0,
        simulated=said.get("simulated", "").lower() in ("yes", "true", "1"),
        device=said.get("device", ""),
        note=said.get("note", ""),
    )


def _table(values: Any, chosen: dict[str, str], ns: float, source: str) -> GazeTable:
    column = {meaning: np.asarray(values[name], dtype=np.float64) for meaning, name in chosen.items()}
    with np.errstate(over="ignore"):
        times = column["t"] * ns
    if lost := int(np.count_nonzero(np.isnan(times))):
        raise SourceError(source, f"{lost} of {len(times)} samples have no time")
    if far := int(np.count_nonzero(np.abs(times) > MAX_TIME_NS)):
        problem = f"{far} of {len(times)} samples have a time more than 140 years from 0"
        raise SourceError(source, problem, fix="check gaze.time_unit")
    return GazeTable.of_columns(np.round(times).astype(np.int64), column)
