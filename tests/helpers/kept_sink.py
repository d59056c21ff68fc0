"""A sink that keeps the events it is given."""

from __future__ import annotations

from edge.records import Event
from edge.sinks.base import Sink


class Kept(Sink):
    name = "kept"

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass
