from __future__ import annotations

import numpy as np
import pytest

from host_tools.memo.classes import CLASSES
from host_tools.memo.shares import class_contrast, count_shares, quintiles

HAP, SAD, ANG, SUR, WOR, NEU = range(6)
OUTCOMES = (*CLASSES, "unparsed")


def _shares(true: list[int], outcome: list[int], group: list[int] | None = None, names: tuple[str, ...] = ("m",)):  # type: ignore[no-untyped-def]
    groups = (names, np.array(group or [0] * len(true)))
    return count_shares(groups, np.array(true), (OUTCOMES, np.array(outcome)), n_resamples=200)


def test_matrix_and_accuracies_by_hand() -> None:
    # HAP: 3 of 4 right, one unparsed; SAD: 1 of 2 right, one taken for WOR; the last was not asked.
    shares = _shares([HAP] * 4 + [SAD] * 2 + [NEU], [HAP, HAP, HAP, 6, SAD, WOR, -1])
    matrix = shares.matrix(0)
    assert matrix[HAP].tolist() == [0.75, 0, 0, 0, 0, 0, 0.25]
    assert matrix[SAD].tolist() == [0, 0.5, 0, 0, 0.5, 0, 0]
    assert np.isnan(matrix[NEU]).all()
    assert shares.micro(0).value == pytest.approx(4 / 6)
    assert shares.macro(0).value == pytest.approx((0.75 + 0.5) / 2)
    assert shares.micro(0).ci95[0] < 4 / 6 < shares.micro(0).ci95[1]


def test_rows_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    shares = _shares(list(rng.integers(0, 6, 300)), list(rng.integers(0, 7, 300)))
    assert shares.matrix(0).sum(axis=1) == pytest.approx(1)


def test_valence_contrast_by_hand() -> None:
    # HAP 1, NEU .5 against SAD 0, ANG 1, WOR .5; SUR stands apart.
    true = [HAP, NEU, NEU, SAD, ANG, WOR, WOR, SUR]
    outcome = [HAP, NEU, SAD, WOR, ANG, WOR, SAD, HAP]
    assert _shares(true, outcome).valence(0).value == pytest.approx(0.75 - 0.5)


def test_models_are_compared_on_the_same_pictures() -> None:
    # The second model makes the first one's mistakes and ten more: the difference is certain, its interval is not 0.
    rng = np.random.default_rng(1)
    first_right = rng.random(100) < 0.5
    second_right = first_right & (np.arange(100) % 5 > 0)
    outcome = np.where(np.concatenate([first_right, second_right]), HAP, SAD)
    shares = count_shares(
        (("a", "b"), np.repeat([0, 1], 100)),
        np.full(200, HAP),
        (OUTCOMES, outcome),
        clusters=[f"p{i}" for i in [*range(100), *range(100)]],
    )
    (pair,) = shares.compare()
    assert pair["difference"] == pytest.approx((first_right.sum() - second_right.sum()) / 100)
    assert pair["ci95"][0] >= 0  # type: ignore[index]
    assert pair["p"] == pair["p_holm"] < 0.01  # type: ignore[operator]


def test_contrast_of_a_score_weighs_classes_equally() -> None:
    values = np.array([4.0, 4, 4, 2, 1, 3, 5, np.nan])
    classes = np.array([HAP, HAP, HAP, NEU, SAD, ANG, SUR, WOR])
    assert class_contrast(values, classes, n_resamples=100).value == pytest.approx(3 - 2)


def test_quintiles_by_hand() -> None:
    scores = np.arange(10.0)
    right = scores >= 4
    rows = quintiles(right, scores)
    assert [r["n"] for r in rows] == [2] * 5
    assert [r["p_correct"] for r in rows] == [0, 0, 1, 1, 1]


def test_quintiles_of_tied_scores_put_ties_together() -> None:
    rows = quintiles(np.array([True, False, True]), np.array([2.0, 2.0, 2.0]))
    assert [r["n"] for r in rows] == [3, 0, 0, 0, 0]
    assert rows[0]["p_correct"] == pytest.approx(2 / 3)
    assert quintiles(np.array([True]), np.array([np.nan])) == []
