"""Live gaze over the Lab Streaming Layer: `lsl:NAME`, `lsl:type=Gaze`, `lsl:source_id=...`.

Frame, units, origin and geometry come from the settings or, where those are silent, from the stream's description
(`edge.gaze.description` says in which words). Channels are told by their labels or by `columns`. LSL streams are not
authenticated: whoever can reach this machine's LSL can offer one, so `lsl_scope` is `machine` unless set wider.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from dataclasses import replace
from typing import Any

from edge.clock import monotonic_ns
from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.description import channels_of, choose_channels, declared_by, plain_xml
from edge.gaze.geometry import read_geometry
from edge.gaze.inlet import LslInlet, Query
from edge.gaze.recorded import gaze_info
from edge.gaze.sources.base import GazeSource, StreamNote
from edge.records import NAN, RawGaze

BUFFER = 20_000  #: samples kept for a consumer that doesn't read: 10 s at 2000 Hz; older ones are dropped and counted
REORDER_NS = 100_000_000  #: a sample that comes late by less is put into its place


def matches(source: str) -> bool:
    """Whether `source` names an LSL stream."""
    return source.startswith("lsl:")


def open_source(gaze: GazeConfig) -> LslGaze:
    """Find the stream and begin to receive.

    Raises
    ------
    AbsentError
        No such stream yet.
    SourceError
        Several streams fit, or it carries text, or doesn't say which channels are x and y.
    ConfigError
        Its frame, unit or geometry is declared neither by it nor by the settings.
    """
    return LslGaze(gaze, LslInlet(Query.parse(gaze.source), gaze.lsl_scope, silent_ms=gaze.silent_ms))


class LslGaze(GazeSource):
    """A gaze stream behind the contract; samples wait in a bounded buffer until they are read."""

    def __init__(self, gaze: GazeConfig, inlet: LslInlet) -> None:
        self._inlet = inlet
        self._offset_ns = round(gaze.offset_ms * 1e6)
        self._lock = threading.Lock()
        self._buffer: list[RawGaze] = []
        self._notes: list[StreamNote] = []
        self._seq = self.dropped = 0
        self._closed = False
        try:
            self._channels = self._declare(gaze)
        except Exception:
            inlet.close()
            raise
        inlet.start(self._deliver, self._note)

    @property
    def ended(self) -> bool:
        return self._closed

    def read_until(self, t_ns: int) -> list[RawGaze]:
        """Return all samples that have arrived, whatever `t_ns`: a live stream's time is now."""
        with self._lock:
            samples, self._buffer = self._buffer, []
        return samples

    def notes(self) -> list[StreamNote]:
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        self._closed = True
        self._inlet.close()

    def _declare(self, gaze: GazeConfig) -> dict[str, int]:
        info = self._inlet.info
        if self._inlet.is_text:
            raise SourceError(
                gaze.source, "carries text", expected="a stream of numbers", got=f"{info.name()} ({info.type()})"
            )
        desc = (plain_xml(self._inlet.describe()).get("desc") or [None])[0]
        channels = channels_of(desc)
        chosen = choose_channels(gaze.source, channels, info.channel_count(), gaze.columns)
        declared = declared_by(desc, channels, chosen, info.nominal_srate())
        self.geometry = read_geometry(gaze.geometry) or declared.geometry
        device = declared.device or f"{info.name()} on {info.hostname()}"
        self.info = replace(gaze_info(gaze, declared, self.geometry), live=True, device=device)
        return chosen

    def _deliver(self, samples: list[Any], stamps_ns: list[int], arrival_ns: int) -> None:
        with self._lock:
            for values, t_ns in zip(samples, stamps_ns, strict=True):
                self._put(self._raw(values, t_ns + self._offset_ns))
            if len(self._buffer) > BUFFER:
                lost = len(self._buffer) - BUFFER
                del self._buffer[:lost]
                self.dropped += lost
                self._notes.append(StreamNote(arrival_ns, "overflow", {"dropped": lost}))

    def _put(self, raw: RawGaze) -> None:
        """Append, or put a sample that is a little late among those that nobody has read yet."""
        late_ns = self._buffer[-1].t_ns - raw.t_ns if self._buffer else 0
        if 0 < late_ns <= REORDER_NS:
            self._buffer.insert(bisect_right(self._buffer, raw.t_ns, key=lambda r: r.t_ns), raw)
        else:
            self._buffer.append(raw)

    def _raw(self, values: list[float], t_ns: int) -> RawGaze:
        def value(meaning: str, default: float) -> float:
            index = self._channels.get(meaning)
            return default if index is None else float(values[index])

        x, y = value("x", NAN), value("y", NAN)
        valid = math.isfinite(x) and math.isfinite(y) and value("valid", 1.0) > 0
        seq, self._seq = self._seq, self._seq + 1
        return RawGaze(seq, t_ns, x, y, value("confidence", 1.0), valid, value("pupil_mm", NAN), value("openness", NAN))

    def _note(self, kind: str, detail: dict[str, Any]) -> None:
        with self._lock:
            self._notes.append(StreamNote(monotonic_ns(), kind, detail))
