"""The mechanisms against independent formulas, the units by hand, the ledger, and what the source lets through."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from kept_sink import Kept

from edge.config import DpConfig
from edge.dp import mechanisms
from edge.dp.ledger import Ledger
from edge.dp.mechanisms import Bounds, private_count, private_histogram, private_mean, private_series
from edge.dp.sink import PrivateSink
from edge.dp.statistics import GazeData, gaze_data, release_statistics, unit_maps, unit_values
from edge.errors import DataError
from edge.records import Event, RedactedFrame
from tests.conftest import need

need("opendp")
DRAWS = 2000


@pytest.mark.parametrize(("epsilon", "changes"), [(0.5, 1), (2.0, 1), (3.0, 3)], ids=["0.5", "2", "3-three-changes"])
def test_count_has_discrete_laplace_noise_of_the_stated_scale(epsilon, changes):
    n = 4 * DRAWS  # so that 12 % of the scale are more than five standard errors
    noise = np.array([private_count(5, epsilon, changes=changes) for _ in range(n)]) - 5
    a = math.exp(-epsilon / changes)
    expected = 2 * a / (1 - a * a)  # mean absolute value of a discrete Laplace variable
    assert np.abs(noise).mean() == pytest.approx(expected, rel=0.12)
    assert abs(noise.mean()) < 5 * noise.std() / math.sqrt(n)


def test_neighbouring_counts_are_as_hard_to_tell_apart_as_promised():
    """No outcome is more than e^epsilon times likelier with one record more (up to the error of counting draws)."""
    one = np.array([private_count(10, 1.0) for _ in range(DRAWS)])
    two = np.array([private_count(11, 1.0) for _ in range(DRAWS)])
    for threshold in range(6, 16):
        p, q = (one >= threshold).mean(), (two >= threshold).mean()
        error = math.sqrt((q * (1 - q) + math.e**2 * p * (1 - p)) / DRAWS)  # standard deviation of q - e p
        assert q <= math.e * p + 5 * error


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 8.0])
def test_gaussian_noise_keeps_its_promise_by_the_exact_formula(epsilon):
    """Balle and Wang 2018, theorem 8: the delta of a Gaussian mechanism of sensitivity 1."""
    delta = 1e-6
    noise = np.concatenate([private_histogram(np.zeros((0, 500)), epsilon, delta) for _ in range(10)])
    sigma = noise.std()
    phi = NormalDist().cdf
    exact = phi(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * phi(-0.5 / sigma - epsilon * sigma)
    assert exact < delta * 2  # sigma is itself estimated, to about 1 %
    assert sigma < 2 * 4.6 / epsilon**0.7  # and not needlessly large


def test_values_are_clamped_to_the_bounds():
    bounds = Bounds(0.0, 1.0, "")
    assert private_mean([100.0] * 1000, bounds, 1000.0) == pytest.approx(1.0, abs=0.01)
    assert private_mean([0.25] * 1000, bounds, 1000.0) == pytest.approx(0.25, abs=0.01)
    assert 0.0 <= private_mean([], bounds, 0.1) <= 1.0


def test_long_vectors_are_scaled_down():
    vectors = np.array([[30.0, 40.0], [0.6, 0.0]])
    assert private_histogram(vectors, 1000.0, 1e-3) == pytest.approx([0.6 + 0.6, 0.8], abs=0.15)


def test_series_keeps_low_frequencies_and_spares_noise():
    bounds = Bounds(-1.0, 1.0, "")
    slow = 0.5 * np.sin(np.arange(128) * 2 * math.pi / 128)
    whole = [np.abs(private_series(slow, bounds, 32, 32, (2000.0, 1e-3)) - slow).mean() for _ in range(20)]
    low = [np.abs(private_series(slow, bounds, 4, 32, (2000.0, 1e-3)) - slow).mean() for _ in range(20)]
    assert np.mean(low) < 0.6 * np.mean(whole)
    basis = mechanisms._dct_basis(8)
    assert basis @ basis.T == pytest.approx(np.eye(8), abs=1e-12)


@pytest.mark.parametrize(("values", "keep"), [([], 2), ([1.0], 0), ([1.0], 33)], ids=["empty", "none", "too-many"])
def test_series_arguments(values, keep):
    with pytest.raises(ValueError, match="expected at least one value"):
        private_series(values, Bounds(0, 1, ""), keep, 32, (1.0, 1e-6))


def fixation(number: int, start_ms: int, end_ms: int, x: float) -> Event:
    payload = {
        "fixation_id": number,
        "start_ns": start_ms * 10**6,
        "end_ns": end_ms * 10**6,
        "x_px": x,
        "y_px": 10.0,
        "x_deg": x / 10,
        "y_deg": 0.0,
        "dispersion_deg": 0.5,
    }
    return Event(0, end_ms * 10**6, end_ms * 10**6, "fixation", payload)


def score(t_ms: int, number: int, fcc: float | None) -> Event:
    payload = {"width": 100, "height": 50, "score": {"fixation_id": number, "fcc_now": fcc}, "gaze": [[1, 2, 3.0, 4.0]]}
    return Event(0, t_ms * 10**6, t_ms * 10**6, "score", payload)


LOG = [
    score(10, 0, 0.2),
    score(20, 0, 0.4),
    fixation(0, 0, 200, 10.0),
    score(250, 1, None),
    fixation(1, 210, 1500, 60.0),
]


def test_features_of_fixations_by_hand():
    rows = gaze_data(LOG, "s").rows
    assert rows[0] == pytest.approx({"duration_ms": 200, "dispersion_deg": 0.5, "x": 0.1, "y": 0.2, "fcc": 0.3})
    assert rows[1] == pytest.approx(
        {"duration_ms": 1290, "dispersion_deg": 0.5, "x": 0.6, "y": 0.2, "saccade_deg": 5.0}
    )


def test_one_record_per_unit():
    one, two = gaze_data(LOG, "a", "P"), gaze_data(LOG[:3], "b", "P")
    assert unit_values([one, two], "duration_ms", "fixation") == [200, 1000, 200]  # 1290 is clamped
    assert unit_values([one, two], "duration_ms", "session") == [600, 200]
    assert unit_values([one, two], "duration_ms", "person") == pytest.approx([1400 / 3])
    maps = unit_maps([one, two], (2, 1), "session")
    assert maps.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert np.linalg.norm(maps, axis=1).max() <= 1


def test_statistics_come_near_with_much_data_and_a_large_budget():
    data = [GazeData("s", "s", [{"duration_ms": 300.0, "fcc": 0.8, "dispersion_deg": 1.0, "saccade_deg": 5.0}] * 5000)]
    found = release_statistics(data, "fixation", 10.0)
    assert found["n_fixations"] == pytest.approx(5000, abs=20)
    assert found["mean_duration_ms"] == pytest.approx(300, abs=3)
    assert found["mean_fcc"] == pytest.approx(0.8, abs=0.01)


def test_the_ledger_refuses_to_overspend(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl", (1.0, 1e-5))
    for _ in range(10):
        ledger.spend(["a"], (0.1, 1e-6), "tenth")
    with pytest.raises(DataError, match=r"budget of a doesn't allow this; expected epsilon <= "):
        ledger.spend(["a"], (0.1, 0.0), "one more")
    assert ledger.balance("a").epsilon == pytest.approx(1.0)
    ledger.spend(["b"], (1.0, 0.0), "another key")
    with pytest.raises(DataError, match="budget of b"):
        ledger.spend(["c", "b"], (0.5, 0.0), "together")
    assert ledger.balance("c").epsilon == 0


def test_delta_is_counted_too(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl", (10.0, 1e-6))
    with pytest.raises(DataError, match="delta"):
        ledger.spend(["a"], (1.0, 2e-6), "x")


def test_a_ledger_of_another_budget_or_none_at_all_is_refused(tmp_path):
    path = tmp_path / "l.jsonl"
    Ledger(path, (1.0, 0.0)).spend(["a"], (0.1, 0.0), "x")
    with pytest.raises(DataError, match="made with another budget"):
        Ledger(path, (9.0, 0.0)).balance("a")
    path.write_text("hello\n")
    with pytest.raises(DataError, match="is no privacy ledger"):
        Ledger(path, (1.0, 0.0)).balance("a")


@pytest.mark.parametrize("cost", [(0.0, 0.0), (-1.0, 0.0), (math.inf, 0.0), (1.0, 1.0), (math.nan, 0.0)], ids=str)
def test_costs_must_make_sense(tmp_path, cost):
    with pytest.raises(ValueError, match="cost"):
        Ledger(tmp_path / "l", (1.0, 0.0)).spend(["a"], cost, "x")


class NoPictures(Kept):
    def picture(self, frame: RedactedFrame) -> None:
        raise AssertionError("a picture came through")


def test_the_source_lets_only_noise_through(tmp_path: Path):
    kept = NoPictures()
    settings = DpConfig(epsilon=1.0, window_s=1.0, budget=2.0, ledger=str(tmp_path / "l.jsonl"))
    with PrivateSink([kept], settings, "session-1") as sink:
        sink.event(Event(0, 0, 0, "session", {"emogaze": "1"}))
        for second in range(5):
            sink.event(fixation(second, second * 1000, second * 1000 + 500, 10.0))
            sink.event(score(second * 1000 + 600, second, 0.5))
            sink.event(Event(0, 0, 0, "a_kind_of_next_year", {"gaze": 1}))
            sink.picture(None)  # type: ignore[arg-type]
        sink.event(Event(0, 0, 0, "health", {"state": "ready", "scores": 5, "fcc_undefined": {"no_fixation": 1}}))
        sink.event(Event(0, 6 * 10**9, 6 * 10**9, "end", {"frames": 5, "fixations": 5}))
    kinds = ["session", "private_gaze", "private_gaze", "private_gaze", "health", "end"]
    assert [event.kind for event in kept.events] == kinds
    assert [event.payload for event in kept.events[4:]] == [{"state": "ready"}, {"frames": 5}], "no exact counts"
    first, _, third = (event.payload for event in kept.events[1:4])
    assert (first["epsilon"], first["unit"]) == (1.0, "fixation")
    assert third["reason"] == "the budget is spent"
    assert "fixation_id" not in str(kept.events)
    assert Ledger(tmp_path / "l.jsonl", (2.0, 0.0)).balance("session-1").epsilon == 2.0
