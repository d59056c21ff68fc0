"""Which embedder for this device: what was measured here, beside the order that is usually given."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from edge.backends.base import choose_backend, open_artefact
from edge.config import ModelsConfig, ScoreConfig
from edge.environment_build import View, build
from edge.features import Embedder
from edge.files import write_json
from edge.manifest import Manifest
from edge.records import Image

#: The orders that the literature gives, best first, by the beginning of an artefact's name.
ORDERS = {
    "realtime": ("mobilenet_v3", "efficientnet_lite"),
    "quality": ("resnet101", "resnet50", "vgg16"),
}
WITHIN = 0.02  # of the best separation AUC: the fastest of these is the device's default


@dataclass(frozen=True)
class Row:
    """One embedder as measured here: median latency of a fixation (ms), and separation AUC, mean over pictures."""

    name: str
    backend: str
    latency_ms: float
    auc: float
    auc_smallest: float
    gap_cos: float
    trained: bool


def separation(manifest: Manifest, pictures: dict[str, Image], cache: Path) -> tuple[float, float, float]:
    """Return mean and smallest separation AUC and the mean gap in cosine, each picture being one environment.

    What was measured stays in `cache`, by the artefact's id, since it takes a minute and never changes.
    """
    known: dict[str, list[float]] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(cache.read_text(encoding="utf-8"))
    if manifest.model_id not in known:
        model = open_artefact(manifest, ModelsConfig(force=(manifest.name,)))
        reports = [
            build(Embedder(model, ScoreConfig()), [View(name, image)], ScoreConfig()).info.separation
            for name, image in pictures.items()
        ]
        model.close()
        auc, gap = (np.array([report[key] for report in reports]) for key in ("auc", "gap_cos"))
        # A picture too small for two windows apart has no AUC.
        known[manifest.model_id] = [float(np.nanmean(auc)), float(np.nanmin(auc)), float(np.nanmean(gap))]
        write_json(cache, known)
    mean, smallest, gap_cos = known[manifest.model_id]
    return mean, smallest, gap_cos


def measure(
    manifests: list[Manifest], pictures: dict[str, Image], cache: Path, latency: Callable[[str, str], float]
) -> list[Row]:
    """Measure embedders; `latency` (name, backend) -> ms."""
    rows = []
    for manifest in manifests:
        backend = choose_backend(manifest).__name__.rpartition(".")[2]
        trained = manifest.weights == "trained"
        # Seeded weights separate nothing: what they give isn't worth the minutes that a large network takes for it.
        auc, smallest, gap = separation(manifest, pictures, cache) if trained else (math.nan,) * 3
        rows.append(Row(manifest.name, backend, latency(manifest.name, backend), auc, smallest, gap, trained))
    return rows


def device_default(rows: list[Row]) -> Row | None:
    """Return the fastest trained embedder whose separation AUC is within 0.02 of the best one's."""
    trained = [row for row in rows if row.trained]
    best = max((row.auc for row in trained), default=0.0)
    return min((row for row in trained if row.auc >= best - WITHIN), key=lambda row: row.latency_ms, default=None)


def disagreements(order: tuple[str, ...], rows: list[Row], aim: str) -> list[str]:
    """Return where what was measured contradicts an order, pair by pair.

    For ``realtime`` the earlier should be faster, for ``quality`` it should separate better; seeded weights say nothing
    about quality.
    """
    said = []
    for better, worse in combinations(order, 2):
        first, second = (_of(prefix, rows, aim) for prefix in (better, worse))
        if first is None or second is None:
            continue
        if aim == "realtime" and first.latency_ms > second.latency_ms:
            said.append(
                f"{second.name} is faster than {first.name}: {second.latency_ms:.1f} to {first.latency_ms:.1f} ms"
            )
        if aim == "quality" and first.auc < second.auc:
            said.append(f"{second.name} separates better than {first.name}: {second.auc:.3f} to {first.auc:.3f}")
    return said


def verdict(order: tuple[str, ...], rows: list[Row], aim: str) -> str:
    """Return in words where what was measured contradicts an order, or that nothing does, or that nothing can."""
    if sum(_of(prefix, rows, aim) is not None for prefix in order) < 2:
        weights = "" if aim == "realtime" else " with trained weights"
        return f"not to be judged here: fewer than two of them are here{weights}"
    return "; ".join(disagreements(order, rows, aim)) or "nothing here contradicts it"


def _of(prefix: str, rows: list[Row], aim: str) -> Row | None:
    found = [row for row in rows if row.name.startswith(prefix) and (row.trained or aim == "realtime")]
    return min(found, key=lambda row: row.latency_ms, default=None)
