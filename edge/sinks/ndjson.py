"""The event log as newline-delimited JSON.

It is written to ``NAME.part`` and takes its name when the run ends well, so that a file with the right name is whole.
A log that was cut off keeps its events in the ``.part`` file; its last line is then no ``end`` event.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edge.config import Config
from edge.errors import SinkError
from edge.events import encode
from edge.records import Event
from edge.sinks.base import Sink


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    return NdjsonSink(Path(config.sinks.events)) if config.sinks.events else None


class NdjsonSink(Sink):
    """Write each event as one line.

    Raises
    ------
    SinkError
        The folder can't be written, or a write fails (disk full).
    """

    name = "events"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._whole = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("wb", buffering=1 << 16)
        except OSError as error:
            raise SinkError(str(path), f"can't be written: {error.strerror}", fix="choose a writable folder") from error

    def event(self, event: Event) -> None:
        try:
            self._file.write(encode(event) + b"\n")
        except OSError as error:
            raise SinkError(str(self._path), f"can't be written: {error.strerror}") from error
        self._whole = event.kind == "end"

    def close(self) -> None:
        if self._file.closed:
            return
        self._file.close()
        if self._whole:
            self._part.replace(self._path)
