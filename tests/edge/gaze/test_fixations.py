"""Streaming I-VT: agreement with an expert, scripted stories, rates from 50 to 2000 Hz."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fixations import with_expert
from edge.config import FixationConfig
from edge.gaze.fixations import FixationDetector, FixationResult, Interval, detect, robust_period_ns
from edge.gaze.simulator import EyeModel, free_looks, simulate
from edge.records import NAN, Fixation, GazeSample

STEADY_EYE = EyeModel(noise_deg=0.0, drift_deg_s=0.0, blinks_per_min=0.0)


def samples(times_s: np.ndarray, x: np.ndarray, y: np.ndarray | float = 0.0, valid: np.ndarray | None = None) -> list:
    ys = np.broadcast_to(np.asarray(y, dtype=float), np.shape(x))
    ok = np.ones(len(x), bool) if valid is None else valid
    return [
        GazeSample(i, round(t * 1e9), 10 * float(a), 10 * float(b), float(a), float(b), 1.0, bool(v))
        for i, (t, a, b, v) in enumerate(zip(times_s, x, ys, ok, strict=True))
    ]


def steady(hz: float, seconds: float, start_s: float = 0.0, x: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    t = start_s + np.arange(round(seconds * hz)) / hz
    return t, np.full(len(t), x)


def spans_ms(result: FixationResult) -> list[tuple[float, float]]:
    return [(f.start_ns / 1e6, f.end_ns / 1e6) for f in result.fixations]


@pytest.mark.parametrize(("merge", "least_event_f1"), [(False, 0.84), (True, 0.79)], ids=["unmerged", "merged"])
def test_agrees_with_an_expert(data: Path, merge: bool, least_event_f1: float) -> None:
    recording = data / "gaze" / "irf_eyelink_1000hz" / "lookAtPoint_EL_S1.npy"
    agreement = with_expert(recording, FixationConfig(merge=merge))
    assert agreement["sample_f1"] >= 0.97
    assert agreement["kappa"] >= 0.78
    assert agreement["event_f1"] >= least_event_f1


@pytest.mark.parametrize("merge", [False, True], ids=["unmerged", "merged"])
def test_counts_what_a_recording_lost(data: Path, merge: bool) -> None:
    table = np.load(data / "gaze" / "irf_eyelink_1000hz" / "lookAtPoint_EL_S1.npy")
    result = detect(samples(table["t"], table["x"], table["y"], table["status"]), FixationConfig(merge=merge))
    assert result.n_invalid == 1862
    assert result.hz_measured == pytest.approx(1000, rel=1e-6)


@pytest.mark.parametrize("hz", [50, 60, 120, 200, 500, 1000, 2000], ids=lambda hz: f"{hz}Hz")
def test_finds_the_looks_of_a_scripted_movement(hz: int) -> None:
    looks = free_looks(10.0, seed=3)
    gaze = simulate(looks, hz, seed=3, eye=STEADY_EYE)
    result = detect(samples(gaze.t_s, gaze.x_deg, gaze.y_deg), FixationConfig(merge=False))
    assert len(result.fixations) == len(gaze.fixations)
    # A look's edge is known to a sample, and blurred by half the velocity window of at least one sample.
    slack_s = 1 / hz + max(0.010, 1 / hz)
    for fixation, (start, end) in zip(result.fixations, gaze.fixations, strict=True):
        assert fixation.start_ns / 1e9 == pytest.approx(start, abs=slack_s)
        assert fixation.end_ns / 1e9 == pytest.approx(end, abs=slack_s)


def test_60_and_200_hz_give_the_same_fixations_within_a_sample() -> None:
    eye = EyeModel(noise_deg=0.01, blinks_per_min=0.0)
    found = []
    for hz in (60, 200):
        gaze = simulate(free_looks(20.0, seed=5), hz, seed=5, eye=eye)
        found.append(detect(samples(gaze.t_s, gaze.x_deg, gaze.y_deg), FixationConfig()).fixations)
    slow, fast = found
    assert len(slow) == len(fast) > 30
    for a, b in zip(slow, fast, strict=True):
        assert abs(a.start_ns - b.start_ns) <= 1e9 / 60 + 1
        assert abs(a.end_ns - b.end_ns) <= 1e9 / 60 + 1
        assert math.hypot(a.x_deg - b.x_deg, a.y_deg - b.y_deg) < 0.1


def test_60_hz_with_repeated_points_and_stamps() -> None:
    t, x = steady(60, 1.0)
    doubled = samples(np.repeat(t, 2), np.repeat(x, 2))
    result = detect(doubled, FixationConfig())
    assert spans_ms(result) == [(0.0, pytest.approx(983.333, abs=0.001))]
    assert result.fixations[0].n_samples == 120


def test_bursts_of_equal_stamps_still_hold_fixations() -> None:
    gaze = simulate(free_looks(6.0, seed=11), 200, seed=11, eye=EyeModel(noise_deg=0.01, blinks_per_min=0.0))
    burst = 12
    t = np.repeat(gaze.t_s[burst - 1 :: burst], burst)
    result = detect(samples(t, gaze.x_deg[: len(t)], gaze.y_deg[: len(t)]), FixationConfig())
    assert result.hz_measured == pytest.approx(200, rel=0.02)
    assert 0.8 * len(gaze.fixations) <= len(result.fixations) <= len(gaze.fixations)  # a stamp is up to 55 ms off


def test_centre_and_dispersion_are_mean_and_rms_angle() -> None:
    t = np.arange(100) / 200
    x = np.where(np.arange(100) % 2 == 0, 5.0, 5.02)
    result = detect(samples(t, x), FixationConfig())
    (fixation,) = result.fixations
    assert (fixation.x_deg, fixation.y_deg) == (pytest.approx(5.01), 0.0)
    assert (fixation.x_px, fixation.y_px) == (pytest.approx(50.1), 0.0)
    assert fixation.dispersion_deg == pytest.approx(0.01, rel=1e-6)
    assert (fixation.fixation_id, fixation.state) == (0, "ended")


@pytest.mark.parametrize(
    ("hole_ms", "spans"),
    [(50, [(0.0, 995.0)]), (200, [(0.0, 395.0), (600.0, 995.0)])],
    ids=["bridged", "splits"],
)
@pytest.mark.parametrize("how", ["missing", "invalid"])
def test_a_hole_in_a_steady_look(hole_ms: int, spans: list[tuple[float, float]], how: str) -> None:
    t, x = steady(200, 1.0)
    lost = (t >= 0.4 - 1e-9) & (t < 0.4 + hole_ms / 1000 - 1e-9)
    given = samples(t[~lost], x[~lost]) if how == "missing" else samples(t, np.where(lost, np.nan, x), 0.0, ~lost)
    result = detect(given, FixationConfig())
    assert spans_ms(result) == spans
    loss = [Interval(400_000_000, 600_000_000)] if hole_ms == 200 else []
    assert (result.gaps if how == "missing" else result.blinks) == loss
    assert (result.blinks if how == "missing" else result.gaps) == []


def test_a_jump_across_a_short_loss_is_not_bridged() -> None:
    t, x = steady(200, 1.0)
    x = np.where(t < 0.5, 0.0, 8.0)
    lost = (t > 0.48) & (t < 0.52)
    result = detect(samples(t, x, 0.0, ~lost), FixationConfig())
    assert [round(f.x_deg) for f in result.fixations] == [0, 8]


def test_the_falling_lid_belongs_to_the_blink() -> None:
    t, x = steady(200, 2.0)
    lid = np.interp(t, [0.96, 1.0, 1.15, 1.19], [0.0, 1.0, 1.0, 0.0])
    result = detect(samples(t, x, -4 * lid, lid < 0.9), FixationConfig())
    (blink,) = result.blinks
    assert 0.945 <= blink.start_ns / 1e9 <= 0.965
    assert 1.185 <= blink.end_ns / 1e9 <= 1.205
    assert all(f.dispersion_deg < 0.1 for f in result.fixations)
    assert len(result.fixations) == 2


def test_a_long_loss_of_the_eye_is_a_gap() -> None:
    t, x = steady(100, 3.0)
    lost = (t >= 1.0) & (t < 2.0)
    result = detect(samples(t, x, 0.0, ~lost), FixationConfig())
    assert result.gaps == [Interval(1_000_000_000, 2_000_000_000)]
    assert result.blinks == []


@pytest.mark.parametrize("kind", ["confidence 0", "closed eye", "off, but valid"])
def test_what_counts_as_a_usable_sample(kind: str) -> None:
    t, x = steady(200, 0.5)
    given = samples(t, x)
    bad = {"confidence 0": {"confidence": 0.0}, "closed eye": {"openness": 0.1}, "off, but valid": {}}[kind]
    changed = [GazeSample(s.seq, s.t_ns, s.x_px, s.y_px, s.x_deg, s.y_deg, **bad) for s in given]
    result = detect(changed, FixationConfig())
    usable = kind == "off, but valid"
    assert (result.n_invalid, len(result.fixations)) == ((0, 1) if usable else (100, 0))


@pytest.mark.parametrize(
    ("step_s", "kind"), [(15.0, "gaps"), (-15.0, "clock_jumps"), (-74667.0, "clock_jumps")], ids=str
)
def test_nothing_spans_a_clock_jump(step_s: float, kind: str) -> None:
    before, x = steady(200, 1.0, start_s=74700.0)
    after, _ = steady(200, 1.0, start_s=74701.0 + step_s)
    result = detect(samples(np.concatenate([before, after]), np.concatenate([x, x])), FixationConfig())
    assert [f.n_samples for f in result.fixations] == [200, 200]
    assert all(f.end_ns - f.start_ns == 995_000_000 for f in result.fixations)
    assert len(getattr(result, kind)) == 1


def test_a_sample_that_comes_late_is_put_into_its_place() -> None:
    t, x = steady(200, 1.0)
    ordered = samples(t, x + 0.001 * np.arange(len(t)))
    shuffled = [*ordered[:101], ordered[102], ordered[101], *ordered[103:]]
    late, right = detect(shuffled, FixationConfig()), detect(ordered, FixationConfig())
    assert late.n_late == 1
    assert late.clock_jumps == []
    assert spans_ms(late) == spans_ms(right) == [(0.0, 995.0)]
    assert late.fixations[0].n_samples == 200


def two_looks(apart_deg: float, flight_ms: int) -> list:
    """Two looks with a loop of 3 degrees across between them: fast all along."""
    t = np.arange(0, 1000) / 1000
    share = np.clip((t - 0.4) / (flight_ms / 1000), 0, 1)
    x = apart_deg * share + 1.5 * (1 - np.cos(2 * np.pi * share))
    return samples(t, x, 1.5 * np.sin(2 * np.pi * share))


@pytest.mark.parametrize(
    ("apart_deg", "flight_ms", "merge", "n"),
    [(0.3, 40, True, 1), (0.3, 40, False, 2), (0.8, 40, True, 2), (0.3, 80, True, 2)],
    ids=["near and soon", "merging off", "too far", "too late"],
)
def test_merging(apart_deg: float, flight_ms: int, merge: bool, n: int) -> None:
    result = detect(two_looks(apart_deg, flight_ms), FixationConfig(merge=merge))
    assert len(result.fixations) == n
    assert [f.fixation_id for f in result.fixations] == list(range(n))


def test_short_ones_are_discarded() -> None:
    t = np.arange(600) / 1000
    x = np.interp(t, [0, 0.2, 0.23, 0.27, 0.30, 0.6], [0, 0, 10, 10, 20, 20])
    result = detect(samples(t, x), FixationConfig())
    assert [round(f.x_deg) for f in result.fixations] == [0, 20]


def test_ongoing_fixation_is_told_and_keeps_its_number() -> None:
    gaze = simulate(free_looks(5.0, seed=9), 200, seed=9, eye=STEADY_EYE)
    detector = FixationDetector(FixationConfig(), hz=200)
    seen: dict[int, Fixation] = {}
    ended: list[Fixation] = []
    for sample in samples(gaze.t_s, gaze.x_deg, gaze.y_deg):
        ended += detector.add(sample)
        if current := detector.current:
            assert current.state == "ongoing"
            assert 0 <= sample.t_ns - current.end_ns <= 10_000_001  # half a window behind
            seen[current.fixation_id] = current
    ended += detector.flush()
    assert [f.fixation_id for f in ended] == list(range(len(ended)))
    assert sorted(seen) == list(range(len(ended)))
    for fixation in ended:
        assert seen[fixation.fixation_id].start_ns == fixation.start_ns
        assert seen[fixation.fixation_id].end_ns == fixation.end_ns


def test_fixations_are_disjoint_ordered_and_long_enough_on_noise() -> None:
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.001, 0.012, 4000))
    walk = np.cumsum(rng.normal(0, 0.05, 4000))
    result = detect(samples(t, walk, 0.0, rng.random(4000) > 0.1), FixationConfig())
    assert result.fixations
    assert all(a.end_ns < b.start_ns for a, b in pairwise(result.fixations))
    assert all(f.end_ns - f.start_ns >= 60_000_000 for f in result.fixations)


def test_the_seam_of_the_azimuth_is_none() -> None:
    t = np.arange(200) / 200
    x = np.where(np.arange(200) % 2 == 0, 179.995, -179.995)
    (fixation,) = detect(samples(t, x), FixationConfig()).fixations
    assert abs(fixation.x_deg) == pytest.approx(180.0, abs=1e-6)
    assert fixation.dispersion_deg == pytest.approx(0.005, rel=1e-3)


@pytest.mark.parametrize("n", [0, 1, 2, 3], ids=lambda n: f"{n} samples")
def test_next_to_nothing(n: int) -> None:
    result = detect(samples(np.arange(n) / 100, np.zeros(n)), FixationConfig())
    assert (result.n_samples, result.fixations) == (n, [])
    assert math.isnan(result.hz_measured) == (n < 2)


def test_all_invalid_is_one_gap() -> None:
    t, x = steady(100, 2.0)
    result = detect(samples(t, x * NAN), FixationConfig())
    assert (result.n_invalid, result.fixations) == (200, [])
    assert result.gaps == [Interval(0, 1_990_000_000)]


@pytest.mark.parametrize(
    ("steps", "period_ms"),
    [
        ([5] * 100, 5.0),
        ([5] * 90 + [10] * 10, 5.0),
        (([0] * 11 + [60]) * 20, 5.0),
        (([0] * 11 + [120]) * 20, 10.0),
        ([5] * 50 + [15_000] + [5] * 50, 5.0),
        ([5] * 50 + [-74_667_000] + [5] * 50, 5.0),
    ],
    ids=["regular", "rows missing", "bursts of 12", "slow bursts", "jump ahead", "jump back"],
)
def test_the_rate_is_robust(steps: list[int], period_ms: float) -> None:
    assert robust_period_ns([s * 1_000_000 for s in steps]) == pytest.approx(period_ms * 1e6)
