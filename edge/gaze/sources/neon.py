"""Gaze from the native recording folder of a Pupil Labs Neon.

Each stream is a pair of files per part: `.time` holds int64 nanoseconds, `.raw` rows laid out as `.dtype` says. Time 0
is the first picture of the scene camera, or the recording's `start_time` where its `.time` file is absent. Gaze is in
pixels of the 1600x1200 scene camera. A sample is invalid while the glasses are not worn and during the blinks that the
device found. Intrinsics come from `calibration.bin`; without it nominal ones are used and flagged.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.files import decode_document
from edge.gaze.geometry import Camera, Geometry, read_geometry
from edge.gaze.recorded import Declared, GazeTable, RecordedGaze, gaze_info

Times = npt.NDArray[np.int64]

SCENE_SIZE = (1600, 1200)
#: Without distortion; the focal length is what the device's own events imply (pixels against degrees of saccades).
NOMINAL = Camera(width_px=1600, height_px=1200, fx=892.0, fy=892.0, cx=800.0, cy=600.0, nominal=True)
#: The layout of calibration.bin, as the maker's reader documents it; what follows concerns the eye cameras.
_CALIBRATION = np.dtype([("version", "u1"), ("serial", "S6"), ("matrix", "<f8", (3, 3)), ("distortion", "<f8", (8,))])
FIXATION_EVENT = 1  #: `event_type` in the stream `fixations`


def matches(source: str) -> bool:
    """Whether `source` is a Neon recording folder."""
    folder = Path(source)
    return (folder / "info.json").is_file() and bool(_raw_files(folder, "gaze"))


def open_source(gaze: GazeConfig) -> RecordedGaze:
    """Read the recording whole.

    Raises
    ------
    SourceError
        A file is missing, or its times and rows differ in number.
    """
    folder = Path(gaze.source)
    info = _info(folder)
    t_ns, rows = read_stream(folder, "gaze")
    zero, zero_note = _zero(folder, info)
    valid = np.ones(len(t_ns), dtype=bool)
    worn_ns, worn = read_stream(folder, "worn", times_of="gaze", optional=True)
    if len(worn_ns):
        valid &= _held(worn_ns, worn["worn"] > 0, t_ns)
    _, blinks = read_stream(folder, "blinks", optional=True)
    for event in blinks:
        valid &= (t_ns < event["start_timestamp_ns"]) | (t_ns > event["end_timestamp_ns"])
    pupil, openness = _eyes(folder, t_ns)
    geometry = read_geometry(gaze.geometry) or Geometry(camera=_camera(folder))
    declared = Declared(
        units="px",
        frame="scene_px",
        hz=float(info.get("gaze_frequency", 0)),
        device=f"Neon {info.get('module_serial_number', '')}".strip(),
        note="; ".join([zero_note, *(["intrinsics: nominal, no calibration.bin"] if geometry.nominal else [])]),
    )
    table = GazeTable(
        t_ns - zero,
        rows["x"].astype(np.float64),
        rows["y"].astype(np.float64),
        valid=valid,
        pupil_mm=pupil,
        openness=openness,
    )
    return RecordedGaze(gaze_info(gaze, declared, geometry), table, geometry=geometry, offset_ms=gaze.offset_ms)


def read_stream(folder: Path, name: str, *, times_of: str = "", optional: bool = False) -> tuple[Times, Any]:
    """Return (times in int64 ns (n,), structured rows (n,)) of a stream over all its parts.

    Parameters
    ----------
    folder : Path
        The recording.
    name : str
        Stream, e.g. ``"gaze"``; a file resampled to 200 Hz is preferred to the parts.
    times_of : str
        The stream whose times hold where this one has none of its own.
    optional : bool
        Return empty arrays where the stream is absent.
    """
    raw_files, dtype_file = _raw_files(folder, name), folder / f"{name}.dtype"
    if not raw_files or not dtype_file.is_file():
        if optional:
            return np.empty(0, np.int64), np.empty(0, [("worn", "u1")])
        raise SourceError(str(folder), f"has no {name} stream", expected=f"'{name} ps1.raw' and '{name}.dtype'")
    dtype = np.dtype(ast.literal_eval(dtype_file.read_text(encoding="utf-8").strip()))
    times = []
    for raw in raw_files:
        own = raw.with_suffix(".time")
        borrowed = raw.with_name(raw.name.replace(name, times_of, 1)).with_suffix(".time") if times_of else own
        time_file = own if own.is_file() else borrowed
        if not time_file.is_file():
            raise SourceError(str(raw), "has no times", expected=own.name)
        times.append(np.fromfile(time_file, "<i8"))
    rows = [np.fromfile(raw, dtype) for raw in raw_files]
    for raw, t, r in zip(raw_files, times, rows, strict=True):
        if len(t) != len(r):
            raise SourceError(str(raw), "rows and times differ in number", expected=str(len(t)), got=str(len(r)))
    return np.concatenate(times), np.concatenate(rows)


def _raw_files(folder: Path, name: str) -> list[Path]:
    resampled = folder / f"{name}_200hz.raw"
    return [resampled] if resampled.is_file() else sorted(folder.glob(f"{name} ps*.raw"))


def _info(folder: Path) -> dict[str, Any]:
    try:
        info: dict[str, Any] = decode_document((folder / "info.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(str(folder / "info.json"), f"can't be read: {error}") from error
    return info


def _zero(folder: Path, info: dict[str, Any]) -> tuple[int, str]:
    parts = sorted(folder.glob("Neon Scene Camera v1 ps*.time"))
    if parts:
        return int(np.fromfile(parts[0], "<i8", count=1)[0]), "time 0 is the first scene picture"
    return int(info["start_time"]), "time 0 is the recording's start_time"


def _held(times: Times, values: npt.NDArray[np.bool_], at: Times) -> npt.NDArray[np.bool_]:
    """Return each value as it held at the times `at`."""
    return values[np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(values) - 1)]


def _eyes(folder: Path, t_ns: Times) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.float64] | None]:
    """Pupil diameter (mm, mean of both eyes) and openness: lid aperture over its 95th percentile in this recording."""
    eye_ns, eyes = read_stream(folder, "eye_state", optional=True)
    if not len(eye_ns) or "eyelid_aperture_left_mm" not in (eyes.dtype.names or ()):
        return None, None
    at = np.clip(np.searchsorted(eye_ns, t_ns, side="right") - 1, 0, len(eye_ns) - 1)
    pupil = (eyes["pupil_diameter_left_mm"].astype(float) + eyes["pupil_diameter_right_mm"]) / 2
    aperture = (eyes["eyelid_aperture_left_mm"].astype(float) + eyes["eyelid_aperture_right_mm"]) / 2
    wide = float(np.nanpercentile(aperture, 95))
    openness = np.clip(aperture / wide, 0, 1) if wide > 0 else np.full(len(aperture), np.nan)
    return pupil[at], openness[at]


def _camera(folder: Path) -> Camera:
    file = folder / "calibration.bin"
    if not file.is_file():
        return NOMINAL
    if file.stat().st_size < _CALIBRATION.itemsize:
        raise SourceError(str(file), "is too short", expected=f"at least {_CALIBRATION.itemsize} bytes")
    record = np.fromfile(file, _CALIBRATION, count=1)[0]
    matrix, distortion = record["matrix"], tuple(record["distortion"].tolist())
    fx, fy, cx, cy = (float(matrix[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2)))
    width, height = SCENE_SIZE
    return Camera(width_px=width, height_px=height, fx=fx, fy=fy, cx=cx, cy=cy, distortion=distortion).complete()
