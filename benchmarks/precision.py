"""One clip and one gaze recording at several battery levels: what the ladder's rungs cost, and what they change.

Each level is a run of its own over the same files, with the level as its telemetry. Latency is that of the embedding.
The energy proxy is the processor time of the whole process per frame: on one machine and clock rate the energy of a
frame grows with it, but it is no energy. dFCC compares each frame's score with the same frame's at the first level.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import describe
from benchmarks.pipeline import prepare
from edge.app import run
from edge.config import Config, load
from edge.pipeline import Step
from edge.profiling import StageTimer, summarise_ms


@dataclass(frozen=True)
class Level:
    """What one run at one battery level gave."""

    battery_percent: float
    fcc: dict[int, float]
    artefacts: tuple[str, ...]
    embed_ms: dict[str, float]
    cpu_ms: float


def measure(folder: Path, ladder: Path, levels: list[float], seconds: float) -> dict[str, Any]:
    """Run the levels in `folder`, over `seconds` of the clip, and return the table as plain values."""
    overrides = [f"governor.ladder='{ladder.resolve()}'"]
    path = prepare(folder, seconds, overrides)
    runs = [_run(path, folder, overrides, level) for level in levels]
    return {"machine": describe(), "ladder": str(ladder), "levels": [compare(runs[0], level) for level in runs]}


def compare(reference: Level, level: Level) -> dict[str, Any]:
    """Return a row of the table: `level` beside `reference`, over the frames that have a score in both."""
    both = sorted(reference.fcc.keys() & level.fcc.keys())
    before, after = (np.array([run.fcc[i] for i in both]) for run in (reference, level))
    change = np.abs(after - before)
    return {
        "battery_percent": level.battery_percent,
        "artefacts": list(level.artefacts),
        "embed_ms": level.embed_ms,
        "cpu_ms_per_frame": level.cpu_ms,
        "n_scores": len(both),
        "dfcc_median": _percentile(change, 50),
        "dfcc_p95": _percentile(change, 95),
        "fcc_mean": float(after.mean()) if both else float("nan"),
    }


def _percentile(values: npt.NDArray[np.float64], q: float) -> float:
    return float(np.percentile(values, q)) if len(values) else float("nan")


def _run(path: Path, folder: Path, overrides: list[str], battery_percent: float) -> Level:
    telemetry = folder / "telemetry.ndjson"
    telemetry.write_text(json.dumps({"t_s": 0.0, "battery_percent": battery_percent}) + "\n", encoding="utf-8")
    config: Config = load(path, [*overrides, f"telemetry.source='{telemetry}'"])
    steps: list[Step] = []
    timer = StageTimer()
    start = time.process_time_ns()
    summary = run(config, on_step=steps.append, timer=timer)
    spent = time.process_time_ns() - start
    scores = [step.score for step in steps]
    return Level(
        battery_percent,
        {score.frame_id: score.fcc_now for score in scores if not score.reason},
        tuple(dict.fromkeys(score.model_id for score in scores if score.model_id)),
        summarise_ms(timer.samples_ns("embed")),
        spent / 1e6 / summary.frames,
    )
