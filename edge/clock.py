"""The host's monotonic clock in nanoseconds, and the one place where wall-clock time is read."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def monotonic_ns() -> int:
    """Return the host's monotonic time (ns). LSL's ``local_clock`` on Linux is this clock in seconds."""
    return time.monotonic_ns()


def session_epoch() -> tuple[int, int]:
    """Return (monotonic_ns, unix_ns) read together: the only link from a session to the calendar."""
    return time.monotonic_ns(), time.time_ns()
