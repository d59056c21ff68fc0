"""Redaction beside the scores: pictures have a deadline of their own, and a recall pass must not delay a score.

A thread of lower priority takes pictures from a queue. When it is late, one recall pass serves several pictures
(`Redactor.wants_recall`), so that a slow machine looks less often before it loses pictures, and says so; only what
waits for longer than `redact.max_wait_ms` is dropped, the oldest first, and counted. Nothing leaves but through
`RedactPipeline`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable

from edge.clock import NS_PER_MS, NS_PER_S
from edge.config import Config
from edge.pipeline import RedactPipeline
from edge.records import Face, Fixation, Frame, RedactedFrame

CLOSE_TIMEOUT_S = 5.0
#: Of redaction's thread. At equal priority a score that becomes due waits for its turn on the processor while
#: the recall detector computes.
NICENESS = 10

_Item = tuple[Frame, list[Face], Fixation | None]


class Cadence:
    """How often the recall detector really looks, judged every five seconds, or after twenty passes that were due.

    What it made is compared with what was due: a camera that was away for a while owes no passes.

    Parameters
    ----------
    asked_hz : float
        `redact.recall_hz`; 0 asks for every picture.
    """

    SPAN_NS, FEWEST = 5 * NS_PER_S, 20
    LOWERED = 0.9  #: less than this share of what was due is worth a word

    def __init__(self, asked_hz: float) -> None:
        self.hz = float("nan")  #: passes per second over the last span
        self.reason = ""  #: says that they are fewer than they should be; empty if they aren't
        self._asked_hz = asked_hz
        self._start: tuple[int, int] | None = None
        self._slot = self._due = 0

    def add(self, t_ns: int, recalls: int) -> None:
        """Take the time of a picture, and how many passes were made until then, its own included."""
        slot = int(t_ns * self._asked_hz / NS_PER_S) if self._asked_hz else t_ns
        self._due += slot != self._slot
        self._slot = slot
        if self._start is not None:
            start_ns, before = self._start
            if t_ns - start_ns < self.SPAN_NS or self._due < self.FEWEST:
                return
            self._judge((t_ns - start_ns) / NS_PER_S, recalls - before)
        self._start, self._due = (t_ns, recalls), 0

    def _judge(self, seconds: float, made: int) -> None:
        self.hz = made / seconds
        share, asked_hz = made / self._due, self._asked_hz or self._due / seconds
        self.reason = f"recall at {share * asked_hz:.0f} Hz of {asked_hz:.0f}" if share < self.LOWERED else ""


class RedactWorker:
    """Runs `redact` in a thread and hands what may leave to `emit`.

    Parameters
    ----------
    redact : RedactPipeline
        The recipe, used by this thread alone from now on.
    emit : callable
        Takes each redacted picture; called in the thread.
    config : Config
        `redact.max_wait_ms` and `live.queue_pictures` bound the queue.
    """

    def __init__(self, redact: RedactPipeline, emit: Callable[[RedactedFrame], None], config: Config) -> None:
        self.dropped = 0
        self.error: Exception | None = None
        self.cadence = Cadence(config.redact.recall_hz)
        self._redact, self._sink = redact, emit
        self._leaving = threading.Lock()
        self._left_behind = False
        self._max_pictures = config.live.queue_pictures
        self._max_wait_ns = config.redact.max_wait_ms * NS_PER_MS
        self._waiting: deque[_Item] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="redact", daemon=True)
        self._thread.start()

    @property
    def postponed(self) -> int:
        """How many pictures left the recall pass that was due to a later one."""
        return self._redact.counts.postponed

    def take(self, frame: Frame, faces: list[Face], fixation: Fixation | None) -> None:
        """Queue a picture with its fast faces and the fixation in progress; never waits."""
        with self._wake:
            self._waiting.append((frame, faces, fixation))
            while len(self._waiting) > self._max_pictures or self._waited_ns(frame) > self._max_wait_ns:
                self._waiting.popleft()
                self.dropped += 1
            self._wake.notify()

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Redact what waits, for at most `timeout_s`; after that nothing leaves any more. May be called twice."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout_s)
        with self._leaving:
            self._left_behind = self._thread.is_alive()

    def _emit(self, picture: RedactedFrame) -> None:
        with self._leaving:
            if not self._left_behind:
                self._sink(picture)

    def _waited_ns(self, newest: Frame) -> int:
        return newest.t_ns - self._waiting[0][0].t_ns

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)  # on Linux: of this thread alone
        try:
            while (item := self._next()) is not None:
                self._do(*item)
            for picture in self._redact.finish():
                self._emit(picture)
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop must hear of it: no picture leaves any more
            self.error = error

    def _do(self, item: _Item, next_ns: int | None) -> None:
        for picture in self._redact.redact(*item, next_ns=next_ns):
            self._emit(picture)
        self.cadence.add(item[0].t_ns, self._redact.counts.recalls)

    def _next(self) -> tuple[_Item, int | None] | None:
        """Wait for the oldest picture; also return the time of the one behind it, if it waits already."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return None
            item = self._waiting.popleft()
            return item, self._waiting[0][0].t_ns if self._waiting else None
