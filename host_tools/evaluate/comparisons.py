"""Systems in pairs, each metric tested on the same resamples, with a named correction over all the tests.

Accuracy and F1 need no attention and are compared between all systems; a reading of cawF1 only within one attention
source; saliency only between systems that attend to something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from host_tools.evaluate.attended import METRICS
from host_tools.evaluate.config import EvaluateConfig
from host_tools.evaluate.run import OBSERVED, Evaluation, Scored
from host_tools.metrics import classification as cl
from host_tools.metrics.estimates import Difference, Resampled, compare, mean_difference
from host_tools.metrics.statistics import CORRECTIONS


def resampled(scored: Sequence[Scored], config: EvaluateConfig) -> dict[tuple[str, str], Resampled]:
    """Return the bootstrap of each system and source, all on the same draws."""
    return {(s.system, s.source): Resampled(s.table.samples, config.resamples, config.seed) for s in scored}


def pairwise(state: Evaluation, systems: Mapping[tuple[str, str], Resampled]) -> list[dict[str, Any]]:
    """Compare every two systems in every metric that may be compared; `p_adjusted` is over all of them."""
    names = [run.config.name for run in state.runs]
    rows = [row for one, other in combinations(names, 2) for row in _pair(state, systems, one, other)]
    return _adjusted(rows, state.config.correction)


def leads(state: Evaluation, systems: Mapping[tuple[str, str], Resampled]) -> list[dict[str, Any]]:
    """Compare each system with the baseline; empty without one."""
    baseline = state.config.baseline
    names = [run.config.name for run in state.runs if baseline and run.config.name != baseline]
    rows = [row for name in names for row in _pair(state, systems, baseline, name)]
    return _adjusted(rows, state.config.correction)


def against_bases(systems: Mapping[tuple[str, str], Resampled], correction: str) -> list[dict[str, Any]]:
    """Test each reading of each system against its own base."""
    from host_tools.metrics.estimates import against_base

    rows = []
    for (name, source), system in systems.items():
        for reading in cl.READINGS:
            if np.isfinite(system.point[reading]):
                rows.append({"system": name, "source": source, **_row(against_base(system, reading))})
    return _adjusted(rows, correction)


def _pair(
    state: Evaluation, systems: Mapping[tuple[str, str], Resampled], one: str, other: str
) -> list[dict[str, Any]]:
    rows = []
    for source in dict.fromkeys(source for name, source in systems if name == one):
        if (other, source) not in systems:
            continue
        pair = systems[one, source], systems[other, source]
        metrics = [*cl.SET_METRICS] if source == OBSERVED else []
        metrics += [m for m in (*cl.READINGS, "mean_fcc") if all(np.isfinite(s.point[m]) for s in pair)]
        if source == OBSERVED:  # what people look at is the same for both
            metrics = [m for m in metrics if m != "mean_fcc"]
        rows += [{"first": one, "second": other, "source": source, **_row(d)} for d in compare(*pair, metrics)]
    if one in state.saliency and other in state.saliency:
        rows += [{"first": one, "second": other, "source": "map", **_row(d)} for d in _saliency(state, one, other)]
    return rows


def _saliency(state: Evaluation, one: str, other: str) -> list[Difference]:
    people = [sample.participant for sample in state.dataset.samples]
    people_or_none = people if all(people) else None
    found = []
    for metric in METRICS:
        a, b = ([row[metric] for row in state.saliency[name]] for name in (one, other))
        options = {"n_resamples": state.config.resamples, "seed": state.config.seed}
        found.append(mean_difference(metric, a, b, people_or_none, **options))
    return [d for d in found if np.isfinite(d.value)]


def _row(difference: Difference) -> dict[str, Any]:
    row = asdict(difference)
    value = row.pop("value")
    return {
        "metric": row["metric"],
        "first_value": row["first"],
        "second_value": row["second"],
        "difference": value,
        "ci95": list(row["ci95"]),
        "relative_percent": row["relative_percent"],
        "p": row["p"],
        "dz": row["dz"],
    }


def _adjusted(rows: list[dict[str, Any]], correction: str) -> list[dict[str, Any]]:
    adjusted = CORRECTIONS[correction]([row["p"] for row in rows])
    return [{**row, "p_adjusted": float(p), "correction": correction} for row, p in zip(rows, adjusted, strict=True)]
