"""The whole pipeline at 1280x720 on one thread: per-stage samples, first score, memory, import time.

The input is a real clip brought to 1280x720, a simulated eye at 200 Hz that looks about freely, and an environment
cache built from the clip's first seconds. Each figure comes from a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from edge.profiling import resident_mb, summarise_ms

SIZE = (1280, 720)
CLIP = "feat/tests/data/WolfgangLanger_Pexels.mp4"
CACHE_END_S, GAZE_HZ, SEED, DURATION_S = 3.0, 200.0, 1, 20.0

CONFIG = """\
[scene]
source = "{folder}/clip.mp4"
start_s = {start_s}
end_s = {end_s}
[face_camera]
source = "scene"
[gaze]
source = "{folder}/gaze.csv"
[environment]
cache = "{folder}/environment"
[sinks]
allow_plaintext = true
events = "{folder}/events.ndjson"
"""


def measure(folder: Path, seconds: float) -> dict[str, Any]:
    """Run the benchmark in `folder` over `seconds` of the clip and return its result as plain values."""
    config = prepare(folder, seconds)
    runs = {
        "with_recall": _child(config, []),
        "without_recall": _child(config, ["models.face_recall=''"]),
    }
    main = runs["with_recall"]
    return {
        "machine": describe(),
        "size": list(SIZE),
        "frames": main["frames"],
        "import_edge_s": import_seconds(),
        "first_score_s": main["first_score_s"],
        "resident_mb": {name: run["resident_mb"] for name, run in runs.items()},
        "peak_resident_mb": {name: run["peak_resident_mb"] for name, run in runs.items()},
        "stages_ms": {stage: summarise_ms(samples) for stage, samples in main["samples_ns"].items()},
        "samples_ns": main["samples_ns"],
    }


def prepare(folder: Path, seconds: float, overrides: Sequence[str] = ()) -> Path:
    """Make clip, gaze and environment cache in `folder`, for the artefacts of `overrides`; return the configuration."""
    from edge.backends.base import open_model
    from edge.config import load
    from edge.environment import store
    from edge.environment_build import build, read_views
    from edge.features import Embedder
    from edge.gaze.geometry import Camera
    from edge.gaze.simulator import free_looks, simulate, write_csv
    from edge.ladder import embedders
    from edge.manifest import models_dir
    from models.archives import Store

    original, clip = folder / "original.mp4", folder / "clip.mp4"
    original.write_bytes(Store(models_dir("") / ".archives").member("demo_clip", CLIP))
    _enlarge(original, clip)
    camera = Camera(width_px=SIZE[0], height_px=SIZE[1], hfov_deg=60.0).complete()
    gaze = simulate(free_looks(DURATION_S, SEED), GAZE_HZ, SEED)
    write_csv(folder / "gaze.csv", gaze, seed=SEED, hz=GAZE_HZ, camera=camera)
    path = folder / "pipeline.toml"
    path.write_text(CONFIG.format(folder=folder, start_s=CACHE_END_S, end_s=CACHE_END_S + seconds), encoding="utf-8")
    config = load(path, overrides)
    opened = (Embedder(open_model(models.embedder, models), config.score) for models in embedders(config))
    views = list(read_views(str(clip), end_s=CACHE_END_S, every_s=0.5))
    store(folder / "environment", (build(embedder, views, config.score) for embedder in opened))
    return path


def import_seconds() -> float:
    """Return the best of five for `import edge` less that of an empty program (s)."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best("import edge") - best("pass")


def _enlarge(original: Path, clip: Path) -> None:
    import cv2

    capture = cv2.VideoCapture(str(original))
    writer = cv2.VideoWriter(str(clip), cv2.VideoWriter.fourcc(*"mp4v"), capture.get(cv2.CAP_PROP_FPS), SIZE)
    while True:
        good, image = capture.read()
        if not good:
            break
        writer.write(cv2.resize(image, SIZE, interpolation=cv2.INTER_CUBIC))
    capture.release()
    writer.release()


def _child(config: Path, overrides: list[str]) -> dict[str, Any]:
    code = "import sys; from benchmarks.pipeline import child; child(sys.argv[1], int(sys.argv[2]), sys.argv[3:])"
    command = [sys.executable, "-c", code, str(config), str(time.monotonic_ns()), *overrides]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def child(config: str, start_ns: int, overrides: list[str]) -> None:
    """Run one configuration and print its samples; `start_ns` is when the process was asked for."""
    import cv2

    from edge.app import run
    from edge.config import load
    from edge.profiling import StageTimer

    cv2.setNumThreads(1)
    first: list[int] = []

    def note(_: object) -> None:
        if not first:
            first.append(time.monotonic_ns())

    timer = StageTimer()
    summary = run(load(Path(config), overrides), on_step=note, timer=timer)
    resident, peak = resident_mb()
    result = {
        "frames": summary.frames,
        "first_score_s": (first[0] - start_ns) / 1e9,
        "resident_mb": resident,
        "peak_resident_mb": peak,
        "samples_ns": {stage: timer.samples_ns(stage) for stage in timer.summary()},
    }
    print(json.dumps(result))
