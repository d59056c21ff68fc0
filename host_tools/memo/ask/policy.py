"""When to ask again, and how fast to ask at all: arithmetic, with the clock handed in."""

from __future__ import annotations

import threading
from collections.abc import Callable

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 60.0


def retry_delay_s(attempt: int, retry_after_s: float | None, jitter: float) -> float:
    """Return how long to wait after a failed attempt.

    Parameters
    ----------
    attempt : int
        1 for the first that failed; the wait doubles with each, from 0.5 s up to 60 s.
    retry_after_s : float or None
        What the server asked for; it wins if it is longer, up to 60 s.
    jitter : float
        In [0, 1): lengthens the wait by up to a half, so that clients that failed together don't return together.
    """
    own = min(FIRST_DELAY_S * 2 ** (attempt - 1), LONGEST_DELAY_S) * (1 + jitter / 2)
    return min(max(own, retry_after_s or 0.0), LONGEST_DELAY_S)


class RateLimiter:
    """Spaces out requests of many threads: at most `per_minute`, evenly; 0 = no limit.

    Parameters
    ----------
    clock, sleep : callable
        Seconds, monotonic; and how to wait.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self._spacing = 60 / per_minute if per_minute else 0.0
        self._clock, self._sleep = clock, sleep
        self._next = float("-inf")
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Wait for this request's turn; return how long that was."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._spacing
        if turn > now:
            self._sleep(turn - now)
        return turn - now

    def hold(self, seconds: float) -> None:
        """Let nobody ask for `seconds` from now: the server said that it is too much."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
