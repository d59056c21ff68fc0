"""Agreement of fixations: worked out by hand, and with a device's own events."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.fixations import event_f1, match, runs, sample_agreement, with_device, with_expert
from edge.config import FixationConfig
from edge.errors import DataError


def test_events_are_matched_once_by_half_of_what_both_cover() -> None:
    truth = [(0, 10), (20, 30), (40, 50)]
    found = [(0, 5), (5, 10), (18, 31), (44, 60)]  # half, taken already, 10 of 13, 6 of 20
    assert match(truth, found) == [(0, 0), (1, 2)]
    assert event_f1(truth, found) == pytest.approx(4 / 7)
    assert np.isnan(event_f1([], []))


def test_samples_agree_beyond_chance() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 1, 1], bool)
    found = np.array([1, 1, 0, 0, 0, 1, 1, 1], bool)
    # Both: 4, either: 5 and 5. Observed 6/8, by chance (5/8)^2 + (3/8)^2 = 34/64.
    assert sample_agreement(truth, found) == pytest.approx((8 / 10, (48 - 34) / (64 - 34)))
    assert runs(truth) == [(0, 3), (6, 8)]


def test_agrees_with_a_device_where_its_threshold_allows_for_head_movement(data: Path) -> None:
    folder = data / "gaze" / "neon_demo_recording"
    slow, fast = (with_device(folder, FixationConfig(merge=False, velocity_deg_s=v)) for v in (30.0, 90.0))
    assert slow["n_device"] == fast["n_device"] == 23
    assert slow["event_f1"] == 0
    assert np.isnan(slow["onset_ms"]), "of no match"
    assert fast["event_f1"] > 0.6
    assert fast["onset_ms"] <= 20


def test_prints_and_writes_what_it_measured(data: Path, tmp_path: Path) -> None:
    expert = data / "gaze" / "irf_eyelink_1000hz" / "lookAtPoint_EL_S1.npy"
    done = CliRunner().invoke(app, ["fixations", "--expert", str(expert), "--json", str(tmp_path / "a.json")])
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "a.json").read_text())
    assert (document["schema"], document["version"]) == ("emogaze.benchmark_fixations", 1)
    assert document["options"]["expert"] == str(expert)
    rows = document["expert"]
    assert [row["merge"] for row in rows] == [False, True]
    assert f"{rows[0]['kappa']:.3f}" in done.output


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(DataError, match="isn't a labelled recording"):
        with_expert(tmp_path / "a.npy", FixationConfig())
