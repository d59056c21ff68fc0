"""The gaze of a recorded session, as ``session:FOLDER?identity=FILE``; time 0 is the session's first frame."""

from __future__ import annotations

from dataclasses import replace

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.events import gaze_from_plain
from edge.gaze.geometry import geometry_from
from edge.gaze.sources.base import GazeInfo, GazeSource
from edge.records import Event, RawGaze
from edge.session import SOURCE_PREFIX


def matches(source: str) -> bool:
    return source.startswith(SOURCE_PREFIX)


def open_source(gaze: GazeConfig) -> GazeSource:
    return SessionGaze(gaze)


class SessionGaze(GazeSource):
    """The samples as the session's own source gave them, with what that source declared.

    Raises
    ------
    SourceError
        It holds no gaze: its consent didn't cover it.
    RecordingError
        The session can't be opened.
    """

    def __init__(self, gaze: GazeConfig) -> None:
        from edge.session.read import parse_source, read_events

        folder, identity = parse_source(gaze.source)
        events = list(read_events(folder, identity))
        header = next((e.payload for e in events if e.kind == "session"), {})
        self._samples = _samples(events, round(gaze.offset_ms * 1e6))
        if not self._samples or "gaze" not in header:
            raise SourceError(gaze.source, "holds no gaze", fix="gaze is a purpose of its own in the consent")
        self.info = GazeInfo(**{**header["gaze"], "source": gaze.source, "live": False})
        self.geometry = geometry_from(header["geometry"], thing=gaze.source) if header.get("geometry") else None
        self._position = 0

    def read_until(self, t_ns: int) -> list[RawGaze]:
        begin = self._position
        while not self.ended and self._samples[self._position].t_ns <= t_ns:
            self._position += 1
        return self._samples[begin : self._position]

    @property
    def ended(self) -> bool:
        return self._position >= len(self._samples)

    def close(self) -> None:
        self._position = len(self._samples)


def _samples(events: list[Event], offset_ns: int) -> list[RawGaze]:
    from edge.session.read import origin_ns

    shift = offset_ns - origin_ns(events)
    rows = (row for event in events if event.kind in ("score", "gaze") for row in event.payload.get("gaze", []))
    return [replace(sample, t_ns=sample.t_ns + shift) for sample in gaze_from_plain(list(rows))]
