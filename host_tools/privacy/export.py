"""Differentially private statistics, maps and series of recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edge.clock import NS_PER_S
from edge.dp.ledger import Ledger
from edge.dp.mechanisms import private_series
from edge.dp.statistics import FEATURES, GazeData, Unit, gaze_data, release_heatmap, release_statistics
from edge.errors import DataError
from edge.records import Event
from edge.session.read import open_log, read_metadata

SERIES_CHUNK = 32


@dataclass(frozen=True, slots=True)
class Release:
    """What to release: cost, unit, and besides the statistics a map (columns, rows) and series of so many values.

    A map or series needs delta > 0, because their noise is Gaussian. What is released shares the budget evenly.
    """

    epsilon: float
    delta: float
    unit: Unit
    grid: tuple[int, int] | None = None
    series_s: float = 0.0
    keep: int = 4

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and math.isfinite(self.epsilon) and 0 <= self.delta < 1):
            raise ValueError(f"expected epsilon > 0 and 0 <= delta < 1, got {self.epsilon} and {self.delta}")
        if self.delta == 0 and (self.grid or self.series_s):
            raise ValueError("a map or a series has Gaussian noise and needs delta > 0, got 0")
        if self.series_s and self.unit == "fixation":
            raise ValueError("a series hides a session as a whole: expected unit session or person, got fixation")

    @property
    def parts(self) -> int:
        return 1 + bool(self.grid) + bool(self.series_s)


def read_recording(path: Path, identity: Path | None) -> tuple[GazeData, list[Event]]:
    """Read a session, or an event log in the clear.

    Raises
    ------
    DataError
        No fixation in it, or a session without an identity to open it (RecordingError).
    """
    events = list(open_log(path, identity))
    person = _subject(path, identity) if identity and path.is_dir() else ""
    data = gaze_data(events, path.resolve().name, person)
    if not data.rows:
        raise DataError(str(path), "holds no fixation", fix="record gaze: it is a purpose of its own in the consent")
    return data, events


def release(recordings: Sequence[tuple[GazeData, list[Event]]], what: Release, ledger: Ledger) -> dict[str, Any]:
    """Spend the budget and return what may leave, as plain values.

    Raises
    ------
    DataError
        The ledger has less left; nothing is released.
    """
    data = [recording for recording, _ in recordings]
    keys = sorted({d.person if what.unit == "person" else d.session for d in data})
    ledger.spend(keys, (what.epsilon, what.delta), f"export of {len(data)} recording(s), unit {what.unit}")
    share = what.epsilon / what.parts
    # The statistics have Laplace noise and need no delta.
    budget = share, what.delta / max(what.parts - 1, 1)
    body: dict[str, Any] = {
        "epsilon": what.epsilon,
        "delta": what.delta,
        "unit": what.unit,
        "composition": "basic: epsilon and delta add up, over all releases in the ledger",
        "bounds": {name: asdict(bounds) for name, bounds in FEATURES.items()},
        "statistics": release_statistics(data, what.unit, share),
    }
    if what.grid:
        body["heatmap"] = release_heatmap(data, what.grid, what.unit, budget).tolist()
    if what.series_s:
        body["series"] = _release_series(recordings, what, budget)
    else:
        body["temporal_correlation"] = "no series is released; each statistic covers the whole recording"
    return body


def fcc_series(events: Sequence[Event], step_s: float) -> list[float]:
    """Return the mean FCC of each step of so many seconds; steps without one repeat the one before (0.5 at first)."""
    times = [event.t_ns for event in events if event.kind == "score"]
    if not times:
        return []
    n = int((times[-1] - times[0]) / (step_s * NS_PER_S)) + 1
    sums, counts = np.zeros(n), np.zeros(n)
    for event in events:
        value = (event.payload.get("score") or {}).get("fcc_now") if event.kind == "score" else None
        if value is not None:
            step = min(int((event.t_ns - times[0]) / (step_s * NS_PER_S)), n - 1)
            sums[step] += value
            counts[step] += 1
    series: list[float] = []
    for total, count in zip(sums, counts, strict=True):
        series.append(float(total / count) if count else (series[-1] if series else 0.5))
    return series


def _release_series(
    recordings: Sequence[tuple[GazeData, list[Event]]], what: Release, budget: tuple[float, float]
) -> dict[str, Any]:
    persons = [data.person for data, _ in recordings]
    if what.unit == "person" and len(set(persons)) < len(persons):
        raise DataError(
            "series", "several recordings of one person", fix="release one series a person, or unit session"
        )
    values = {}
    for data, events in recordings:
        series = fcc_series(events, what.series_s)
        if series:
            noisy = private_series(series, FEATURES["fcc"], what.keep, SERIES_CHUNK, budget)
            values[data.session] = noisy.tolist()
    return {
        "feature": "fcc",
        "step_s": what.series_s,
        "method": "Fourier perturbation in chunks (Rastogi and Nath 2010; Bozkir et al. 2021), Gaussian noise",
        "chunk": SERIES_CHUNK,
        "keep": what.keep,
        "values": values,
    }


def _subject(path: Path, identity: Path) -> str:
    """Return the pseudonym in the consent record that a session holds."""
    consent = json.loads(read_metadata(path, identity).get("emogaze.consent", {}).get("json", "{}"))
    return str(consent.get("subject", ""))
