"""`emogaze fixations`: its JSON, and its refusals in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def emogaze(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge.cli", "fixations", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "gaze.csv"
    rows = [f"{i * 5};{1.0 if i < 100 else 6.0};2;{int(not 40 <= i < 80)}" for i in range(200)]
    file.write_text("\ufefftime;gx;gy;ok\n" + "\n".join(rows) + "\n", encoding="utf-8")
    done = emogaze(file, "--columns", "t=time,x=gx,y=gy,valid=ok", "--time-unit", "ms", "--units", "deg", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["version"]) == ("emogaze.fixations", 1)
    assert (found["n_samples"], found["n_invalid"], found["hz_declared"], found["hz_measured"]) == (200, 40, 0, 200)
    assert found["blinks"] == [{"start_ns": 200_000_000, "end_ns": 400_000_000}]
    assert found["gaps"] == []
    first, _, last = found["fixations"]
    assert set(first) == {"start_ns", "end_ns", "x_px", "y_px", "x_deg", "y_deg", "dispersion_deg", "n_samples"}
    assert (first["start_ns"], first["end_ns"], first["n_samples"]) == (0, 195_000_000, 40)
    assert (first["x_px"], first["x_deg"], last["x_deg"]) == (None, 1.0, 6.0)
    assert found["options"]["fixations"]["velocity_deg_s"] == 30.0


def test_pixels_with_geometry_and_threshold(tmp_path: Path) -> None:
    file, geometry = tmp_path / "gaze.csv", tmp_path / "screen.toml"
    file.write_text("t,x,y\n" + "".join(f"{i / 100},500,375\n" for i in range(100)))
    geometry.write_text(
        "[screen]\nwidth_mm=400\nheight_mm=300\nwidth_px=1000\nheight_px=750\ndistance_mm=1000\n", encoding="utf-8"
    )
    options = ("--time-unit", "s", "--units", "px", "--geometry", geometry, "--no-merge", "--json")
    done = emogaze(file, *options, "--set", "fixations.velocity_deg_s=50")
    found = json.loads(done.stdout)
    assert found["options"]["frame"] == "screen_px"
    assert found["options"]["fixations"]["merge"] is False
    assert found["options"]["fixations"]["velocity_deg_s"] == 50
    (fixation,) = found["fixations"]
    assert (fixation["x_px"], fixation["x_deg"]) == (500, 0)


def test_simulated_gaze_is_called_so(tmp_path: Path) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("# simulated: yes\n# time_unit: s\n# frame: direction\n# units: deg\nt,x,y\n0,1,2\n0.01,1,2\n")
    assert "2 simulated samples (0 invalid) at 100.0 Hz" in emogaze(file).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "unit of the times, the frame of x and y and the geometry are undeclared"),
        (["--units", "deg"], "unit of the times is undeclared"),
        (["--units", "furlong", "--time-unit", "s"], "units"),
        (["--units", "px", "--frame", "scene_px", "--time-unit", "s"], "no degrees without its geometry"),
    ],
    ids=["nothing declared", "no time unit", "unknown unit", "no geometry"],
)
def test_one_clear_line(tmp_path: Path, options: list[str], words: str) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("t,x,y\n0,1,2\n")
    done = emogaze(file, *options, "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,nan,\n1,,nan\n", "none of its 2 samples is valid"),
        ("0,1,2\n", "holds one sample"),
        ("0,1,2\n5e-6,1,2\n1e-5,1,2\n", "holds 3 samples in 1e-05 s, as no eye tracker does: check gaze.time_unit"),
        ("0,1,2\n5,1,2\n10,1,2\n", "holds samples 5 s apart"),
    ],
    ids=["no valid one", "one", "too fast", "too slow"],
)
def test_a_recording_that_nothing_can_come_of_is_said(tmp_path: Path, rows: str, words: str) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("t,x,y\n" + rows)
    done = emogaze(file, "--time-unit", "s", "--units", "deg", "--json")
    assert words in done.stderr
    assert words in json.loads(done.stdout)["options"]["note"]
