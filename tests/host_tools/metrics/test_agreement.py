from __future__ import annotations

import math

import pytest

from host_tools.metrics.agreement import cohen_kappa, fleiss_kappa


def test_cohen_kappa_by_hand() -> None:
    # 20 both yes, 15 both no, 5 yes/no, 10 no/yes: p_o = .7, p_e = .5 * .6 + .5 * .4 = .5
    one = ["y"] * 25 + ["n"] * 25
    other = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(one, other) == pytest.approx(0.4)


def test_one_label_throughout_is_undefined() -> None:
    assert math.isnan(cohen_kappa(["y", "y"], ["y", "y"]))


def test_fleiss_kappa_of_the_published_example() -> None:
    # Fleiss' worked example (10 items, 14 raters, 5 categories): kappa = 0.210
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)


def test_items_with_one_rater_are_left_out() -> None:
    assert fleiss_kappa([[2, 0], [0, 2], [1, 0]]) == 1.0
