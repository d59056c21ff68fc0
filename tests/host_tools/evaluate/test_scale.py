"""Killed and gone on, on any engine and any number of processes, and ten thousand pictures in bounded memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge.config import GazeConfig
from host_tools.datasets import layout
from host_tools.datasets.example import generate

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("artefacts")]
ROOT = Path(__file__).parents[3]
LABELS = ("angry", "disgust", "fear", "happy", "sad", "surprise")
N_PICTURES = int(os.environ.get("EMOGAZE_SCALE_PICTURES", "10000"))
SAMPLES_EACH = 1000
MEMORY_BOUND_MB = 1500


def command(config: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "host_tools", "evaluate", str(config), "-o", str(out), *options]


def run(config: Path, out: Path, *options: str) -> str:
    """Evaluate in a process of its own, and return what it said on stderr."""
    done = subprocess.run(command(config, out, *options), cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stderr


def evaluate(config: Path, out: Path, *options: str) -> dict[str, Any]:
    run(config, out, *options)
    return read(out)


def read(out: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((out / "results.json").read_text())
    del results["made_with"]["command"]
    return results


def tables(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in (*out.glob("tables/*"), *out.glob("samples/*"))}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    generate(folder, pictures_per_emotion=3, viewers=2)
    config = folder / "evaluate.toml"
    config.write_text(config.read_text().split("[sweeps]")[0])
    return config


@pytest.fixture(scope="module")
def reference(example: Path) -> tuple[dict[str, Any], Path]:
    out = example.parent / "reference"
    return evaluate(example, out), out


@pytest.mark.parametrize(
    "options", [("--jobs", "2"), ("--jobs", "3"), ("--jobs", "2", "--engine", "ray")], ids=["two", "three", "ray"]
)
def test_any_engine_and_number_gives_the_same_tables(
    example: Path, reference: tuple[dict[str, Any], Path], tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert evaluate(example, tmp_path / "out", *options) == reference[0]
    assert tables(tmp_path / "out") == tables(reference[1])


def test_killed_it_goes_on_without_redoing_what_is_done(
    example: Path, reference: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(command(example, out), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    enough = len(list((reference[1] / "done").rglob("*.msgpack"))) // 2
    while len(list((out / "done").rglob("*.msgpack"))) < enough and process.poll() is None:
        time.sleep(0.05)  # another process is watched here
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {p: p.stat().st_mtime_ns for p in (out / "done").rglob("*.msgpack")}
    assert len(done) >= enough
    assert not (out / "results.json").exists()
    said = run(example, out)
    assert f"holds {len(done)} finished batches, which are not done again" in said
    assert read(out) == reference[0]
    assert {p: p.stat().st_mtime_ns for p in done} == done
    assert tables(out) == tables(reference[1])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand different small pictures, each with a thousand samples of 600 Hz gaze at three places."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    (folder / "media").mkdir()
    (folder / "gaze").mkdir()
    t = np.arange(SAMPLES_EACH) / 600
    samples, answers = [], ["sample_id,pred"]
    for i in range(N_PICTURES):
        blobs = cv2.resize(rng.integers(0, 255, (6, 8, 3), dtype=np.uint8), (160, 120), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / "media" / f"{i}.jpg"), blobs)
        places = rng.integers([15, 15], [145, 105], size=(3, 2))
        xy = places[np.minimum(np.arange(SAMPLES_EACH) * 3 // SAMPLES_EACH, 2)] + rng.normal(0, 0.1, (SAMPLES_EACH, 2))
        gaze = np.zeros(SAMPLES_EACH, dtype=[("t", "<f8"), ("x", "<f4"), ("y", "<f4")])
        gaze["t"], gaze["x"], gaze["y"] = t, xy[:, 0], xy[:, 1]
        np.save(folder / "gaze" / f"{i}.npy", gaze)
        label = LABELS[i % 6]
        answers.append(f"{i},{label if rng.random() < 0.7 else LABELS[rng.integers(6)]}")
        sample = layout.Sample(str(i), f"P{i % 40}", label, media=f"media/{i}.jpg", gaze=f"gaze/{i}.npy")
        samples.append(sample)
    screen = "screen = {width_mm = 160, height_mm = 120, width_px = 160, height_px = 120, distance_mm = 400}"
    gaze_config = GazeConfig(format="csv", time_unit="s", frame="screen_px", units="px", geometry=screen)
    layout.write(folder, layout.DatasetInfo(name="many", simulated=True, labels="ekman6", gaze=gaze_config), samples)
    (folder / "p.csv").write_text("\n".join(answers) + "\n")
    (folder / "e.toml").write_text('dataset = "."\n[[systems]]\nname = "net"\npredictions = "p.csv"\n')
    return folder / "e.toml"


def test_ten_thousand_pictures_in_bounded_memory(many: Path, tmp_path: Path) -> None:
    results = evaluate(many, tmp_path / "out", "--jobs", "2")
    card = results["dataset"]
    assert card["n_gaze_samples"] == N_PICTURES * SAMPLES_EACH
    assert card["n_fixations"] >= 2 * N_PICTURES
    body = results["systems"]["net"]["sources"]["observed"]
    assert (body["n"], body["n_without_fcc"]) == (N_PICTURES, 0)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 < MEMORY_BOUND_MB
