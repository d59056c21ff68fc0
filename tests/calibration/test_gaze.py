"""Nine points: a known distortion is undone, validated on points that took no part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibration.gaze import calibrate, fit
from edge.errors import DataError
from edge.gaze.simulator import EyeModel, Look, simulate
from edge.gaze.validation import Target, measure
from edge.records import NAN, GazeSample

ROOT = Path(__file__).parents[2]
NINE = [(x, y) for y in (-8.0, 0.0, 8.0) for x in (-12.0, 0.0, 12.0)]
OTHERS = [(-6.0, -4.0), (6.0, 4.0), (-6.0, 4.0), (6.0, -4.0)]


def session(noise_deg: float = 0.05) -> tuple[list[GazeSample], list[Target]]:
    """A second and a half on each target; the tracker is off by a shift, a scale and a bend."""
    places = NINE + OTHERS
    looks = [Look(1.5 * i, 1.5 * i + 1.4, x, y) for i, (x, y) in enumerate(places)]
    gaze = simulate(looks, 200, seed=6, eye=EyeModel(noise_deg=noise_deg, drift_deg_s=0.0, blinks_per_min=6))
    x = 0.8 + 1.05 * gaze.x_deg + 0.004 * gaze.x_deg * gaze.y_deg
    y = -0.6 + 0.96 * gaze.y_deg + 0.003 * gaze.x_deg**2
    columns = zip(gaze.t_s, x, y, gaze.valid, strict=True)
    samples = [GazeSample(i, round(t * 1e9), NAN, NAN, a, b, 1.0, bool(v)) for i, (t, a, b, v) in enumerate(columns)]
    targets = [
        Target(round(1.5e9 * i), round(1.5e9 * i + 1.4e9), px, py, validates=i >= len(NINE))
        for i, (px, py) in enumerate(places)
    ]
    return samples, targets


def test_a_quadratic_correction_undoes_the_distortion() -> None:
    report = calibrate(*session(), model="quadratic", device="test")
    assert report.before.accuracy_deg > 0.8
    assert report.after.accuracy_deg < 0.1
    assert report.after.passed
    calibration = report.calibration
    assert (calibration.n_points, calibration.n_validation, calibration.device) == (9, 4, "test")
    assert calibration.accuracy_deg == report.after.accuracy_deg
    # White noise of 0.05 deg per axis: successive samples differ by sqrt(2) * sqrt(2) * 0.05 deg RMS.
    assert report.after.rms_s2s_deg == pytest.approx(0.1, rel=0.1)


def test_richer_models_fit_better() -> None:
    errors = [calibrate(*session(), model=model).after.accuracy_deg for model in ("offset", "affine", "quadratic")]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[2]


def test_accuracy_is_unknown_without_validation_targets() -> None:
    samples, targets = session()
    report = calibrate(samples, [t for t in targets if not t.validates], model="affine")
    assert report.calibration.accuracy_deg is None
    assert np.isnan(report.after.accuracy_deg)
    assert not report.after.passed


@pytest.mark.parametrize(
    ("places", "model"),
    [([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], "quadratic"), ([(float(i), 0.0) for i in range(9)], "affine")],
    ids=["too few", "on a line"],
)
def test_targets_that_determine_nothing(places: list[tuple[float, float]], model: str) -> None:
    samples = [GazeSample(i, i * 1_000_000_000, NAN, NAN, x, y) for i, (x, y) in enumerate(places)]
    targets = [Target(s.t_ns, s.t_ns, s.x_deg, s.y_deg) for s in samples]
    with pytest.raises(DataError, match=f"don't determine a {model}"):
        fit(measure(samples, targets, settle_ns=0), model)  # type: ignore[arg-type]


def test_command(tmp_path: Path) -> None:
    samples, targets = session()
    recording, table, output = tmp_path / "gaze.csv", tmp_path / "targets.csv", tmp_path / "gaze_calibration.json"
    rows = [f"{s.t_ns / 1e9},{s.x_deg},{s.y_deg},{int(s.valid)}" for s in samples]
    recording.write_text("# time_unit: s\n# units: deg\nt,x,y,valid\n" + "\n".join(rows) + "\n")
    uses = [
        f"{t.start_ns / 1e9},{t.end_ns / 1e9},{t.x_deg},{t.y_deg},{'validate' if t.validates else 'fit'}"
        for t in targets
    ]
    table.write_text("start_s,end_s,x,y,use\n" + "\n".join(uses) + "\n")
    command = [sys.executable, "-m", "calibration", "gaze", str(recording), "--targets", str(table), "-o", str(output)]
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "emogaze.gaze_calibration_report"
    assert report["passed"]
    assert report["after"]["accuracy_deg"] < 0.1 < report["before"]["accuracy_deg"]
    assert json.loads(output.read_text())["accuracy_deg"] == pytest.approx(report["after"]["accuracy_deg"])
