from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from edge.errors import ConfigError
from host_tools.memo.annotation.rules import Gate, Progress, Rules, gate, n_stages, order, training_left

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
RULES = Rules()


def _progress(n_votes: int, starts: list[datetime], ends: list[datetime]) -> Progress:
    return Progress(n_votes, NOON, True, starts, ends)


@pytest.mark.parametrize(("n", "stages"), [(1, 1), (500, 1), (501, 2), (7145, 15)], ids=str)
def test_stages(n: int, stages: int) -> None:
    assert n_stages(n, RULES) == stages


def test_training_comes_first_and_takes_its_time() -> None:
    new = Progress(0, None, False)
    assert gate(NOON, 10, new, RULES) == Gate("training")
    assert training_left(NOON, new, RULES) == timedelta(minutes=30)
    begun = Progress(0, NOON, False)
    assert training_left(NOON + timedelta(minutes=29), begun, RULES) == timedelta(minutes=1)
    assert training_left(NOON + timedelta(minutes=31), begun, RULES) == timedelta(0)


def test_a_day_of_a_rater() -> None:
    """Four stages with breaks, a fifth only after midnight, and a stage that a crash cut in two needs no break."""
    starts = [NOON + timedelta(minutes=60 * i) for i in range(4)]
    ends = [start + timedelta(minutes=40) for start in starts]
    assert gate(NOON, 5000, _progress(0, [], []), RULES) == Gate("rate", 1)
    in_the_middle = _progress(123, starts[:1], [])
    assert gate(NOON + timedelta(minutes=5), 5000, in_the_middle, RULES) == Gate("rate", 1)
    first_done = _progress(500, starts[:1], ends[:1])
    held = gate(ends[0] + timedelta(minutes=14, seconds=59), 5000, first_done, RULES)
    assert (held.kind, held.stage, held.until) == ("wait", 2, ends[0] + timedelta(minutes=15))
    assert gate(ends[0] + timedelta(minutes=15), 5000, first_done, RULES) == Gate("rate", 2)
    four_done = _progress(2000, starts, ends)
    held = gate(ends[3] + timedelta(hours=2), 5000, four_done, RULES)
    assert (held.kind, held.until) == ("wait", datetime(2026, 3, 3, tzinfo=timezone.utc))
    assert gate(datetime(2026, 3, 3, 0, 1, tzinfo=timezone.utc), 5000, four_done, RULES) == Gate("rate", 5)


def test_the_day_is_that_of_the_clock_in_use() -> None:
    """11 p.m. in UTC is tomorrow two hours to the east."""
    east = timezone(timedelta(hours=2))
    late = datetime(2026, 3, 2, 23, tzinfo=timezone.utc)
    done = _progress(500, [late], [late])
    rules = Rules(stages_per_day=1, break_min=0)
    assert gate(late.astimezone(east) + timedelta(minutes=1), 1000, done, rules).kind == "wait"
    assert gate(datetime(2026, 3, 2, 23, 59, tzinfo=timezone.utc), 1000, done, rules).kind == "wait"
    early = _progress(500, [late - timedelta(hours=2)], [late - timedelta(hours=2)])
    assert gate(late.astimezone(east), 1000, early, rules).kind == "rate"


def test_all_rated() -> None:
    assert gate(NOON, 700, _progress(700, [NOON, NOON], [NOON, NOON]), RULES) == Gate("done")


def test_orders_are_random_fixed_and_complete() -> None:
    assert order(50, 0, "anna") == order(50, 0, "anna")
    assert order(50, 0, "anna") != order(50, 0, "ben")
    assert order(50, 0, "anna") != order(50, 1, "anna")
    assert sorted(order(50, 0, "anna")) == list(range(50))


def test_rules_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="can't be followed"):
        Rules(per_stage=0)
