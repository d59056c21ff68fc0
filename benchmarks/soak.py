"""A device for minutes or hours: does it drop, grow or leak?

`emogaze run` as a process of its own, on an MJPEG camera of 1280x720 at 30 pictures per second and an LSL gaze stream
of 200 Hz, both in processes of their own, encoded or simulated beforehand. Once a second it is asked for its status,
and the kernel for its memory, file descriptors and threads, those of its readers included.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.pipeline import GAZE_HZ, prepare
from edge.errors import SinkError
from edge.live.control import ask
from edge.profiling import resident_mb

ROOT = Path(__file__).parents[1]
RATE_HZ, CLIP_S = 30.0, 10.0
START_LIMIT_S = 60.0
STARTING_S = 0.05  #: until the first score it is asked so often: that time is a result too
WARM_UP_SHARE, WARM_UP_S = 0.5, 300.0  #: memory counts from the first five minutes on, or from half of a shorter run
GROWTH_MB_PER_10_MIN = 1.0
GROWTH_S = 120.0  #: growth is not told from less than this after the warm-up, that is from runs under four minutes

CONFIG = """\
[scene]
source = "{camera}"
[face_camera]
source = "scene"
[gaze]
source = "lsl:EmoGazeSoak"
[environment]
cache = "{folder}/environment"
[sinks]
allow_plaintext = true
events = "{folder}/events.ndjson"
publish = "ipc://{folder}/wire"
[live]
control = "{folder}/c.sock"
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the device: counts so far, and what its processes hold."""

    t_s: float
    state: str
    pictures: int
    scores: int
    camera_dropped: int
    pictures_dropped: int
    sinks_dropped: int
    deadlines_missed: int
    p50_ms: float
    p99_ms: float
    resident_mb: float
    readers_mb: float
    descriptors: int
    threads: int


def soak(folder: Path, minutes: float, overrides: list[str]) -> dict[str, Any]:
    """Run the device for `minutes` and return machine, samples and verdict as plain values."""
    prepare(folder, CLIP_S, overrides)
    with ExitStack() as stack:
        clip = ["--clip", str(folder / "clip.mp4"), "--seconds", str(CLIP_S), "--rate", str(RATE_HZ)]
        camera = stack.enter_context(_process(["host_tools.serve_mjpeg", *clip]))
        outlet = ["host_tools", "simulate", "--gaze", str(folder / "gaze.csv"), "--name", "EmoGazeSoak"]
        gaze = stack.enter_context(_process(outlet))
        url = _first_line(camera)
        _first_line(gaze)
        settings = folder / "device.toml"
        settings.write_text(CONFIG.format(camera=url, folder=folder), encoding="utf-8")
        sets = [word for override in overrides for word in ("--set", override)]
        device = stack.enter_context(_process(["edge.cli", "run", "-c", str(settings), *sets]))
        samples = list(_watch(device, folder / "c.sock", minutes * 60))
        ask(folder / "c.sock", cmd="stop")
        device.wait(30)
    return {
        "machine": describe(),
        "minutes": minutes,
        "camera_hz": RATE_HZ,
        "gaze_hz": GAZE_HZ,
        "overrides": overrides,
        "start_s": samples[0].t_s,
        "verdict": judge(samples),
        "samples": [asdict(sample) for sample in samples],
    }


def judge(samples: list[Sample]) -> dict[str, Any]:
    """Return what the samples say: drops after the first one, growth per ten minutes, and leaks.

    Growth is the slope of the memory of all processes after the warm-up, None where too little of the run is left.
    Descriptors and threads leak if the second half has more than the first ever had: a status request takes one of
    each for a moment.
    """
    first, last = samples[0], samples[-1]
    span_s = last.t_s - first.t_s
    settled = [s for s in samples if s.t_s - first.t_s >= min(WARM_UP_S, WARM_UP_SHARE * span_s)]
    growth = None
    if settled[-1].t_s - settled[0].t_s >= GROWTH_S:
        growth = 600 * slope([s.t_s for s in settled], [s.resident_mb + s.readers_mb for s in settled])
    drops = {
        name: getattr(last, name) - getattr(first, name)
        for name in ("camera_dropped", "pictures_dropped", "sinks_dropped", "deadlines_missed")
    }
    half = len(settled) // 2
    constant = {
        name: max(getattr(s, name) for s in settled[half:]) <= max(getattr(s, name) for s in settled[:half])
        for name in ("descriptors", "threads")
    }
    failed = [name for name, count in drops.items() if count]
    failed += ["memory"] if growth is not None and growth >= GROWTH_MB_PER_10_MIN else []
    failed += [name for name, same in constant.items() if not same]
    return {
        "seconds": span_s,
        "pictures": last.pictures - first.pictures,
        "scores": last.scores - first.scores,
        "drops": drops,
        "growth_mb_per_10_min": growth,
        "constant": constant,
        "not_ready_samples": sum(s.state != "ready" for s in samples),
        "failed": failed,
        "passed": not failed,
    }


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the median slope between any two points (Sen 1968), of at most 1000 that are evenly spread.

    Unlike least squares it doesn't take pictures in flight, which come and go in steps of 2.8 MB, for growth.
    """
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), 1000)).astype(int))
    one, other = np.triu_indices(len(chosen), 1)
    t, level = np.asarray(x)[chosen], np.asarray(y)[chosen]
    return float(np.median((level[other] - level[one]) / (t[other] - t[one])))


def _watch(device: subprocess.Popen[str], socket: Path, seconds: float) -> Iterator[Sample]:
    start = time.monotonic()
    give_up = start + START_LIMIT_S
    end = None
    while end is None or time.monotonic() < end:
        if device.poll() is not None:
            raise SinkError(
                "emogaze run", f"ended with code {device.returncode}", fix="run it by hand with its device.toml"
            )
        try:
            status = ask(socket, cmd="status")["status"]
        except SinkError:
            status = {}
        if end is None and status.get("scores"):
            end = time.monotonic() + seconds
        if end is not None and status:
            yield _sample(device.pid, status, time.monotonic() - start)
        elif end is None and time.monotonic() > give_up:
            raise SinkError("emogaze run", f"gave no score within {START_LIMIT_S:g} s", got=json.dumps(status)[:300])
        time.sleep(STARTING_S if end is None else 1)


def _sample(pid: int, status: dict[str, Any], t_s: float) -> Sample:
    scene = next(stream for stream in status["streams"] if stream["name"] == "scene")
    readers = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return Sample(
        t_s=t_s,
        state=status["state"],
        pictures=status["frames"],
        scores=status["scores"],
        camera_dropped=scene["dropped"],
        pictures_dropped=status["pictures_dropped"],
        sinks_dropped=sum(sink["dropped"] for sink in status["sinks"].values()),
        deadlines_missed=status["deadlines_missed"],
        p50_ms=status["score_age_ms"]["p50"],
        p99_ms=status["score_age_ms"]["p99"],
        resident_mb=resident_mb(pid)[0],
        readers_mb=sum(resident_mb(reader)[0] for reader in readers),
        descriptors=sum(len(list(Path(f"/proc/{p}/fd").iterdir())) for p in (pid, *readers)),
        threads=sum(len(list(Path(f"/proc/{p}/task").iterdir())) for p in (pid, *readers)),
    )


@contextmanager
def _process(module: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *module], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise SinkError(str(process.args), "didn't start", fix="run it by hand")
    return line
