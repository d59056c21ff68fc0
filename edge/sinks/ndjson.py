"""The event log as newline-delimited JSON.

It is written to ``NAME.part`` and takes its name when the run ends well, so that a file with the right name is whole.
A log that was cut off keeps its events in the ``.part`` file; its last line is then no ``end`` event. A name that
ends in ``.age`` makes an encrypted log.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from edge.config import Config
from edge.errors import SinkError
from edge.events import encode
from edge.output_file import OutputFile, recipients_for
from edge.records import Event
from edge.sinks.base import Sink


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    path = config.sinks.events
    return NdjsonSink(Path(path), recipients_for(path, config)) if path else None


class NdjsonSink(Sink):
    """Write each event as one line; with `recipients`, encrypted to them.

    Raises
    ------
    SinkError
        The folder can't be written, a write fails (disk full), or another run writes the log.
    """

    name = "events"

    def __init__(self, path: Path, recipients: Collection[str] = ()) -> None:
        self._path = path
        self._whole = False
        self._file = OutputFile(path, recipients)

    def event(self, event: Event) -> None:
        try:
            self._file.write(encode(event) + b"\n")
        except OSError as error:
            raise SinkError(str(self._path), f"can't be written: {error.strerror}") from error
        self._whole = event.kind == "end"

    def close(self) -> None:
        self._file.close(whole=self._whole)
