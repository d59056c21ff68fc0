"""Which precision next: pure policy, values in, value out.

The rungs of a ladder go from the least drift to the least latency. Four pressures each ask for a rung, and the lowest
that any of them asks for is taken:

- *battery*: pictures with a short side of at least 720 px **and** less than 30 % of charge ask for the last rung, until
  the charge is 5 points above the threshold. A charge that the machine doesn't report changes nothing; it is never 0 %.
- *power mode*: a low-power mode asks for the last rung.
- *heat*: while the machine is too hot one more rung is given up per dwell time, and given back one by one once it is
  cool.
- *deadline*: while scores come late one more rung is given up per dwell time; one is given back when the time it
  would take, by the ladder's latencies, is well within the deadline.

After a switch none follows for the dwell time, so that a value on a threshold doesn't make the precision flicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge.clock import NS_PER_S
from edge.config import GovernorConfig
from edge.ladder import Ladder, Rung
from edge.records import Frame, Telemetry

ROOM = 0.8  #: share of the deadline that a better rung may be expected to take


@dataclass(frozen=True, slots=True)
class Spent:
    """How long the frames before took, recently (ms): from picture to score, and the embedding's part of it."""

    path_ms: float
    embed_ms: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the choice depends on. `None` is unknown.

    `spent` is unknown to a recording's clock.
    """

    t_ns: int
    short_side_px: int
    battery_percent: float | None = None
    temperature_c: float | None = None
    power_mode: str | None = None
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Pressure:
    """Rungs that a lasting condition has given up, and when that last changed."""

    rungs: int = 0
    since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The rung to run, why it isn't the first, and what the next choice needs to know."""

    rung: int = 0
    reasons: tuple[str, ...] = ()
    since_ns: int | None = None
    low_battery: bool = False
    heat: Pressure = Pressure()
    late: Pressure = Pressure()


def choose(
    before: Choice, now: Conditions, rungs: Sequence[Rung], settings: GovernorConfig, deadline_ms: float
) -> Choice:
    """Return the choice that follows `before` under the conditions of now.

    Parameters
    ----------
    before : Choice
        The last choice; `Choice()` at the start.
    now : Conditions
    rungs : sequence of Rung
        From the least drift to the least latency.
    settings : GovernorConfig
    deadline_ms : float
        A score later than this is late.
    """
    last, dwell_ns = len(rungs) - 1, round(settings.dwell_s * NS_PER_S)
    low_battery = _low_battery(before.low_battery, now, settings)
    heat = _move(before.heat, _heat(now, settings), last, now.t_ns, dwell_ns)
    late = _move(before.late, _lateness(before, now, rungs, deadline_ms), last, now.t_ns, dwell_ns)
    low_power = now.power_mode is not None and now.power_mode in settings.low_power_modes
    asked = {
        "battery": last if low_battery and now.short_side_px >= settings.min_side_px else 0,
        "power_mode": last if low_power else 0,
        "heat": heat.rungs,
        "deadline": late.rungs,
    }
    target = max(asked.values())
    state = replace(before, low_battery=low_battery, heat=heat, late=late)
    if target == before.rung or not _waited(before.since_ns, now.t_ns, dwell_ns):
        return state
    reasons = tuple(name for name, rung in asked.items() if rung == target > 0)
    return replace(state, rung=target, reasons=reasons, since_ns=now.t_ns)


def _low_battery(before: bool, now: Conditions, settings: GovernorConfig) -> bool:
    charge = now.battery_percent
    if charge is None:
        return before
    enough = settings.battery_low_percent + settings.battery_hysteresis
    return charge < settings.battery_low_percent or (before and charge < enough)


def _heat(now: Conditions, settings: GovernorConfig) -> int:
    """Return +1 where a rung is to be given up for heat, -1 where one can be given back, else 0."""
    if now.temperature_c is None:
        return 0
    if now.temperature_c >= settings.temperature_high_c:
        return 1
    return -1 if now.temperature_c <= settings.temperature_high_c - settings.temperature_hysteresis_c else 0


def _lateness(before: Choice, now: Conditions, rungs: Sequence[Rung], deadline_ms: float) -> int:
    """Return +1 where a rung is to be given up for lateness, -1 where one can be given back, else 0."""
    if now.spent is None:
        return 0
    if now.spent.path_ms > deadline_ms:
        return 1
    if not before.late.rungs:
        return 0
    better = rungs[before.late.rungs - 1].latency_ms / rungs[before.rung].latency_ms
    expected_ms = now.spent.path_ms + now.spent.embed_ms * (better - 1.0)
    return -1 if expected_ms <= ROOM * deadline_ms else 0


def _move(pressure: Pressure, step: int, last: int, t_ns: int, dwell_ns: int) -> Pressure:
    rungs = min(max(pressure.rungs + step, 0), last)
    if rungs == pressure.rungs or not _waited(pressure.since_ns, t_ns, dwell_ns):
        return pressure
    return Pressure(rungs, t_ns)


def _waited(since_ns: int | None, t_ns: int, dwell_ns: int) -> bool:
    """Whether the dwell time has passed; a clock that went back has waited long enough."""
    return since_ns is None or not since_ns <= t_ns < since_ns + dwell_ns


class Governor:
    """The policy with its memory: the choice before.

    Parameters
    ----------
    ladder : Ladder
    settings : GovernorConfig
    deadline_ms : float
        A score later than this is late.
    """

    def __init__(self, ladder: Ladder, settings: GovernorConfig, deadline_ms: float) -> None:
        self.ladder, self._settings, self._deadline_ms = ladder, settings, deadline_ms
        self.choice = Choice()

    def choose(self, frame: Frame, telemetry: Telemetry | None, spent: Spent | None = None) -> Choice:
        """Choose the rung for a frame, by the state of the machine and the time that frames took lately."""
        known = telemetry or Telemetry(frame.t_ns)
        now = Conditions(
            t_ns=frame.t_ns,
            short_side_px=min(frame.width, frame.height),
            battery_percent=known.battery_percent,
            temperature_c=known.temperature_c,
            power_mode=known.power_mode,
            spent=spent,
        )
        self.choice = choose(self.choice, now, self.ladder.rungs, self._settings, self._deadline_ms)
        return self.choice
