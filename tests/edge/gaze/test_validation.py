"""Accuracy and precision against reference values; what a calibration does."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from edge.config import GazeConfig
from edge.errors import ConfigError
from edge.gaze.calibration import GazeCalibration, read_calibration, write_calibration
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import open_gaze
from edge.gaze.validation import Target, accuracy_deg, measure, offset_deg, quality, rms_s2s_deg, std_deg
from edge.records import NAN, GazeSample

SHIFT = GazeCalibration(model="offset", x_coefficients=(1.0,), y_coefficients=(-0.5,), range_deg=(-10, 10, -5, 5))


def test_reference_values() -> None:
    assert accuracy_deg([1, 2], [1, 2]) == pytest.approx(2.12116, abs=5e-6)
    assert rms_s2s_deg([1, 2, 3], [1, 2, 3]) == pytest.approx(1.41421, abs=5e-6)
    assert std_deg([0, 2], [0, 0]) == pytest.approx(1.0)
    assert offset_deg(0, 0) == 0


def test_undefined_without_data() -> None:
    assert math.isnan(accuracy_deg([], []))
    assert math.isnan(rms_s2s_deg([1], [1]))
    assert math.isnan(std_deg([], []))


def looks(*places: tuple[float, float]) -> list[GazeSample]:
    """A second at 100 Hz on each place; the first 0.4 s far away."""
    return [
        GazeSample(i, i * 10_000_000, NAN, NAN, *(places[i // 100] if i % 100 >= 40 else (50.0, 50.0)))
        for i in range(100 * len(places))
    ]


def test_measure_leaves_out_the_way_there_and_counts_lost_targets() -> None:
    targets = [Target(k * 10**9, (k + 1) * 10**9 - 1, 5.0 * k, 0.0) for k in range(3)]
    measured = measure(looks((0.3, 0.0), (5.0, 0.4)), targets)
    assert [m.n_samples for m in measured] == [50, 50, 0]
    assert [m.offset_deg for m in measured[:2]] == pytest.approx([0.3, 0.4])
    result = quality(measured)
    assert (result.accuracy_deg, result.worst_deg) == pytest.approx((0.35, 0.4))
    assert (result.rms_s2s_deg, result.n_targets, result.n_lost, result.passed) == (0.0, 3, 1, False)
    assert quality(measured[:2]).passed
    assert math.isnan(quality([]).accuracy_deg)


def test_correction_is_not_extrapolated() -> None:
    slope = GazeCalibration(
        model="affine", x_coefficients=(0, 0.1, 0), y_coefficients=(0, 0, 0), range_deg=(-10, 10, -5, 5)
    )
    assert slope.correct(5, 0) == (5.5, 0)
    assert slope.correct(30, 0) == (31, 0)  # as at 10 degrees
    assert SHIFT.correct(0, 0) == (1.0, -0.5)
    assert all(math.isnan(v) for v in SHIFT.correct(NAN, NAN))


def test_mapping_applies_it_before_pixels(tmp_path: Path) -> None:
    file, calibration = tmp_path / "gaze.csv", tmp_path / "gaze_calibration.json"
    file.write_text("t,x,y\n0,320,180\n")
    write_calibration(calibration, SHIFT)
    assert read_calibration(str(calibration)) == SHIFT
    geometry = "camera = {width_px = 640, height_px = 360, fx = 320}"
    config = GazeConfig(
        source=str(file), time_unit="s", frame="scene_px", geometry=geometry, calibration=str(calibration)
    )
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        (sample,) = map(mapping, source)
    assert (sample.x_deg, sample.y_deg) == (1.0, -0.5)
    assert sample.x_px == pytest.approx(320 + 320 * math.tan(math.radians(1)))
    assert sample.y_px == pytest.approx(180 + 320 * math.tan(math.radians(0.5)) / math.cos(math.radians(1)))
    assert mapping.calibration == SHIFT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no such file"),
        ("{}", "is no gaze calibration"),
        (
            '{"model": "affine", "x_coefficients": [1], "y_coefficients": [1], "range_deg": [0, 1, 0, 1]}',
            "3 coefficients",
        ),
    ],
    ids=["absent", "empty", "wrong number"],
)
def test_wrong_files(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "gaze_calibration.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_calibration(str(file))
