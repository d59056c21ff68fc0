"""A sink behind a bounded queue, in a thread of its own: a slow disk or encoder doesn't slow the loop."""

from __future__ import annotations

import logging
import threading
from collections import deque

from edge.errors import SinkError
from edge.records import Event, RedactedFrame
from edge.sinks.base import Sink

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0


class QueuedSink(Sink):
    """Runs `sink` in a thread.

    Events that come while `max_events` wait are dropped and counted; of pictures beyond `max_pictures` the oldest goes.
    The last event, `end`, always gets in. An error of the sink is kept in `error`; it takes nothing more. Closing waits
    at most `close_timeout_s` for it.
    """

    def __init__(
        self, sink: Sink, max_events: int, max_pictures: int, *, close_timeout_s: float = CLOSE_TIMEOUT_S
    ) -> None:
        self.name = sink.name
        self.error: SinkError | None = None
        self.dropped_events = self.dropped_pictures = 0
        self._sink, self._max_events, self._max_pictures = sink, max_events, max_pictures
        self._close_timeout_s = close_timeout_s
        self._events: deque[Event] = deque()
        self._pictures: deque[RedactedFrame] = deque()
        self._wake = threading.Condition()
        self._closing = self._closed = False
        self._takes_pictures = type(sink).picture is not Sink.picture
        self._thread = threading.Thread(target=self._run, name=f"sink-{sink.name}", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """What this queue and the sink behind it (a recorder has a queue of its own) let go."""
        inner = getattr(self._sink, "sink", self._sink)
        return self.dropped_events + self.dropped_pictures + int(getattr(inner, "dropped", 0))

    def event(self, event: Event) -> None:
        with self._wake:
            full = len(self._events) >= self._max_events and event.kind != "end"
            if self.error or full:
                self.dropped_events += 1
                return
            self._events.append(event)
            self._wake.notify()

    def picture(self, frame: RedactedFrame) -> None:
        if not self._takes_pictures:
            return
        with self._wake:
            if self.error or len(self._pictures) >= self._max_pictures:
                self.dropped_pictures += 1
                if self.error:
                    return
                self._pictures.popleft()
            self._pictures.append(frame)
            self._wake.notify()

    def close(self) -> None:
        """Write what waits and close the sink; one that is stuck is left behind, with an error."""
        if self._closed:
            return
        self._closed = True
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(self._close_timeout_s)
        if self._thread.is_alive():
            self.error = SinkError(self.name, f"didn't finish within {self._close_timeout_s:g} s and was left behind")

    def _run(self) -> None:
        for step in (self._hand_over, self._sink.close):
            try:
                step()
            except SinkError as error:
                self.error = self.error or error
            except Exception as error:
                self.error = self.error or SinkError(self.name, f"ended by an error of the program: {error!r}")
                log.exception("sink %s", self.name)

    def _hand_over(self) -> None:
        while (item := self._next()) is not None:
            if isinstance(item, Event):
                self._sink.event(item)
            else:
                self._sink.picture(item)

    def _next(self) -> Event | RedactedFrame | None:
        with self._wake:
            self._wake.wait_for(lambda: self._events or self._pictures or self._closing)
            if self._events:
                return self._events.popleft()
            return self._pictures.popleft() if self._pictures else None
