"""Gaze from a stream in an XDF file (LabRecorder), clock offsets and resets applied. Needs pyxdf (extra `host`).

`FILE.xdf` takes the one stream of type Gaze; `FILE.xdf#NAME` the stream of that name, type or source id. Time 0 is the
stream's first sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.description import channels_of, choose_channels, declared_by
from edge.gaze.geometry import read_geometry
from edge.gaze.recorded import GazeTable, RecordedGaze, gaze_info

GAZE_TYPES = ("gaze", "eyetracking", "eye tracking")


@dataclass(frozen=True, slots=True)
class XdfStream:
    """A stream of a file: times (n,) int64 ns of the recording computer's LSL clock; samples (n, c), or texts."""

    name: str
    type: str
    source_id: str
    hz: float
    n_channels: int
    t_ns: npt.NDArray[np.int64]
    samples: Any
    desc: Any

    @property
    def is_text(self) -> bool:
        return isinstance(self.samples, list)


def matches(source: str) -> bool:
    """Whether `source` names an XDF file, perhaps with a stream."""
    path = Path(source.partition("#")[0])
    return path.suffix.lower() in (".xdf", ".xdfz") and path.is_file()


def open_source(gaze: GazeConfig) -> RecordedGaze:
    """Read one stream whole.

    Raises
    ------
    SourceError
        The file can't be read, or holds none or more than one such stream, or it is text.
    """
    file, _, name = gaze.source.partition("#")
    stream = pick(gaze.source, read_streams(Path(file)), name)
    channels = channels_of(stream.desc)
    chosen = choose_channels(gaze.source, channels, stream.n_channels, gaze.columns)
    declared = declared_by(stream.desc, channels, chosen, stream.hz)
    declared.note = "; ".join(filter(None, [declared.note, "time 0 is the stream's first sample"]))
    geometry = read_geometry(gaze.geometry) or declared.geometry
    info = gaze_info(gaze, declared, geometry)
    column = {meaning: np.asarray(stream.samples[:, i], dtype=float) for meaning, i in chosen.items()}
    table = GazeTable.of_columns(stream.t_ns - stream.t_ns[0], column)
    return RecordedGaze(info, table, geometry=geometry, offset_ms=gaze.offset_ms)


def read_streams(path: Path, *, dejitter: bool = True) -> list[XdfStream]:
    """Read all streams, their clocks brought onto the recording computer's.

    Regular streams are de-jittered (a straight line through the stamps of each unbroken segment), unless `dejitter` is
    False: the stamps then are what was received.

    Raises
    ------
    SourceError
        The file can't be read, or pyxdf is missing.
    """
    try:
        import pyxdf
    except ImportError:
        raise SourceError(str(path), "needs pyxdf", fix="pip install 'emogaze-edge[host]'") from None
    try:
        with path.open("rb") as file:
            if file.read(4) not in (b"XDF:", b"\x1f\x8b\x08\x00", b"\x1f\x8b\x08\x08"):  # plain, or gzip
                raise ValueError("the file doesn't begin as one")
        streams, _ = pyxdf.load_xdf(str(path), dejitter_timestamps=dejitter, verbose=False)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(str(path), f"can't be read as XDF: {error}") from error
    return [_stream(stream) for stream in streams]


def pick(source: str, streams: list[XdfStream], name: str) -> XdfStream:
    """Return the one numeric stream that `name` means (its name, type or source id; empty: the one of gaze)."""
    wanted = name.lower()
    found = [
        s
        for s in streams
        if (wanted in (s.name.lower(), s.type.lower(), s.source_id.lower()) if wanted else s.type.lower() in GAZE_TYPES)
    ]
    listed = ", ".join(f"{s.name} ({s.type})" for s in streams)
    if len(found) != 1:
        problem = "holds no such stream" if not found else f"holds {len(found)} such streams"
        raise SourceError(source, problem, got=listed, fix="name one: FILE.xdf#NAME")
    if found[0].is_text:
        raise SourceError(source, f"stream {found[0].name} is text", expected="numbers", got=listed)
    if not len(found[0].t_ns):
        raise SourceError(source, f"stream {found[0].name} is empty")
    return found[0]


def _stream(stream: dict[str, Any]) -> XdfStream:
    info = stream["info"]

    def said(key: str) -> str:
        return str((info.get(key) or [""])[0] or "")

    return XdfStream(
        name=said("name"),
        type=said("type"),
        source_id=said("source_id"),
        hz=float(said("nominal_srate") or 0),
        n_channels=int(said("channel_count") or 0),
        t_ns=np.round(np.asarray(stream["time_stamps"], dtype=float) * 1e9).astype(np.int64),
        samples=stream["time_series"],
        desc=(info.get("desc") or [None])[0],
    )
