"""Measures every artefact on every inference runtime of this device, and keeps the choices that no other beats.

Each measurement runs in a process of its own, so that memory is that artefact's alone and nothing stays warm for the
next. What is measured is one fixation: a batch of two, the window and the scene.
"""

from __future__ import annotations

import math
import multiprocessing
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from edge import plugins
from edge.backends.base import PACKAGE, Model, new_batch, open_model, why_not
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.ladder import Ladder, Rung, non_dominated
from edge.manifest import Manifest
from edge.profiling import resident_mb, summarise_ms
from edge.telemetry import SystemTelemetry

_BATCH = 2
_WARM_UP = 5


@dataclass(frozen=True)
class Plan:
    """How long to measure: `samples` inferences back to back, and as many at the pace of a camera.

    Each of both ends after `seconds`, but not before five inferences.
    """

    samples: int = 50
    pace_ms: float = 33.0
    seconds: float = math.inf


@dataclass(frozen=True)
class Measurement:
    """One artefact on one runtime. Latencies in ms, of one fixation; `None`: this machine doesn't tell."""

    artefact: str
    backend: str
    active: str
    threads: int
    warm: dict[str, float]
    paced: dict[str, float]
    open_ms: float
    memory_mb: float
    energy_mj: float | None
    reason: str = ""


def family(manifests: list[Manifest], name: str) -> list[Manifest]:
    """Return the reference artefact that `name` belongs to, and all that were made from it and passed their gate.

    Raises
    ------
    ModelError
        There is no such embedder.
    """
    known = {m.name: m for m in manifests if m.role == "embedder"}
    if name not in known:
        raise ModelError("emogaze tune", f"there is no embedder {name!r}", expected="one of " + ", ".join(known))
    reference = known[name].reference or name
    return [m for m in known.values() if m.name == reference or (m.reference == reference and m.gate == "passed")]


def measure(
    manifests: list[Manifest], models: ModelsConfig, threads: list[int], plan: Plan, say: Callable[[str], None] = print
) -> Iterator[Measurement]:
    """Measure each artefact on each runtime that can run it, with each number of threads."""
    for manifest in manifests:
        for backend in plugins.names(PACKAGE):
            if why_not(plugins.load(PACKAGE, backend, setting="models.backend"), manifest):
                continue
            for n in threads:
                settings = msgspec.structs.replace(models, backend=backend, threads=n, force=(manifest.name,))
                result = measure_apart(manifest.name, settings, plan)
                said = result.reason or f"{result.paced['p50']:.2f} ms, {result.memory_mb:.0f} MB"
                say(f"{manifest.name} on {backend}, {n} thread{'s' if n > 1 else ''}: {said}")
                yield result


def ladder(measurements: list[Measurement], manifests: list[Manifest]) -> Ladder:
    """Return the ladder of the measurements: by paced median latency and the drift that each artefact brings.

    Raises
    ------
    ModelError
        Nothing could be measured.
    """
    drifts = {m.name: m.drift.get("dfcc_median", 0.0 if not m.reference else None) for m in manifests}
    rungs = [
        Rung(
            artefact=m.artefact,
            backend=m.backend,
            accelerator=m.active,
            threads=m.threads,
            latency_ms=m.paced["p50"],
            latency_p99_ms=m.paced["p99"],
            drift=drift,
            energy_mj=m.energy_mj,
            memory_mb=m.memory_mb,
        )
        for m in measurements
        if not m.reason and (drift := drifts[m.artefact]) is not None
    ]
    if not rungs:
        reasons = "; ".join(f"{m.artefact} on {m.backend}: {m.reason}" for m in measurements) or "nothing runs here"
        raise ModelError("emogaze tune", f"nothing could be measured ({reasons})")
    return Ladder(machine=f"{platform.node()} ({platform.machine()})", rungs=non_dominated(rungs))


def measure_apart(name: str, models: ModelsConfig, plan: Plan) -> Measurement:
    """Measure in a fresh process; a crash of a runtime costs one measurement."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(measure_here, name, models, plan).result()
        except Exception as error:  # noqa: BLE001 - whatever happened there, the others are still measured
            return Measurement(name, models.backend, "", models.threads, {}, {}, 0.0, 0.0, None, str(error))


def measure_here(name: str, models: ModelsConfig, plan: Plan) -> Measurement:
    """Measure one artefact in this process; memory is the growth of its peak, so call it in a fresh one."""
    _, before = resident_mb()
    start = time.perf_counter_ns()
    model = open_model(name, models)
    spec = model.manifest.input()
    batch = new_batch(spec, _BATCH if spec.shape[0] == -1 else spec.shape[0])
    batch[:] = np.random.default_rng(0).uniform(-1, 1, batch.shape)
    feeds = {spec.name: batch}
    _times(model, feeds, Plan(_WARM_UP, 0.0))
    opened = time.perf_counter_ns() - start
    warm, energy = _with_energy(lambda: _times(model, feeds, replace(plan, pace_ms=0.0)))
    paced = _times(model, feeds, plan)
    grown = resident_mb()[1] - before
    active, summary = model.active, summarise_ms(warm)
    model.close()
    return Measurement(
        name, models.backend, active, models.threads, summary, summarise_ms(paced), opened / 1e6, grown, energy
    )


def _times(model: Model, feeds: dict[str, Any], plan: Plan) -> list[int]:
    """Time inferences of the embedding in ns; with a pace, each waits for its turn as frames of a camera do."""
    samples: list[int] = []
    due = time.perf_counter()
    end = due + plan.seconds
    while len(samples) < plan.samples and (len(samples) < _WARM_UP or time.perf_counter() < end):
        if plan.pace_ms:
            time.sleep(max(0.0, due - time.perf_counter()))
            due += plan.pace_ms / 1e3
        start = time.perf_counter_ns()
        model.infer(feeds, ("features",))
        samples.append(time.perf_counter_ns() - start)
    return samples


def _with_energy(work: Callable[[], list[int]]) -> tuple[list[int], float | None]:
    """Run `work` and return the energy per call in mJ, if the machine reports its power."""
    with SystemTelemetry(period_ns=0) as machine:
        before = machine.at(time.monotonic_ns())
        samples = work()
        after = machine.at(time.monotonic_ns())
    known = [state.power_w for state in (before, after) if state is not None and state.power_w is not None]
    return samples, float(np.mean(known) * np.mean(samples) / 1e6) if known else None
