"""Structured logs that can't slow the runtime down: lines of text or JSON on stderr, written by a thread of its own.

A terminal that is blocked, or a pipe that nobody reads, fills a bounded queue; what doesn't fit is counted and said
later. The same message from the same place is said once in five seconds, with the number of times it was held back.
Lines carry the host's monotonic seconds; the journal adds the time of day.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
from typing import Any, Literal

from edge.clock import NS_PER_S, Clock, monotonic_ns

QUIET_NS = 5 * NS_PER_S
QUEUE_LINES = 1000


class RateLimit(logging.Filter):
    """Let a message through once per `QUIET_NS` and place; the next one says how many were held back."""

    def __init__(self, clock: Clock = monotonic_ns) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.name, record.getMessage())
        now_ns = self._clock()
        if len(self._seen) > QUEUE_LINES:
            self._seen = {k: v for k, v in self._seen.items() if now_ns - v[0] < QUIET_NS}
        said_ns, held = self._seen.get(key, (now_ns - QUIET_NS, 0))
        if now_ns - said_ns < QUIET_NS:
            self._seen[key] = (said_ns, held + 1)
            return False
        self._seen[key] = (now_ns, 0)
        if held:
            record.held_back = held
        return True


class Line(logging.Formatter):
    """``12.345 warning edge.live.run message key=value`` or the same as a JSON object."""

    def __init__(self, form: Literal["text", "json"]) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        if held := getattr(record, "held_back", 0):
            fields["held_back"] = held
        seconds, level, message = monotonic_ns() / NS_PER_S, record.levelname.lower(), record.getMessage()
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if self._form == "json":
            head = {"t_s": round(seconds, 6), "level": level, "logger": record.name, "message": message}
            return json.dumps({**head, **fields}, default=str)
        return " ".join([f"{seconds:.3f} {level} {record.name}: {message}", *(f"{k}={v}" for k, v in fields.items())])


class QueuedStderr(logging.Handler):
    """Hand lines to a thread that writes them to file descriptor 2; never wait."""

    def __init__(self, fd: int = 2) -> None:
        super().__init__()
        self._fd = fd
        self._lines: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="logs", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Write what waits, for at most half a second."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(0.5)
        super().close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            if self._lost:
                line, self._lost = f"{line}\n({self._lost} lines lost: nobody read them in time)", 0
            with contextlib.suppress(OSError):
                os.write(self._fd, (line + "\n").encode())


def set_up(level: str, form: Literal["text", "json"]) -> QueuedStderr:
    """Send what `edge` logs to stderr; return the handler, to be closed at the end."""
    handler = QueuedStderr()
    handler.setFormatter(Line(form))
    handler.addFilter(RateLimit())
    logger = logging.getLogger("edge")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    return handler
