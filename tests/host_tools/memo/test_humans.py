from __future__ import annotations

import numpy as np
import pytest

from host_tools.memo.humans import human_row, rater_rows
from host_tools.memo.mos import Options
from host_tools.memo.ratings import Ratings


def _ratings(votes: list[list[int]], raters: list[str]) -> Ratings:
    array = np.array(votes)
    return Ratings([f"p{i}" for i in range(len(array))], list(raters), {}, ["HAP", "SAD"], array)


def test_each_rater_against_the_majority_of_the_others() -> None:
    ratings = _ratings([[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, -1]], ["a", "b", "c", "d"])
    rows = rater_rows(ratings, Options())
    assert [r["accuracy"] for r in rows] == pytest.approx([1, 1, 1, 2 / 3])
    assert [r["n"] for r in rows] == [4, 4, 4, 3]
    assert (rows[3]["accuracy_HAP"], rows[3]["accuracy_SAD"]) == (0.5, 1.0)
    row = human_row(rows)
    assert (row["n_raters"], row["accuracy"]) == (4, pytest.approx(11 / 12))
    assert row["accuracy_HAP"] == pytest.approx(3.5 / 4)
    assert (row["accuracy_min"], row["accuracy_max"]) == (pytest.approx(2 / 3), 1)
    assert row["accuracy_ci95"][0] < 11 / 12 <= row["accuracy_ci95"][1] == 1


def test_a_model_as_rater_is_compared_with_people_only() -> None:
    ratings = _ratings([[0, 0, 1], [1, 1, 0]], ["a", "b", "model"])
    (row,) = rater_rows(ratings, Options(), raters=["model"], truth=ratings.without(["model"]))
    assert row["accuracy"] == 0
    assert row["kappa"] == pytest.approx(-1)


def test_degree_on_the_pictures_named_as_the_others_do() -> None:
    votes = np.zeros((4, 3), np.int64)
    votes[3, 0] = 1
    degree = np.array([[1.0, 1, 1], [2, 2, 2], [3, 3, 3], [5, 0, 0]])
    ratings = Ratings(["p", "q", "r", "s"], ["a", "b", "c"], {"degree": degree}, ["HAP", "SAD"], votes)
    row = rater_rows(ratings, Options())[0]
    assert row["n_degree"] == 3
    assert row["srcc"] == pytest.approx(1)
