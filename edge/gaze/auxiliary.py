"""Auxiliary LSL streams (EEG, heart rate, markers): kept beside gaze on the same clock, never interpreted here."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import Any

import numpy as np

from edge.clock import monotonic_ns
from edge.config import AuxConfig
from edge.gaze.inlet import LslInlet, Query, stream_name
from edge.gaze.sources.base import StreamNote
from edge.records import AuxSample

BUFFER = 60_000  #: samples kept for a consumer that doesn't read; older ones are dropped and counted


class AuxStreams:
    """All auxiliary streams of a run. Text streams give samples with `text` and no channels.

    Parameters
    ----------
    aux : AuxConfig
        Which streams.
    scope : str
        How far LSL looks: machine, link or site.

    Raises
    ------
    AbsentError, SourceError
        A stream isn't there, or several fit.
    """

    def __init__(self, aux: AuxConfig, scope: str) -> None:
        self._lock = threading.Lock()
        self._samples: deque[AuxSample] = deque(maxlen=BUFFER)
        self._notes: list[StreamNote] = []
        self._inlets: list[LslInlet] = []
        self.dropped = 0
        self.rates_hz: dict[str, float] = {}
        try:
            for text in aux.streams:
                self._open(text, scope, aux.silent_ms)
        except Exception:
            self.close()
            raise

    def read(self) -> list[AuxSample]:
        """Return the samples that have arrived since the last call, each stream in its own order."""
        with self._lock:
            samples = list(self._samples)
            self._samples.clear()
        return samples

    def notes(self) -> list[StreamNote]:
        """Return what happened to the streams since the last call."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """Stop receiving. May be called twice."""
        for inlet in self._inlets:
            inlet.close()

    def __enter__(self) -> AuxStreams:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, text: str, scope: str, silent_ms: int) -> None:
        inlet = LslInlet(Query.parse(text), scope, silent_ms=silent_ms)
        self._inlets.append(inlet)
        name = stream_name(inlet.info)
        if name in self.rates_hz:
            name = f"{name}-{len(self.rates_hz)}"
        self.rates_hz[name] = inlet.info.nominal_srate()
        # Events have no rate: their silence means nothing.
        inlet.start(partial(self._deliver, name, inlet.is_text), partial(self._note, regular=self.rates_hz[name] > 0))

    def _deliver(self, name: str, is_text: bool, samples: list[Any], stamps_ns: list[int], _: int) -> None:
        with self._lock:
            self.dropped += max(0, len(self._samples) + len(samples) - BUFFER)
            for values, t_ns in zip(samples, stamps_ns, strict=True):
                channels = np.empty(0, np.float32) if is_text else np.asarray(values, dtype=np.float32)
                text = "\t".join(values) if is_text else ""
                self._samples.append(AuxSample(name, t_ns, channels, text))

    def _note(self, kind: str, detail: dict[str, Any], *, regular: bool) -> None:
        if regular or kind not in ("silent", "back"):
            with self._lock:
                self._notes.append(StreamNote(monotonic_ns(), kind, detail))
