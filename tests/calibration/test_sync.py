"""The delay between camera and gaze, known because the test made it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.sync import Motion, estimate_offset
from edge.errors import DataError

ROOT = Path(__file__).parents[2]
SIZE = (320, 240)


def head(t: np.ndarray) -> np.ndarray:
    """Where a fixed point of the world lies in the picture (px) while the head turns; no period, no symmetry."""
    x = 40 * np.sin(2 * np.pi * 0.7 * t) + 15 * np.sin(2 * np.pi * 1.13 * t + 1)
    y = 20 * np.sin(2 * np.pi * 0.43 * t + 0.5) + 8 * np.sin(2 * np.pi * 1.7 * t)
    return np.column_stack([x, y])


def motion(t: np.ndarray, noise: float = 0.0) -> Motion:
    v = np.diff(head(t), axis=0) / np.diff(t)[:, None]
    return Motion((t[1:] + t[:-1]) / 2, v + np.random.default_rng(0).normal(0, noise, v.shape))


@pytest.mark.parametrize("late_ms", [-120.0, 0.0, 37.0, 250.0], ids=lambda ms: f"{ms:g} ms")
def test_a_known_delay_is_found_to_a_few_ms(late_ms: float) -> None:
    image, gaze = motion(np.arange(0, 12, 1 / 30)), motion(np.arange(0, 12, 1 / 200), noise=60.0)
    found = estimate_offset(image, Motion(gaze.t_s + late_ms / 1000, gaze.v))
    assert found.offset_ms == pytest.approx(-late_ms, abs=5)
    assert found.clear


def test_unrelated_motion_is_not_claimed() -> None:
    rng = np.random.default_rng(3)
    image = motion(np.arange(0, 12, 1 / 30))
    t = np.arange(0, 12, 1 / 200)
    assert not estimate_offset(image, Motion(t, rng.normal(0, 50, (len(t), 2)))).clear
    assert not estimate_offset(image, Motion(t, np.zeros((len(t), 2)))).clear


def test_too_little_common_time() -> None:
    with pytest.raises(DataError, match="too little time"):
        estimate_offset(motion(np.arange(0, 12, 1 / 30)), motion(np.arange(10, 22, 1 / 200)))


def test_from_a_clip_and_a_recording(tmp_path: Path) -> None:
    clip, gaze = tmp_path / "scene.avi", tmp_path / "gaze.csv"
    world = cv2.GaussianBlur(np.random.default_rng(1).integers(0, 256, (480, 640, 3), np.uint8), (0, 0), 3)
    world = cv2.normalize(world, None, 0, 255, cv2.NORM_MINMAX)
    writer = cv2.VideoWriter(str(clip), cv2.VideoWriter_fourcc(*"MJPG"), 30.0, SIZE)
    for x, y in head(np.arange(0, 8, 1 / 30)):
        shift = np.float32([[1, 0, x - 160], [0, 1, y - 120]])
        writer.write(cv2.warpAffine(world, shift, SIZE))
    writer.release()
    t = np.arange(0, 8, 1 / 200)
    places = head(t) + np.array([160, 120]) + np.random.default_rng(2).normal(0, 0.3, (len(t), 2))
    rows = [f"{a + 0.080:.4f},{x:.3f},{y:.3f}" for a, (x, y) in zip(t, places, strict=True)]
    geometry = "camera = {width_px = 320, height_px = 240, hfov_deg = 60}"
    gaze.write_text(f"# time_unit: s\n# frame: scene_px\n# geometry: {geometry}\nt,x,y\n" + "\n".join(rows) + "\n")
    command = [sys.executable, "-m", "calibration", "sync", str(clip), str(gaze)]
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["clear"]
    assert found["offset_ms"] == pytest.approx(-80, abs=10)
