"""The governor's rules one by one, and a scripted story of ten minutes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from edge.config import GovernorConfig
from edge.governor import Choice, Conditions, Spent, choose
from edge.ladder import Rung

S = 1_000_000_000
RUNGS = (
    Rung(artefact="fp32", latency_ms=12, drift=0.0),
    Rung(artefact="int8", latency_ms=6, drift=0.01),
    Rung(artefact="small", latency_ms=3, drift=0.03),
)
SETTINGS = GovernorConfig()
DEADLINE_MS = 100.0


def tell(
    conditions: Iterable[Conditions], settings: GovernorConfig = SETTINGS
) -> list[tuple[float, int, tuple[str, ...]]]:
    """Run a story and return (second, rung, reasons) at the start and wherever the rung changes."""
    choice, seen = Choice(), []
    for now in conditions:
        before, choice = choice, choose(choice, now, RUNGS, settings, DEADLINE_MS)
        if not seen or choice.rung != before.rung:
            seen.append((now.t_ns / S, choice.rung, choice.reasons))
    return seen


def at(second: float, **known: object) -> Conditions:
    if "path_ms" in known:
        known["spent"] = Spent(known.pop("path_ms"), known.pop("embed_ms"))  # type: ignore[arg-type]
    return Conditions(t_ns=round(second * S), short_side_px=int(known.pop("side", 720)), **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("side", "battery", "rung"),
    [
        pytest.param(720, 29.9, 2, id="large-and-low"),
        pytest.param(720, 30.0, 0, id="at-the-threshold"),
        pytest.param(719, 5.0, 0, id="small-picture"),
        pytest.param(1080, 100.0, 0, id="large-and-full"),
        pytest.param(1080, None, 0, id="unknown-is-not-empty"),
        pytest.param(1080, 0.0, 2, id="empty"),
    ],
)
def test_resolution_and_battery(side: int, battery: float | None, rung: int) -> None:
    assert tell([at(0, side=side, battery_percent=battery)])[-1][1] == rung


def test_low_is_left_five_points_above() -> None:
    charges = [31, 29, 31, 34.9, 35, 31]
    told = tell(at(20 * i, battery_percent=c) for i, c in enumerate(charges))
    assert told == [(0, 0, ()), (20, 2, ("battery",)), (80, 0, ())]


def test_a_battery_that_falls_silent_changes_nothing() -> None:
    told = tell(at(20 * i, battery_percent=c) for i, c in enumerate([29, None, None, 40, None]))
    assert told == [(0, 2, ("battery",)), (60, 0, ())]


def test_no_switch_within_the_dwell_time() -> None:
    told = tell(at(i, battery_percent=29 if i % 2 else 36) for i in range(24))
    assert told == [(0, 0, ()), (1, 2, ("battery",)), (12, 0, ()), (23, 2, ("battery",))]


def test_heat_gives_up_one_rung_per_dwell_and_gives_back_one_by_one() -> None:
    temperatures = [79] * 5 + [80] * 25 + [78] * 30 + [75] * 25
    told = tell(at(i, temperature_c=c) for i, c in enumerate(temperatures))
    assert told == [(0, 0, ()), (5, 1, ("heat",)), (15, 2, ("heat",)), (60, 1, ("heat",)), (70, 0, ())]


@pytest.mark.parametrize(("mode", "rung"), [("10W", 2), ("low-power", 2), ("MAXN", 0), (None, 0)])
def test_power_mode(mode: str | None, rung: int) -> None:
    assert tell([at(0, power_mode=mode)])[-1][1] == rung


def test_lateness_gives_up_and_gives_back_only_where_there_is_room() -> None:
    # rung 0 takes 2 x 12 ms here: late; on rung 1 the path takes 95 - 12 = 83 ms, and going back would take 95: no room
    late = [at(i, path_ms=104, embed_ms=24) for i in range(3)]
    tight = [at(3 + i, path_ms=83, embed_ms=12) for i in range(30)]
    # with 60 ms, going back is expected to take 60 + 12 = 72 ms
    easy = [at(33 + i, path_ms=60, embed_ms=12) for i in range(3)]
    assert tell([*late, *tight, *easy]) == [(0, 1, ("deadline",)), (33, 0, ())]


def test_a_recording_has_no_deadline() -> None:
    assert tell([at(0, spent=None)]) == [(0, 0, ())]


def test_a_ladder_of_one_rung_stays() -> None:
    now = at(0, battery_percent=1, temperature_c=99, power_mode="7W", path_ms=500, embed_ms=400)
    assert choose(Choice(), now, RUNGS[:1], SETTINGS, DEADLINE_MS).rung == 0


def test_a_clock_that_went_back_does_not_freeze_the_choice() -> None:
    told = tell([at(70_000, battery_percent=20), at(34, battery_percent=90)])
    assert told == [(70_000, 2, ("battery",)), (34, 0, ())]


def story() -> Iterable[Conditions]:
    """Ten minutes at 1 Hz: the battery drains and is charged, the machine heats up and cools, a load comes and goes."""
    for s in range(600):
        battery = 45 - s / 10 if s < 200 else 25 + (s - 200) / 10  # 30 % at 150 s, 25 at 200, 35 at 300, 65 at the end
        temperature = 84 if 350 <= s < 365 else 70
        busy = 440 <= s < 475
        # the load triples what everything takes; the embedding's share follows the rung that the story expects
        embed = 36.0 if busy else 12.0
        path = 130.0 if 440 <= s < 450 else 90.0 if busy else 40.0
        yield at(s, battery_percent=battery, temperature_c=temperature, power_mode="MAXN", path_ms=path, embed_ms=embed)


def test_ten_minutes() -> None:
    assert tell(story()) == [
        (0, 0, ()),
        (151, 2, ("battery",)),  # the first second below 30 %
        (300, 0, ()),  # 35 %: five points above
        (350, 1, ("heat",)),
        (360, 2, ("heat",)),  # still hot one dwell later
        (370, 1, ("heat",)),  # 70 degrees: given back one by one
        (380, 0, ()),
        (440, 1, ("deadline",)),
        # 450 to 474 s: 90 ms, and one rung back would take 90 + 36 = 126
        (475, 0, ()),
    ]


def test_the_story_is_told_the_same_twice() -> None:
    assert tell(story()) == tell(story())
