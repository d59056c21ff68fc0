"""Auxiliary streams of a live run: opened beside it, sought until they are there, followed, handed on as events."""

from __future__ import annotations

import threading
from typing import Any

from edge.clock import Clock, monotonic_ns
from edge.config import Config
from edge.errors import AbsentError, EmoGazeError
from edge.gaze.auxiliary import AuxStreams
from edge.gaze.inlet import silent_after_ms
from edge.gaze.sources.base import StreamNote
from edge.live.monitor import StreamMonitor
from edge.records import AuxSample

RETRY_S = 1.0


class AuxFeed:
    """The streams that `aux.streams` names.

    Attributes
    ----------
    monitors : dict of str to StreamMonitor
        The time of each open stream, by ``aux:NAME``.
    """

    def __init__(self, config: Config, clock: Clock = monotonic_ns) -> None:
        self.monitors: dict[str, StreamMonitor] = {}
        self._config, self._clock = config, clock
        self._streams: AuxStreams | None = None
        self._opened_ns = 0
        self._refusal = ""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._open, name="aux", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why a stream doesn't flow; empty if all do, or if nobody knows yet. Events may be silent."""
        if self._streams is None:
            return self._refusal
        now_ns = self._clock()
        open_ns = now_ns - self._opened_ns
        regular = (m for m in self.monitors.values() if m.declared_hz > 0 and open_ns > m.silent_ns)
        silent = [monitor.name.removeprefix("aux:") for monitor in regular if monitor.silent(now_ns)]
        return f"silent: {', '.join(silent)}" if silent else ""

    def read(self) -> tuple[list[AuxSample], list[StreamNote]]:
        """Return the samples and notes that have come since the last call."""
        if self._streams is None:
            return [], []
        samples, notes, now_ns = self._streams.read(), self._streams.notes(), self._clock()
        for name, hz in self._streams.rates_hz.items():
            if f"aux:{name}" not in self.monitors:
                bound_ms = silent_after_ms(self._config.aux.silent_ms, hz)
                self.monitors[f"aux:{name}"] = StreamMonitor(f"aux:{name}", hz, bound_ms)
        for sample in samples:
            monitor = self.monitors[f"aux:{sample.stream}"]
            verdict = monitor.add(sample.t_ns, now_ns)
            if verdict == "jump" or (verdict == "gap" and monitor.declared_hz > 0):
                notes.append(StreamNote(sample.t_ns, verdict, {"stream": sample.stream}))
        return samples, notes

    def close(self) -> None:
        self._closing.set()
        self._thread.join(RETRY_S)
        if self._streams is not None:
            self._streams.close()

    def _open(self) -> None:
        while not self._closing.is_set():
            try:
                streams = AuxStreams(self._config.aux, self._config.gaze.lsl_scope)
            except EmoGazeError as error:
                self._refusal = str(error)
                if not isinstance(error, AbsentError):
                    return
                self._closing.wait(RETRY_S)
                continue
            self._opened_ns, self._refusal = self._clock(), ""
            self._streams = streams
            return


def aux_payloads(samples: list[AuxSample]) -> dict[str, dict[str, Any]]:
    """Return the payload of one `aux` event per stream: its stamps, and its channels or texts, in order."""
    payloads: dict[str, dict[str, Any]] = {}
    for sample in samples:
        rows = payloads.setdefault(sample.stream, {"stream": sample.stream, "t_ns": [], "channels": [], "aux": []})
        rows["t_ns"].append(sample.t_ns)
        rows["channels"].append(sample.channels.tolist())
        rows["aux"].append(sample.text)
    return payloads
