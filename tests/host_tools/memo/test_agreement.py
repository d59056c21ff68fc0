from __future__ import annotations

import numpy as np
import pytest

from host_tools.memo.agreement import fleiss_kappa, krippendorff_interval, krippendorff_nominal, vote_counts

# The worked example of Fleiss' kappa found in textbooks: 10 subjects, 14 raters, 5 classes.
TEXTBOOK = np.array(
    [
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
)
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", example C: 12 units, 4 observers, 0 = missing.
UNITS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
).T


def test_fleiss_of_the_textbook() -> None:
    assert fleiss_kappa(TEXTBOOK) == pytest.approx(0.210, abs=5e-4)


def test_krippendorff_of_his_paper() -> None:
    assert krippendorff_nominal(vote_counts(UNITS - 1, 5)) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_interval(np.where(UNITS > 0, UNITS, np.nan)) == pytest.approx(0.849, abs=5e-4)


def test_fleiss_by_hand_with_unequal_votes() -> None:
    # Picture 1: 2 of 2 agree (1); picture 2: 1:2 votes (1/3); a single vote is left out. Shares 3/5, 2/5: chance 13/25.
    counts = np.array([[2, 0], [1, 2], [1, 0]])
    assert fleiss_kappa(counts) == pytest.approx((2 / 3 - 13 / 25) / (12 / 25))


@pytest.mark.parametrize("counts", [np.zeros((3, 2), int), np.array([[3, 0], [2, 0]])], ids=["no-votes", "one-class"])
def test_no_disagreement_possible_is_undefined(counts: np.ndarray) -> None:
    assert np.isnan(fleiss_kappa(counts))
    assert np.isnan(krippendorff_nominal(counts))


def test_interval_alpha_of_equal_scores_is_undefined() -> None:
    assert np.isnan(krippendorff_interval(np.full((3, 2), 4.0)))
    assert np.isnan(krippendorff_interval(np.array([[1.0, np.nan]])))
