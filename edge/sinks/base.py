"""The contract of a sink: it takes events and redacted pictures, and nothing else.

A plug-in module in this folder defines ``open_sink(config: Config, header: dict) -> Sink | None`` (None: switched off).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from edge.records import Event, RedactedFrame


class Sink(ABC):
    """One output. `event` and `picture` must not block the loop for longer than a write to memory."""

    name: str

    @abstractmethod
    def event(self, event: Event) -> None:
        """Take one event.

        Raises
        ------
        SinkError
            It can't be written any more.
        """

    def picture(self, frame: RedactedFrame) -> None:  # noqa: B027 - a sink without pictures leaves it as it is
        """Take one redacted picture."""

    @abstractmethod
    def close(self) -> None:
        """Finish the output, so that what was taken is kept. May be called twice."""

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_redacted(frame: object) -> RedactedFrame:
    """Return `frame` if it is a RedactedFrame; anything else is a TypeError, whatever the type checker was told."""
    if type(frame) is not RedactedFrame:
        raise TypeError(f"a sink takes RedactedFrame, got {type(frame).__name__}")
    return frame
