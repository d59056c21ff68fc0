"""The utility report: how far private statistics lie from the true ones, by epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edge.dp.mechanisms import Array, private_histogram, private_series
from edge.dp.statistics import FEATURES, GazeData, Unit, release_statistics, unit_maps, unit_values

EPSILONS = (0.5, 1.0, 3.0, 8.0)
DELTA = 1e-6


def utility(
    data: Sequence[GazeData], series: Sequence[float], unit: Unit, grid: tuple[int, int], draws: int
) -> dict[str, Any]:
    """Return, for each epsilon, the median and 95th percentile of errors over `draws` releases.

    Each row spends its epsilon on one release of that kind alone: the statistics together, the map, or the series. The
    report is made from the true data and is itself not private: it is for whoever holds the recording.

    Parameters
    ----------
    data : sequence of GazeData
        The recordings.
    series : sequence of float
        FCC over time, for the series; empty leaves it out.
    unit : str
        fixation, session or person.
    grid : (int, int)
        Columns and rows of the map.
    draws : int
        Releases per epsilon.
    """
    truth = _true_statistics(data, unit)
    maps = unit_maps(data, grid, unit)
    rows = []
    for epsilon in EPSILONS:
        row: dict[str, Any] = {"epsilon": epsilon, "statistics": _statistic_errors(data, unit, epsilon, truth, draws)}
        if maps.size:
            found = [_correlation(private_histogram(maps, epsilon, DELTA), maps.sum(axis=0)) for _ in range(draws)]
            row["heatmap_correlation"] = _spread(found, low=True)
        if series:
            row["series_fcc_error"] = _series_errors(series, epsilon, draws)
        rows.append(row)
    return {"unit": unit, "delta": DELTA, "draws": draws, "truth": truth, "grid": list(grid), "rows": rows}


def _true_statistics(data: Sequence[GazeData], unit: Unit) -> dict[str, float]:
    truth = {f"n_{unit}s": float(len(unit_values(data, "duration_ms", unit)))}
    for feature in FEATURES:
        values = unit_values(data, feature, unit)
        if values:
            truth[f"mean_{feature}"] = float(np.mean(values))
    return truth


def _statistic_errors(
    data: Sequence[GazeData], unit: Unit, epsilon: float, truth: dict[str, float], draws: int
) -> dict[str, dict[str, float]]:
    errors: dict[str, list[float]] = {name: [] for name in truth}
    for _ in range(draws):
        released = release_statistics(data, unit, epsilon)
        for name, value in truth.items():
            errors[name].append(abs(released[name] - value))
    return {name: _spread(found) for name, found in errors.items()}


def _series_errors(series: Sequence[float], epsilon: float, draws: int) -> dict[str, dict[str, float]]:
    """Compare noise on all values with noise on the low frequencies alone (root mean square error)."""
    true = np.asarray(series)
    found: dict[str, list[float]] = {"every_value": [], "low_frequencies": []}
    for _ in range(draws):
        for name, keep in (("every_value", 32), ("low_frequencies", 4)):
            noisy = private_series(true, FEATURES["fcc"], keep, 32, (epsilon, DELTA))
            found[name].append(float(np.sqrt(np.mean((noisy - true) ** 2))))
    return {name: _spread(values) for name, values in found.items()}


def _correlation(noisy: Array, true: Array) -> float:
    noisy = np.maximum(noisy, 0.0)
    if np.ptp(noisy) == 0 or np.ptp(true) == 0:
        return 0.0
    return float(np.corrcoef(noisy, true)[0, 1])


def _spread(values: Sequence[float], *, low: bool = False) -> dict[str, float]:
    """Return the median and the bad end: the 95th percentile, or (`low`: more is better) the 5th."""
    return {"median": float(np.median(values)), "p5" if low else "p95": float(np.percentile(values, 5 if low else 95))}
