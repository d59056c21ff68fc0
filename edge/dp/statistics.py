"""What is released about gaze: bounded features of fixations, one record per unit of privacy, with noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edge.clock import NS_PER_MS
from edge.dp.mechanisms import Array, Bounds, private_count, private_histogram, private_mean
from edge.records import Event

Unit = Literal["fixation", "session", "person"]
#: Each feature's bounds: fixed beforehand, because bounds taken from the data would leak.
FEATURES: dict[str, Bounds] = {
    "duration_ms": Bounds(60.0, 1000.0, "ms"),
    "dispersion_deg": Bounds(0.0, 2.0, "deg"),
    "saccade_deg": Bounds(0.0, 20.0, "deg"),
    "fcc": Bounds(0.0, 1.0, ""),
}

#: How many values of a feature one fixation adds or removes: without it, two saccades go and another one comes.
CHANGES = {"saccade_deg": 3}


@dataclass(slots=True)
class GazeData:
    """The fixations of one recording: `rows` has one dict each, with the FEATURES that are known, and x, y 0..1."""

    session: str
    person: str
    rows: list[dict[str, float]] = field(default_factory=list)


def gaze_data(events: Iterable[Event], session: str, person: str = "") -> GazeData:
    """Gather the ended fixations of an event log, each with the mean FCC of its frames."""
    data = GazeData(session, person or session)
    scores: dict[int, list[float]] = {}
    fixations: list[dict[str, Any]] = []
    size = (0.0, 0.0)
    for event in events:
        if event.kind == "fixation":
            fixations.append(event.payload)
        elif event.kind == "score":
            size = float(event.payload.get("width") or 0), float(event.payload.get("height") or 0)
            score = event.payload.get("score") or {}
            if score.get("fcc_now") is not None:
                scores.setdefault(score["fixation_id"], []).append(float(score["fcc_now"]))
    before: dict[str, Any] | None = None
    for fixation in fixations:
        row = _row(fixation, before, size)
        if fixation["fixation_id"] in scores:
            row["fcc"] = float(np.mean(scores[fixation["fixation_id"]]))
        data.rows.append(row)
        before = fixation
    return data


def _row(fixation: dict[str, Any], before: dict[str, Any] | None, size: tuple[float, float]) -> dict[str, float]:
    values = {
        "duration_ms": (fixation["end_ns"] - fixation["start_ns"]) / NS_PER_MS,
        "dispersion_deg": _number(fixation.get("dispersion_deg")),
    }
    if before is not None:
        dx, dy = (_number(fixation.get(axis)) - _number(before.get(axis)) for axis in ("x_deg", "y_deg"))
        values["saccade_deg"] = math.hypot(dx, dy)
    if all(size):
        values["x"], values["y"] = _number(fixation.get("x_px")) / size[0], _number(fixation.get("y_px")) / size[1]
    return {key: value for key, value in values.items() if math.isfinite(value)}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def unit_values(data: Sequence[GazeData], feature: str, unit: Unit) -> list[float]:
    """Return one bounded value per unit: each fixation's, or the mean over a session's or a person's fixations."""
    bounds = FEATURES[feature]
    groups: dict[object, list[float]] = {}
    for number, recording in enumerate(data):
        for i, row in enumerate(recording.rows):
            if feature in row:
                key = {"fixation": (number, i), "session": number, "person": recording.person}[unit]
                groups.setdefault(key, []).append(min(max(row[feature], bounds.lower), bounds.upper))
    return [float(np.mean(values)) for values in groups.values()]


def unit_maps(data: Sequence[GazeData], grid: tuple[int, int], unit: Unit) -> Array:
    """Return one map per unit (n, rows * columns): the share of its fixations in each cell, so each sums to 1."""
    columns, rows = grid
    groups: dict[object, Array] = {}
    for number, recording in enumerate(data):
        for i, row in enumerate(recording.rows):
            if "x" in row and "y" in row and 0 <= row["x"] < 1 and 0 <= row["y"] < 1:
                key = {"fixation": (number, i), "session": number, "person": recording.person}[unit]
                cell = int(row["y"] * rows) * columns + int(row["x"] * columns)
                groups.setdefault(key, np.zeros(rows * columns))[cell] += 1
    return np.array([counts / counts.sum() for counts in groups.values()]).reshape(-1, rows * columns)


def release_statistics(data: Sequence[GazeData], unit: Unit, epsilon: float) -> dict[str, float]:
    """Return the number of units and the mean of each feature, with noise; epsilon is shared evenly among them."""
    share = epsilon / (len(FEATURES) + 1)
    n_units = {
        "fixation": sum(len(recording.rows) for recording in data),
        "session": len(data),
        "person": len({recording.person for recording in data}),
    }[unit]
    released = {f"n_{unit}s": private_count(n_units, share)}
    for feature, bounds in FEATURES.items():
        changes = CHANGES.get(feature, 1) if unit == "fixation" else 1
        released[f"mean_{feature}"] = private_mean(unit_values(data, feature, unit), bounds, share, changes=changes)
    return released


def release_heatmap(
    data: Sequence[GazeData], grid: tuple[int, int], unit: Unit, budget: tuple[float, float]
) -> npt.NDArray[np.float64]:
    """Return a fixation map (rows, columns) with Gaussian noise; negative cells are set to 0, which costs nothing."""
    noisy = private_histogram(unit_maps(data, grid, unit), *budget)
    return np.maximum(noisy, 0.0).reshape(grid[1], grid[0])
