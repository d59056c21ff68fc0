"""When a rater may rate: stages, breaks, and how many a day. Values in, value out; no clock, no storage."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from edge.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol of a study; the defaults are those of the benchmark's source."""

    per_stage: int = 500
    break_min: float = 15.0
    stages_per_day: int = 4
    training_min: float = 30.0

    def __post_init__(self) -> None:
        if self.per_stage < 1 or self.stages_per_day < 1 or self.break_min < 0 or self.training_min < 0:
            raise ConfigError("annotation rules", f"can't be followed: {self}", expected="positive numbers")


@dataclass(frozen=True, slots=True)
class Gate:
    """What a rater may do now. `until`: when waiting is over; `stage` counts from 1."""

    kind: Literal["training", "rate", "wait", "done"]
    stage: int = 0
    until: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a rater has done: pictures voted on, and start and end of stages, in order."""

    n_votes: int
    training_started: datetime | None
    training_done: bool
    stage_starts: Sequence[datetime] = ()
    stage_ends: Sequence[datetime] = ()


def n_stages(n_pictures: int, rules: Rules) -> int:
    """Return how many stages there are: ceil(n / per_stage)."""
    return math.ceil(n_pictures / rules.per_stage)


def gate(now: datetime, n_pictures: int, done: Progress, rules: Rules) -> Gate:
    """Decide what a rater may do now.

    A stage that was begun is gone on with at any time (a crash costs nobody a break). A new one needs the training, the
    break since the end of the last one, and a day on which fewer than `stages_per_day` stages were begun; a day is a
    calendar day of `now`'s time zone.
    """
    if not done.training_done:
        return Gate("training")
    if done.n_votes >= n_pictures:
        return Gate("done")
    stage = done.n_votes // rules.per_stage + 1
    if len(done.stage_starts) >= stage:
        return Gate("rate", stage)
    if done.stage_ends:
        rested = max(done.stage_ends) + timedelta(minutes=rules.break_min)
        if now < rested:
            return Gate("wait", stage, rested, f"a break of {rules.break_min:g} minutes between stages")
    today = [start for start in done.stage_starts if start.astimezone(now.tzinfo).date() == now.date()]
    if len(today) >= rules.stages_per_day:
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return Gate("wait", stage, midnight, f"at most {rules.stages_per_day} stages a day")
    return Gate("rate", stage)


def training_left(now: datetime, done: Progress, rules: Rules) -> timedelta:
    """Return how long the training still has to last; zero when it may be finished."""
    started = done.training_started or now
    return max(started + timedelta(minutes=rules.training_min) - now, timedelta(0))


def order(n_pictures: int, seed: int, rater: str) -> list[int]:
    """Return the order in which a rater sees the pictures: random, and the same whenever it is asked for."""
    indices = list(range(n_pictures))
    random.Random(f"{seed}/{rater}").shuffle(indices)
    return indices
