"""FCC against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edge.fcc import WEIGHTS, FccWindow, fcc_now, fcc_of_fixations, fcc_of_samples, to_unit, weights_for

S = 1_000_000_000


@pytest.mark.parametrize(
    ("table", "emotion", "expected"),
    [
        pytest.param("merged", "angry", (0.8, 0.2, "merged"), id="merged-angry"),
        pytest.param("merged", "anger", (0.8, 0.2, "merged"), id="synonym"),
        pytest.param("merged", "Fearful", (0.8, 0.2, "merged"), id="synonym-case"),
        pytest.param("merged", "surprise", (0.5, 0.5, "merged"), id="merged-surprise"),
        pytest.param("merged", "happy", (0.4, 0.6, "merged"), id="merged-happy"),
        pytest.param("merged", "sad", (0.6, 0.4, "merged"), id="merged-sad"),
        pytest.param("merged", "neutral", (0.6, 0.4, "merged"), id="merged-other"),
        pytest.param("doc-3.2", "happy", (0.5, 0.5, "doc-3.2"), id="3.2-happy"),
        pytest.param("doc-3.2", "disgust", (0.7, 0.3, "doc-3.2"), id="3.2-disgust"),
        pytest.param("doc-5.2", "surprise", (0.6, 0.4, "doc-5.2"), id="5.2-surprise"),
        pytest.param("doc-5.2", "disgust", (0.6, 0.4, "doc-5.2"), id="5.2-disgust"),
        pytest.param("fixed", "angry", (0.7, 0.3, "fixed"), id="fixed"),
        pytest.param("merged", "", (0.7, 0.3, "fixed"), id="no-emotion-is-fixed-and-says-so"),
    ],
)
def test_weights(table: str, emotion: str, expected: tuple[float, float, str]) -> None:
    assert weights_for(table, emotion) == expected


def test_every_row_sums_to_one() -> None:
    for rows in WEIGHTS.values():
        for alpha, beta in rows.values():
            assert alpha + beta == pytest.approx(1.0, abs=1e-15)


def test_unknown_table_is_named() -> None:
    with pytest.raises(ValueError, match="doc-9"):
        weights_for("doc-9", "happy")


def test_one_moment() -> None:
    # 0.4 * 0.5 + 0.6 * -0.25 = 0.05; (0.05 + 1) / 2 = 0.525
    assert fcc_now(0.5, -0.25, 0.4, 0.6) == pytest.approx(0.525, abs=1e-15)
    assert (to_unit(-1.0), to_unit(0.0), to_unit(1.0)) == (0.0, 0.5, 1.0)
    assert math.isnan(fcc_now(float("nan"), 0.5, 0.4, 0.6))
    assert math.isnan(fcc_now(0.5, float("nan"), 1.0, 0.0)), "an undefined part makes the whole undefined"


@pytest.mark.parametrize(
    ("sims", "weights"),
    [
        pytest.param((1.0000001, 0.0), (0.5, 0.5), id="similarity-above-1"),
        pytest.param((0.0, 0.0), (0.5, 0.6), id="weights-sum"),
        pytest.param((0.0, 0.0), (1.2, -0.2), id="negative-weight"),
    ],
)
def test_bad_arguments(sims: tuple[float, float], weights: tuple[float, float]) -> None:
    with pytest.raises(ValueError):
        fcc_now(*sims, *weights)


def test_window_is_a_mean_over_fixations_not_over_frames() -> None:
    window = FccWindow(10.0)
    assert window.add(0 * S, 1, 0.2) == 0.2
    assert window.add(1 * S, 1, 0.4) == pytest.approx(0.3)
    # the second fixation has one frame, and counts as much as the first one's two
    assert window.add(2 * S, 2, 0.9) == pytest.approx((0.3 + 0.9) / 2)
    assert window.add(3 * S, 2, float("nan")) == pytest.approx(0.6), "an undefined frame changes nothing"
    # at 10 s the frame at 0 s leaves: (t - 10 s, t]
    assert window.add(10 * S, 2, 0.7) == pytest.approx((0.4 + 0.8) / 2)
    # at 11.5 s the whole first fixation and nothing else has left
    assert window.add(round(11.5 * S), 3, 0.1) == pytest.approx((0.8 + 0.1) / 2)


def test_window_without_a_defined_frame_is_nan() -> None:
    window = FccWindow(1.0)
    assert math.isnan(window.add(0, 1, float("nan")))
    assert window.add(S, 1, 0.5) == 0.5
    assert math.isnan(window.add(3 * S, 2, float("nan"))), "what was defined has left the window"


def test_no_window_spans_a_step_of_the_clock() -> None:
    window = FccWindow(10.0)
    window.add(74_701 * S, 1, 0.9)
    assert window.add(34 * S, 2, 0.1) == 0.1
    window.clear()
    assert window.add(35 * S, 3, 0.3) == 0.3


def test_window_equals_a_plain_recount() -> None:
    rng = np.random.default_rng(3)
    window, frames, fixation = FccWindow(2.0), [], 0
    for i in range(400):
        fixation += int(rng.random() < 0.1)
        t, value = i * S // 30, float(rng.random())
        frames.append((t, fixation, value))
        got = window.add(t, fixation, value)
        inside = [f for f in frames if t - 2 * S < f[0] <= t]
        means = [np.mean([v for _, k, v in inside if k == look]) for look in sorted({k for _, k, _ in inside})]
        assert got == pytest.approx(float(np.mean(means)), abs=1e-12)


def test_offline_forms_agree_with_the_live_one() -> None:
    local, global_ = [0.5, 1.0, float("nan")], [-0.25, 0.0, 1.0]
    fcc = fcc_of_fixations(local, global_, [0.4, 0.8, 0.8], [0.6, 0.2, 0.2])
    assert fcc[0] == fcc_now(0.5, -0.25, 0.4, 0.6)
    assert fcc[1] == pytest.approx(0.9)
    assert math.isnan(fcc[2])


def test_samples() -> None:
    result = fcc_of_samples(["b", "a", "b", "b", "c"], [0.2, 0.5, 0.4, float("nan"), float("nan")])
    assert result.samples == ["b", "a", "c"]
    np.testing.assert_allclose(result.fcc, [0.3, 0.5, np.nan])
    assert result.n_fixations.tolist() == [3, 1, 1]
    assert result.n_undefined.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="2 fixations"):
        fcc_of_samples(["a", "b"], [0.5])
