"""Numbers worked out by hand on six samples of two classes (A = 0, B = 1; 2 = outside the set).

    sample  true  pred  FCC   p(true)
    1       A     A     0.8   0.9
    2       A     B     0.2   0.4
    3       B     B     0.5   0.6
    4       B     B     0.5   0.7
    5       B     A     1.0   0.1
    6       A     A     nan   0.5

With an FCC are five: A true 2, predicted 2, right 1 -> F1 1/2; B true 3, predicted 3, right 2 -> F1 2/3.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from host_tools.labels import LabelSet
from host_tools.metrics import classification as cl

NAN = float("nan")
AB = LabelSet("custom", ("happy", "sad"))
SIX = cl.Samples(
    labels=AB,
    true=np.array([0, 0, 1, 1, 1, 0]),
    pred=np.array([0, 1, 1, 1, 0, 0]),
    fcc=np.array([0.8, 0.2, 0.5, 0.5, 1.0, NAN]),
    p_true=np.array([0.9, 0.4, 0.6, 0.7, 0.1, 0.5]),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # weights of the true classes: A 1.0, B 2.0
        ("cawf1_classwise", (1.0 * (1 / 2) + 2.0 * (2 / 3)) / 3.0),
        ("cawf1_classwise_base", (2 * (1 / 2) + 3 * (2 / 3)) / 5),
        ("cawf1_literal", (1.0 * (1 / 2) + 2.0 * (2 / 3)) / 3.0),
        # weighted confusion: A right .8, A->B .2, B right 1.0, B->A 1.0
        ("cawf1_macro", (2 * 0.8 / (1.0 + 1.8) + 2 * 1.0 / (2.0 + 1.2)) / 2),
        ("cawf1_macro_base", (1 / 2 + 2 / 3) / 2),
        ("cawf1_hard", 1.8 / 3.0),
        ("cawf1_hard_base", 3 / 5),
        ("cawf1_soft", (0.8 * 0.9 + 0.2 * 0.4 + 0.5 * 0.6 + 0.5 * 0.7 + 1.0 * 0.1) / 3.0),
        ("cawf1_soft_base", (0.9 + 0.4 + 0.6 + 0.7 + 0.1) / 5),
        ("mean_fcc", 3.0 / 5),
        ("mean_fcc_bf1", (1.0 * (1 / 2) + 2.0 * (2 / 3)) / 5),
        # over all six: A true 3, predicted 3, right 2; B true 3, predicted 3, right 2
        ("accuracy", 4 / 6),
        ("f1_macro", 2 / 3),
        ("f1_weighted", 2 / 3),
        ("precision_macro", 2 / 3),
        ("recall_macro", 2 / 3),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_by_hand(name: str, value: float) -> None:
    assert cl.score(SIX)[name] == pytest.approx(value, abs=1e-12)


def test_literal_takes_a_given_bf1() -> None:
    scores = cl.score(replace(SIX, bf1=np.array([1.0, 0.5, 0.0, 0.25, 0.75, 0.9])))
    assert scores["cawf1_literal"] == pytest.approx((0.8 + 0.1 + 0 + 0.125 + 0.75) / 3)
    assert scores["cawf1_literal_base"] == pytest.approx(2.5 / 5)
    assert scores["mean_fcc_bf1"] == pytest.approx(1.775 / 5)


@pytest.mark.parametrize("reading", cl.READINGS, ids=str)
def test_equal_fcc_gives_the_base(reading: str) -> None:
    scores = cl.score(SIX.take(np.arange(5)).weighted_by(np.full(5, 0.37)))
    assert scores[reading] == pytest.approx(scores[f"{reading}_base"], abs=1e-12)


@pytest.mark.parametrize("reading", cl.READINGS, ids=str)
def test_of_one_sample_the_weight_cancels(reading: str) -> None:
    one = SIX.take([4])
    low, high = (cl.score(one.weighted_by([w]))[reading] for w in (0.1, 0.9))
    assert low == pytest.approx(high)


def test_equal_f1_in_two_environments_differs_in_fcc_alone() -> None:
    # The same face and label twice: the first environment fits what is looked at, the second doesn't.
    fits, fits_not = SIX.weighted_by(np.full(6, 0.9)), SIX.weighted_by(np.full(6, 0.3))
    assert cl.score(fits)["cawf1_macro_base"] == cl.score(fits_not)["cawf1_macro_base"]
    assert cl.score(fits)["mean_fcc_bf1"] == pytest.approx(3 * cl.score(fits_not)["mean_fcc_bf1"])


@pytest.mark.parametrize("reading", cl.READINGS, ids=str)
def test_without_any_fcc_the_readings_are_undefined_and_the_bases_are_not(reading: str) -> None:
    scores = cl.score(SIX.weighted_by(np.full(6, NAN)))
    assert math.isnan(scores[reading])
    assert scores[f"{reading}_base"] > 0
    assert math.isnan(scores["mean_fcc"])


def test_all_fcc_zero_is_undefined_and_its_mean_is_zero() -> None:
    scores = cl.score(SIX.weighted_by(np.zeros(6)))
    assert all(math.isnan(scores[name]) for name in cl.READINGS)
    assert scores["mean_fcc"] == scores["mean_fcc_bf1"] == 0


def test_a_class_that_never_occurs_is_left_out_of_the_macro_mean() -> None:
    three = replace(SIX, labels=LabelSet("custom", ("happy", "sad", "fear")))
    assert cl.score(three)["cawf1_macro"] == pytest.approx(cl.score(SIX)["cawf1_macro"])


def test_a_class_that_is_only_predicted_counts_as_zero() -> None:
    three = cl.Samples(LabelSet("custom", ("happy", "sad", "fear")), np.array([0, 1]), np.array([0, 2]), np.ones(2))
    assert cl.score(three)["f1_macro"] == pytest.approx((1 + 0 + 0) / 3)


def test_a_prediction_outside_the_set_is_wrong_for_its_class_alone() -> None:
    outside = cl.Samples(AB, np.array([0, 0, 1]), np.array([0, 2, 1]), np.ones(3))
    assert cl.confusion(outside).tolist() == [[1, 0, 1], [0, 1, 0]]
    assert cl.f1_per_class(cl.confusion(outside)).tolist() == pytest.approx([2 / 3, 1])


def test_a_class_whose_weights_are_zero_is_left_out() -> None:
    scores = cl.score(SIX.take(np.arange(5)).weighted_by([1, 0, 0, 0, 0]))
    assert scores["cawf1_macro"] == 1.0


def test_joint_attention_is_renormalised_over_what_is_there() -> None:
    attention = cl.joint_attention([[0.8, 0.2], [0.8, NAN], [NAN, NAN]], [3, 1])
    np.testing.assert_allclose(attention, [0.65, 0.8, NAN])


def test_gaze_alone_is_cawf1() -> None:
    gaze = cl.joint_attention(SIX.fcc[:, None], [1])
    np.testing.assert_equal(cl.score(SIX.weighted_by(gaze)), cl.score(SIX))


@pytest.mark.parametrize("weights", [[0, 0], [1], [-1, 2]], ids=["all-zero", "too-few", "negative"])
def test_weights_of_modalities_are_checked(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights: expected 2"):
        cl.joint_attention([[0.5, 0.5]], weights)


def test_agrees_with_an_independent_weighted_f1() -> None:
    """Macro-F1 with sample weights, straight from its definition, one class at a time."""
    rng = np.random.default_rng(4)
    n, k = 500, 5
    samples = cl.Samples(
        LabelSet("custom", tuple("abcde")), rng.integers(k, size=n), rng.integers(k + 1, size=n), rng.random(n)
    )
    f1 = []
    for c in range(k):
        tp = samples.fcc[(samples.true == c) & (samples.pred == c)].sum()
        precision = tp / samples.fcc[samples.pred == c].sum()
        recall = tp / samples.fcc[samples.true == c].sum()
        f1.append(2 * precision * recall / (precision + recall))
    assert cl.score(samples)["cawf1_macro"] == pytest.approx(np.mean(f1), abs=1e-12)
