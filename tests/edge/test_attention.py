"""Dynamics of gaze, worked out by hand."""

from __future__ import annotations

import math

import pytest

from edge.attention import dispersion_deg, dynamics, perclos, pupil_change_mm, stickiness, transition_entropy_bits
from edge.records import NAN, Fixation, GazeSample


def fixation(start_ms: int, end_ms: int, x_deg: float, y_deg: float = 0.0) -> Fixation:
    return Fixation(0, start_ms * 10**6, end_ms * 10**6, NAN, NAN, x_deg, y_deg, 0.0, 10, "ended")


def eye(t_s: float, openness: float = 1.0, pupil_mm: float = 3.0, valid: bool = True) -> GazeSample:
    return GazeSample(0, round(t_s * 1e9), NAN, NAN, 0, 0, 1.0, valid, pupil_mm, openness)


def test_dynamics_by_hand() -> None:
    fixations = [fixation(0, 200, -3), fixation(250, 650, 3), fixation(700, 800, 3, 4)]
    found = dynamics(fixations, 2_000_000_000, ["face", "exit", "exit"])
    assert found.n_fixations == 3
    assert found.fixation_ms == 200
    assert found.shift_rate_hz == 1.0  # two shifts in two seconds
    assert found.saccade_deg == pytest.approx(5.0)  # of 6 and 4 degrees
    assert found.stickiness == pytest.approx(500 / 700)
    assert found.transition_entropy_bits == 0  # one transition leaves no doubt


def test_dispersion_is_the_rms_angle_from_the_centroid() -> None:
    assert dispersion_deg([(-3, 0), (3, 0)]) == pytest.approx(3)
    assert dispersion_deg([(177, 0), (-177, 0)]) == pytest.approx(3)  # across the seam
    assert dispersion_deg([(5, 5)]) == pytest.approx(0, abs=1e-6)
    assert math.isnan(dispersion_deg([]))


@pytest.mark.parametrize(
    ("regions", "bits"),
    [
        ("abab", 0.0),  # from a always to b, from b always to a
        ("abacab", 0.6 * 0.9182958340544896),  # a leads to b, c, b: H(2/3) bits for 3 of 5 moves
        ("aabb", 0.0),
        (["a", "", "b"], 0.0),
    ],
    ids=["alternating", "one choice", "staying is no move", "no region is left out"],
)
def test_transition_entropy(regions: str, bits: float) -> None:
    assert transition_entropy_bits(list(regions)) == pytest.approx(bits)


def test_undefined_without_data() -> None:
    empty = dynamics([], 10**9, [])
    assert all(math.isnan(getattr(empty, name)) for name in ("dispersion_deg", "stickiness", "shift_rate_hz"))
    assert math.isnan(transition_entropy_bits(["a", "a"]))
    assert math.isnan(stickiness([100.0], [""]))
    assert math.isnan(dynamics([fixation(0, 100, 0)], 10**9).stickiness)
    with pytest.raises(ValueError, match="1 regions for 0"):
        dynamics([], 10**9, ["a"])


def test_perclos_is_the_share_of_a_minute_with_closed_eyes() -> None:
    samples = [eye(t, openness=0.1 if t % 10 < 2 else 0.9) for t in range(120)]
    assert perclos(samples, 119 * 10**9) == pytest.approx(0.2)
    assert math.isnan(perclos(samples[:20], 19 * 10**9))  # a third of a minute
    assert math.isnan(perclos([eye(t, openness=NAN) for t in range(60)], 59 * 10**9))


def test_pupil_change_leaves_blinks_out() -> None:
    samples = [eye(t / 100, pupil_mm=3.0 if t < 100 else 3.5) for t in range(200)]
    samples[50] = eye(0.5, openness=0.0, pupil_mm=1.0)
    samples[55] = eye(0.55, pupil_mm=0.5)  # the lid still covers half of it
    assert pupil_change_mm(samples, 10**9) == pytest.approx(0.5)
    assert math.isnan(pupil_change_mm(samples[:100], 10**9))
    assert math.isnan(pupil_change_mm([eye(t, pupil_mm=NAN) for t in range(4)], 2 * 10**9))


def test_pupil_change_is_corrected_for_light() -> None:
    # The pupil follows log light alone: 4 - 0.5 ln L. The light doubles after the baseline, nothing else happens.
    light = [50.0 + t % 10 for t in range(100)] + [110.0 + t % 10 for t in range(100)]
    samples = [eye(t / 100, pupil_mm=4 - 0.5 * math.log(level)) for t, level in enumerate(light)]
    assert pupil_change_mm(samples, 10**9) < -0.3
    assert pupil_change_mm(samples, 10**9, light) == pytest.approx(0, abs=1e-9)
