"""`emogaze calibrate` on a live stream that looks where it is told, a little off."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OUTLET = ROOT / "tests" / "helpers" / "lsl_outlet.py"
OFF_PX = 10.0  #: at 640 px and 60 degrees 1 px is 0.103 degrees in the middle


def test_a_stream_that_misses_its_goal_is_measured_and_ends_with_1(tmp_path: Path) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    eye = subprocess.Popen([sys.executable, str(OUTLET), name, "eye", "gaze", "200"], **pipes)  # type: ignore[call-overload]
    targets = tmp_path / "places.csv"
    targets.write_text("x,y\n320,180\n100,180\n320,300\n")
    command = [sys.executable, "-m", "edge.cli", "calibrate", "--gaze", f"lsl:{name}", "--targets", str(targets)]
    command += ["--seconds", "0.9", "--validate", "--json", "-o", str(tmp_path)]
    try:
        assert eye.stdout.readline() == "ready\n"
        person = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, **pipes)  # type: ignore[call-overload]
        with person:
            for _ in range(3):
                line = person.stderr.readline()
                place = re.search(r"look at \((\S+), (\S+)\) px", line)
                assert place, line + person.stderr.read()
                eye.stdin.write(f"look {float(place[1]) + OFF_PX} {place[2]}\n")
                eye.stdin.flush()
                person.stdin.write("\n")
                person.stdin.flush()
            out, _ = person.communicate(timeout=60)
    finally:
        eye.kill()
        eye.communicate()
    found = json.loads(out)
    assert person.returncode == 1 and not found["passed"]
    assert found["schema"] == "emogaze.gaze_validation"
    assert (found["n_targets"], found["n_lost"]) == (3, 0)
    # 554.26 px focal length: 10 px are atan(10 / 554.26) = 1.0336 degrees in the middle.
    assert found["targets"][0]["offset_deg"] == pytest.approx(1.0336, abs=1e-3)
    assert found["worst_deg"] == pytest.approx(1.0336, abs=1e-3)
    assert 0.8 < found["accuracy_deg"] < 1.0336
    assert found["rms_s2s_deg"] == 0
    fit = [sys.executable, "-m", "calibration", "gaze", str(tmp_path / "gaze.csv")]
    fit += ["--targets", str(tmp_path / "targets.csv"), "--model", "offset", "-o", str(tmp_path / "c.json")]
    done = subprocess.run(fit, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "c.json").read_text())["x_coefficients"][0] == pytest.approx(-1.0, abs=0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--gaze", "gaze.csv"], "say what for"), (["--gaze", "gaze.csv", "--validate"], "is no live stream")],
    ids=["for nothing", "a file"],
)
def test_refusals(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "gaze.csv").write_text("# time_unit: s\n# units: deg\nt,x,y\n0,1,2\n")
    command = [sys.executable, "-m", "edge.cli", "calibrate", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert words in done.stderr
