from __future__ import annotations

import pytest

from host_tools.memo.ask.policy import RateLimiter, retry_delay_s


@pytest.mark.parametrize(
    ("attempt", "retry_after_s", "jitter", "expected"),
    [
        (1, None, 0.0, 0.5),
        (2, None, 0.0, 1.0),
        (4, None, 0.5, 5.0),
        (20, None, 0.9, 60.0),
        (1, 7.0, 0.0, 7.0),
        (5, 1.0, 0.0, 8.0),
        (1, 3600.0, 0.0, 60.0),
    ],
    ids=["first", "doubles", "jitter", "longest", "server-asks", "own-is-longer", "server-asks-too-much"],
)
def test_delays(attempt: int, retry_after_s: float | None, jitter: float, expected: float) -> None:
    assert retry_delay_s(attempt, retry_after_s, jitter) == pytest.approx(expected)


class _Time:
    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_requests_are_spaced_out() -> None:
    time = _Time()
    limiter = RateLimiter(120, time.clock, time.sleep)
    starts = []
    for _ in range(4):
        limiter.wait()
        starts.append(time.now - 100)
    assert starts == pytest.approx([0, 0.5, 1.0, 1.5])
    time.now += 10
    assert limiter.wait() == 0


def test_a_hold_holds_everybody() -> None:
    time = _Time()
    limiter = RateLimiter(0, time.clock, time.sleep)
    assert limiter.wait() == 0
    limiter.hold(3)
    assert limiter.wait() == pytest.approx(3)
