from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from host_tools.labels import LabelSet
from host_tools.metrics import classification as cl
from host_tools.metrics.estimates import Resampled, against_base, compare

AB = LabelSet("custom", ("happy", "sad"))


def system(seed: int, right: float, n: int = 400) -> cl.Samples:
    rng = np.random.default_rng(7)
    true, fcc = rng.integers(2, size=n), rng.random(n)
    pred = np.where(np.random.default_rng(seed).random(n) < right, true, 1 - true)
    return cl.Samples(AB, true, pred, fcc, [f"p{i % 10}" for i in range(n)])


def test_interval_covers_the_value_and_shrinks_with_n() -> None:
    small, large = (Resampled(system(1, 0.8, n)).estimate("cawf1_macro") for n in (100, 2000))
    assert small.ci95[0] < small.value < small.ci95[1]
    assert large.ci95[1] - large.ci95[0] < (small.ci95[1] - small.ci95[0]) / 2


def test_resampled_f1_is_recomputed_not_averaged() -> None:
    # One participant always right, one always wrong: drawn whole, the score is 1, 0 or that of both.
    samples = cl.Samples(AB, np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0]), np.ones(4), ["a", "a", "b", "b"])
    values = Resampled(samples, 200).resampled["cawf1_macro"]
    assert set(np.round(values, 12)) == {0.0, 0.5, 1.0}


def test_better_system_is_told_apart() -> None:
    (difference,) = compare(Resampled(system(1, 0.6)), Resampled(system(2, 0.9)), ["cawf1_macro"])
    assert difference.value > 0.2
    assert difference.ci95[0] > 0
    assert difference.p < 0.01
    assert difference.dz > 0.8
    assert difference.relative_percent == pytest.approx(100 * difference.value / difference.first)


def test_a_system_does_not_differ_from_itself() -> None:
    one = Resampled(system(1, 0.8))
    (difference,) = compare(one, Resampled(system(1, 0.8)), ["accuracy"])
    assert (difference.value, difference.ci95, difference.p) == (0, (0, 0), 1)
    assert math.isnan(difference.dz)


def test_reading_is_tested_against_its_own_base() -> None:
    samples = system(1, 0.7)
    right = samples.true == samples.pred
    lifted = Resampled(samples.weighted_by(np.where(right, 0.9, 0.1)))
    shift = against_base(lifted, "cawf1_hard")
    n_right, n_wrong = right.sum(), (~right).sum()
    assert shift.value == pytest.approx(0.9 * n_right / (0.9 * n_right + 0.1 * n_wrong) - n_right / 400)
    assert shift.p < 0.01


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Resampled(system(1, 0.8, 399)), "same samples"),
        (Resampled(replace(system(1, 0.8), participants=None)), "same samples"),
        (Resampled(system(1, 0.8), seed=1), "same resamples"),
    ],
    ids=["other-samples", "other-participants", "other-seed"],
)
def test_what_does_not_pair_up_is_refused(other: Resampled, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(Resampled(system(1, 0.8)), other, ["accuracy"])
