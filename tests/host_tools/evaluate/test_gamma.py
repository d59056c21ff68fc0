from __future__ import annotations

import numpy as np
import pytest

from host_tools.evaluate.gamma import choose, powered, separation
from host_tools.labels import LabelSet
from host_tools.metrics import classification as cl

AB = LabelSet("custom", ("happy", "sad"))


def system(right: np.ndarray, fcc: np.ndarray) -> cl.Samples:
    true = np.arange(len(right)) % 2
    return cl.Samples(AB, true, np.where(right, true, 1 - true), fcc, [f"P{i % 8}" for i in range(len(right))])


def test_gamma_0_is_macro_f1_and_1_is_cawf1() -> None:
    rng = np.random.default_rng(0)
    samples = system(rng.random(80) < 0.7, np.where(rng.random(80) < 0.1, np.nan, rng.random(80)))
    scores = cl.score(samples)
    assert cl.score(powered(samples, 0.0))["cawf1_macro"] == pytest.approx(scores["cawf1_macro_base"])
    assert cl.score(powered(samples, 1.0))["cawf1_macro"] == pytest.approx(scores["cawf1_macro"])


def test_systems_that_differ_where_fcc_is_high_are_told_apart_by_a_higher_gamma() -> None:
    rng = np.random.default_rng(1)
    fcc = rng.uniform(0.05, 1, 400)
    chance = rng.random(400) < 0.6
    good = np.where(fcc > 0.7, True, chance)
    bad = np.where(fcc > 0.7, rng.random(400) < 0.6, chance)
    pair = [system(good, fcc), system(bad, fcc)]
    assert separation(pair, 2.0) > separation(pair, 0.0) > 1


def test_equal_systems_have_no_separation() -> None:
    one = system(np.arange(40) % 3 > 0, np.full(40, 0.5))
    assert np.isnan(separation([one, one], 1.0))


def test_gamma_is_chosen_without_the_scene_left_out() -> None:
    power = {"a": np.array([9.0, 0.0, 1.0]), "b": np.array([1.0, 2.0, 4.0]), "c": np.array([1.0, 4.0, 3.0])}
    assert choose(power, "a", (0.0, 1.0, 2.0)) == {"gamma": 2.0, "separation": 1.0, "at_0": 9.0, "at_1": 0.0}
