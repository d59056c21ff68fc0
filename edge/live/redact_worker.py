"""Redaction beside the scores: pictures have a deadline of their own, and a recall pass must not delay a score.

A thread takes pictures from a short queue; when it can't keep up the oldest picture that waits is dropped and counted.
Nothing leaves but through `RedactPipeline`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from edge.pipeline import RedactPipeline
from edge.records import Face, Fixation, Frame, RedactedFrame

QUEUE_PICTURES = 6
CLOSE_TIMEOUT_S = 5.0


class RedactWorker:
    """Runs `redact` in a thread and hands what may leave to `emit`.

    Parameters
    ----------
    redact : RedactPipeline
        The recipe, used by this thread alone from now on.
    emit : callable
        Takes each redacted picture; called in the thread.
    """

    def __init__(self, redact: RedactPipeline, emit: Callable[[RedactedFrame], None]) -> None:
        self.dropped = 0
        self.error: Exception | None = None
        self._redact, self._emit = redact, emit
        self._waiting: deque[tuple[Frame, list[Face], Fixation | None]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="redact", daemon=True)
        self._thread.start()

    def take(self, frame: Frame, faces: list[Face], fixation: Fixation | None) -> None:
        """Queue a picture with its fast faces and the fixation in progress; never waits."""
        with self._wake:
            if len(self._waiting) >= QUEUE_PICTURES:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append((frame, faces, fixation))
            self._wake.notify()

    def close(self) -> None:
        """Redact what waits, for at most five seconds. May be called twice."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        try:
            while (item := self._next()) is not None:
                for picture in self._redact.redact(*item):
                    self._emit(picture)
            for picture in self._redact.finish():
                self._emit(picture)
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop must hear of it: no picture leaves any more
            self.error = error

    def _next(self) -> tuple[Frame, list[Face], Fixation | None] | None:
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popleft() if self._waiting else None
