"""What the supervisor makes of what it sees; a clock that the test turns."""

from __future__ import annotations

import pytest

from edge.clock import NS_PER_MS
from edge.config import Config
from edge.live.supervisor import SYNC_FEWEST, SYNC_WINDOW, Supervisor
from edge.outputs import Emitter
from edge.summary import Summary

APART = "gaze and pictures are more than 50 ms apart"


class Run:
    """A supervisor of a gaze stream that is silent after 200 ms."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.supervisor = Supervisor(Config(), Emitter([]), Summary(), clock=lambda: self.now_ns)
        self.gaze = self.supervisor.watch("gaze", 200.0, 200)

    def pictures(self, n: int, apart_ms: int, *, with_gaze: bool = True) -> list[str]:
        """Let `n` pictures pass, 30 ms apart; return what is complained of."""
        for _ in range(n):
            self.now_ns += 30 * NS_PER_MS
            if with_gaze:
                self.gaze.add(self.now_ns, self.now_ns)
                self.supervisor.apart(apart_ms * NS_PER_MS)
            self.supervisor.check(self.now_ns, {})
        return [complaint.reason for complaint in self.supervisor.health.complaints]


@pytest.fixture
def run() -> Run:
    return Run()


def test_pictures_and_gaze_that_drift_apart_are_named(run):
    assert run.pictures(SYNC_WINDOW, 10) == []
    # 95 % of 150 pictures may be near: the ninth that is far makes it more than 5 %
    assert run.pictures(7, 60) == []
    assert run.pictures(2, 60) == [APART]


def test_gaze_that_comes_back_is_judged_anew(run):
    assert run.pictures(SYNC_WINDOW, 60) == [APART]
    assert run.pictures(10, 0, with_gaze=False) == ["silent"]
    assert run.pictures(SYNC_FEWEST - 1, 60) == []
    assert run.pictures(1, 60) == [APART]
