"""Auxiliary streams of a live run: opened beside it, tried again until they are there, handed on as events."""

from __future__ import annotations

import threading
from typing import Any

from edge.config import Config
from edge.errors import AbsentError, EmoGazeError
from edge.gaze.auxiliary import AuxStreams
from edge.gaze.base import StreamNote
from edge.records import AuxSample

RETRY_S = 1.0


class AuxFeed:
    """The streams that `aux.streams` names; `problem` says what keeps them from opening, if anything."""

    def __init__(self, config: Config) -> None:
        self.problem = ""
        self._config = config
        self._streams: AuxStreams | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._open, name="aux", daemon=True)
        self._thread.start()

    def read(self) -> tuple[list[AuxSample], list[StreamNote]]:
        """Return the samples and notes that have come since the last call."""
        return ([], []) if self._streams is None else (self._streams.read(), self._streams.notes())

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
                self.problem = str(error)
                if not isinstance(error, AbsentError):
                    return
                self._closing.wait(RETRY_S)
                continue
            self._streams, self.problem = streams, ""
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
