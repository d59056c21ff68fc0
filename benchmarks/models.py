"""Every embedder on every inference runtime of this machine, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.machine import describe
from edge.config import ModelsConfig
from edge.manifest import Manifest, list_artefacts, models_dir
from edge.tune import Measurement, Plan, measure


def table(names: list[str], directory: str, plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure artefacts and return ``machine`` and ``rows``; see `row`. `names` empty: every embedder here."""
    found = [m for m in list_artefacts(models_dir(directory)) if m.role == "embedder"]
    chosen = [m for m in found if not names or m.name in names or m.reference in names]
    measured = list(measure(chosen, ModelsConfig(dir=directory), [1], plan, say))
    return {"machine": describe(), "batch": 2, "threads": 1, "rows": rows(chosen, measured)}


def rows(manifests: list[Manifest], measured: list[Measurement]) -> list[dict[str, Any]]:
    """Return a row per measurement: latencies in ms of one fixation (two pictures), and what they cost in quality.

    ``ratio`` is the reference artefact's median on ONNX Runtime over this one's: above 1 is faster.
    """
    known = {m.name: m for m in manifests}
    base = {m.artefact: m.warm["p50"] for m in measured if m.backend == "onnxruntime" and not m.reason}
    result = []
    for m in measured:
        manifest = known[m.artefact]
        reference = base.get(manifest.reference or manifest.name)
        result.append(
            {
                "artefact": m.artefact,
                "backend": m.backend,
                "precision": manifest.precision,
                "weights": manifest.weights,
                "p50_ms": m.warm.get("p50"),
                "p99_ms": m.warm.get("p99"),
                "runs": m.warm.get("n"),
                "paced_p50_ms": m.paced.get("p50"),
                "ratio": reference / m.warm["p50"] if reference and m.warm else None,
                "drift_median_dfcc": manifest.drift.get("dfcc_median", 0.0 if not manifest.reference else None),
                "gate": manifest.gate,
                "memory_mb": m.memory_mb,
                "open_ms": m.open_ms,
                "reason": m.reason,
            }
        )
    return result
