"""The balance between classification and attention: weights FCC^gamma (0: macro-F1, 1: cawF1), fixed or learned.

What a metric is for is to tell systems apart. So gamma is learned as the value that separates the systems best, in
units of the noise, on all scene types but one; on the one left out it is compared with the fixed values. That it holds
there is what makes it learned and not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from host_tools.evaluate.cawf1 import SMALLEST_CELL
from host_tools.evaluate.run import Evaluation, Scored
from host_tools.metrics import classification as cl
from host_tools.metrics.estimates import Resampled

N_RESAMPLES = 200


def powered(samples: cl.Samples, gamma: float) -> cl.Samples:
    """Return the samples with weights FCC^gamma; what has no FCC keeps none (nan to the power 0 would be 1)."""
    with np.errstate(divide="ignore"):
        return samples.weighted_by(np.where(np.isfinite(samples.fcc), samples.fcc**gamma, np.nan))


def fixed(state: Evaluation) -> list[dict[str, Any]]:
    """Return the headline of each system and source for every configured gamma."""
    return [
        {
            "system": s.system,
            "source": s.source,
            "gamma": g,
            cl.HEADLINE: cl.score(powered(s.table.samples, g))[cl.HEADLINE],
        }
        for s in state.scored
        if np.isfinite(s.table.samples.fcc).any()
        for g in state.config.sweeps.gamma
    ]


def learned(state: Evaluation) -> list[dict[str, Any]]:
    """Return, per attention source and scene type left out, the learned gamma and how well it separates there.

    Empty without two systems of one source and two scene types of at least ten samples.
    """
    rows = []
    for source in dict.fromkeys(s.source for s in state.scored):
        systems = [s for s in state.scored if s.source == source and np.isfinite(s.table.samples.fcc).any()]
        if len(systems) > 1:
            rows += [{"source": source, **row} for row in _leave_one_out(state, systems)]
    return rows


def _leave_one_out(state: Evaluation, systems: Sequence[Scored]) -> list[dict[str, Any]]:
    types = np.array(systems[0].table.scene_types)
    names = [str(n) for n in np.unique(types) if n and np.sum(types == n) >= SMALLEST_CELL] if len(types) else []
    gammas = state.config.sweeps.gamma
    if len(names) < 2 or len(gammas) < 2:
        return []
    power = {
        name: np.array([separation([s.table.samples.take(types == name) for s in systems], g) for g in gammas])
        for name in names
    }
    return [{"left_out": name, **choose(power, name, gammas)} for name in names]


def choose(power: Mapping[str, npt.NDArray[np.float64]], left_out: str, gammas: Sequence[float]) -> dict[str, float]:
    """Learn gamma from all scene types but one, and return what it is worth on that one beside gamma 0 and 1."""
    rest = np.nanmean([values for name, values in power.items() if name != left_out], axis=0)
    best = int(np.nanargmax(rest))
    held = power[left_out]

    def at(gamma: float) -> float:
        return float(held[list(gammas).index(gamma)]) if gamma in gammas else float("nan")

    return {"gamma": float(gammas[best]), "separation": float(held[best]), "at_0": at(0.0), "at_1": at(1.0)}


def separation(systems: Sequence[cl.Samples], gamma: float) -> float:
    """Return how far systems lie apart: the mean over pairs of |difference| over its bootstrap's standard deviation.

    `nan` where no pair has a spread.
    """
    drawn = [Resampled(powered(samples, gamma), N_RESAMPLES) for samples in systems]
    found = []
    for one, other in combinations(drawn, 2):
        spread = float(np.nanstd(other.resampled[cl.HEADLINE] - one.resampled[cl.HEADLINE]))
        if spread > 0:
            found.append(abs(other.point[cl.HEADLINE] - one.point[cl.HEADLINE]) / spread)
    return float(np.mean(found)) if found else float("nan")
