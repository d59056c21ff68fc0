"""The table of battery levels compares frame by frame, and only frames that have a score in both runs."""

from __future__ import annotations

import math

import pytest

from benchmarks.precision import Level, compare


def level(battery: float, fcc: dict[int, float]) -> Level:
    return Level(battery, fcc, ("artefact@1",), {"p50": 1.0}, 12.5)


def test_frames_are_compared_with_themselves() -> None:
    reference = level(100, {1: 0.5, 2: 0.6, 3: 0.7, 5: 0.9})
    row = compare(reference, level(20, {2: 0.61, 3: 0.65, 4: 0.1, 5: 0.9}))
    # frames 2, 3 and 5: |change| 0.01, 0.05 and 0
    assert row["n_scores"] == 3
    assert row["dfcc_median"] == pytest.approx(0.01)
    assert row["dfcc_p95"] == pytest.approx(0.01 + 0.9 * 0.04)
    assert row["fcc_mean"] == pytest.approx((0.61 + 0.65 + 0.9) / 3)
    assert compare(reference, reference)["dfcc_p95"] == 0.0


def test_no_common_frame_is_undefined() -> None:
    row = compare(level(100, {1: 0.5}), level(20, {2: 0.5}))
    assert row["n_scores"] == 0 and math.isnan(row["dfcc_median"]) and math.isnan(row["fcc_mean"])
