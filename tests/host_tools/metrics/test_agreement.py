from __future__ import annotations

import math

import numpy as np
import pytest

from host_tools.metrics.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_interval,
    krippendorff_nominal,
    vote_counts,
)


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


# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", example C: 12 units, 4 observers, 0 = missing.
UNITS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
).T


def test_krippendorff_of_his_paper() -> None:
    assert krippendorff_nominal(vote_counts(UNITS - 1, 5)) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_interval(np.where(UNITS > 0, UNITS, np.nan)) == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("counts", [np.zeros((3, 2), int), np.array([[3, 0], [2, 0]])], ids=["no-votes", "one-class"])
def test_no_disagreement_possible_is_undefined(counts: np.ndarray) -> None:
    assert np.isnan(krippendorff_nominal(counts))


def test_interval_alpha_of_equal_scores_is_undefined() -> None:
    assert np.isnan(krippendorff_interval(np.full((3, 2), 4.0)))
    assert np.isnan(krippendorff_interval(np.array([[1.0, np.nan]])))
