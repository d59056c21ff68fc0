from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from host_tools.memo.mos import Options, majority, mean_opinion_scores, rescale, screen, standardise
from host_tools.memo.ratings import Ratings, VoteTable, assemble, read_ratings

NAN = float("nan")


@pytest.mark.parametrize(
    ("std", "rejected", "key"),
    [("population", [2], "bt500_own_ddof0"), ("sample", [], "bt500_own_ddof1")],
    ids=["population", "sample"],
)
def test_screening_counts_of_a_published_study(data: Path, std: str, rejected: list[int], key: str) -> None:
    ratings = read_ratings(data / "scores" / "NFLX_dataset_public_raw_scores.csv")
    expected = json.loads((data / "scores" / "NFLX_dataset_public_raw_expected.json").read_text())
    result = mean_opinion_scores(ratings.scores["score"], Options(screen_on="raw", std=std))
    found = result.screening
    assert np.flatnonzero(found.rejected).tolist() == rejected == expected[key]["rejected"]
    assert found.p.tolist() == expected[key]["P"]
    assert found.q.tolist() == expected[key]["Q"]
    mos = expected["SR_MOS_bt500" if rejected else "MOS"]
    assert result.mean == pytest.approx(mos["quality_scores"], abs=1e-12)
    assert result.ci95[:, 1] - result.mean == pytest.approx(mos["quality_scores_ci95"][0], abs=2e-6)


@pytest.mark.parametrize(
    ("std", "key"),
    [("population", "bt500_annex2_rejected_ddof0"), ("sample", "bt500_annex2_rejected_ddof1")],
    ids=["population", "sample"],
)
def test_scrambled_raters_are_found(data: Path, std: str, key: str) -> None:
    ratings = read_ratings(data / "scores" / "bt500_demo_sample_data.csv")
    expected = json.loads((data / "scores" / "bt500_demo_sample_data_expected.json").read_text())
    scores = ratings.scores["score"]
    assert np.flatnonzero(screen(scores, std=std).rejected).tolist() == expected[key]
    assert np.nanmean(scores, axis=1) == pytest.approx(expected["plain_MOS"])


def test_standard_scores_by_hand() -> None:
    # Rater 0: mean 2, std sqrt(2); rater 1: mean 3.5, std 1.5 sqrt(2). Both become -+ 1/sqrt(2).
    z, excluded = standardise(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert z == pytest.approx(np.array([[-1, -1], [1, 1]]) / np.sqrt(2))
    assert excluded == {}
    assert rescale(z, "bt500")[0] == pytest.approx([1.910744, 1.910744], abs=1e-6)
    assert rescale(z, "minmax") == pytest.approx(np.array([[0, 0], [5, 5]]))


def test_raters_without_a_standard_deviation_are_left_out_and_named() -> None:
    scores = np.array([[1.0, 4, NAN], [3.0, 4, 2], [5.0, 4, NAN]])
    result = mean_opinion_scores(scores, Options())
    assert result.excluded == {1: "gave one value only (4, 3 times)", 2: "gave 1 score: no standard deviation"}
    assert result.n.tolist() == [1, 1, 1]
    assert result.mean == pytest.approx([5 / 3, 2.5, 10 / 3])  # z = -1, 0, 1
    assert np.isnan(result.ci95).all()  # one score has no interval


def _opposed(n_others: int) -> np.ndarray:
    """Two pictures on which the last rater stands far above, then far below, all others, who agree on 3 and 3.1."""
    others = np.tile(np.where(np.arange(n_others) % 2, 3.1, 3.0), (2, 1))
    return np.hstack([others, [[5.0], [1.0]]])


def test_a_rater_far_off_on_both_sides_goes() -> None:
    # 40 others within 0.1: kurtosis is about 40, T = sqrt(20); the far rater stands 6.3 standard deviations away.
    found = screen(_opposed(40), std="population")
    assert np.flatnonzero(found.rejected).tolist() == [40]
    assert (found.p[40], found.q[40], found.n[40]) == (1, 1, 2)


def test_pictures_with_equal_scores_reject_nobody() -> None:
    found = screen(np.full((5, 4), 3.0), std="population")
    assert not found.rejected.any()
    assert found.p.tolist() == found.q.tolist() == [0, 0, 0, 0]


def test_when_all_would_go_none_goes() -> None:
    # 3, 3, 3, 3, 8: mean 4, std 2, kurtosis 3.25, so T = 2 and 8 is just far enough; each of five raters does it once
    # upwards and once downwards, in ten pictures.
    scores = np.full((10, 5), 3.0)
    for i in range(5):
        scores[2 * i, i], scores[2 * i + 1, i] = 8.0, -2.0
    found = screen(scores, std="population")
    assert (found.p.tolist(), found.q.tolist(), found.n.tolist()) == ([1] * 5, [1] * 5, [10] * 5)
    assert not found.rejected.any()
    assert found.note == "screening would have rejected every rater; none was"
    # One who is far off upwards only stays for good, and then the other four do go.
    scores[9, 4] = 3.0
    assert screen(scores, std="population").rejected.tolist() == [True] * 4 + [False]


def _votes(lines: list[tuple[str, str, str, str]], prompts: dict[str, str] | None = None) -> Ratings:
    images, raters, categories, degrees = zip(*lines, strict=True)
    table = VoteTable(images, raters, {"category": categories, "degree": degrees})
    return assemble([table], prompts=prompts)  # type: ignore[arg-type]


TIE = [("a", "r1", "SAD", "1"), ("a", "r2", "SAD", "1"), ("a", "r3", "WOR", "3"), ("a", "r4", "WOR", "2")]


@pytest.mark.parametrize(
    ("lines", "prompts", "ties", "expected"),
    [
        (TIE, {"a": "SAD"}, "prompt", "SAD"),
        (TIE, {"a": "SAD"}, "degree", "WOR"),
        (TIE, {"a": "HAP"}, "prompt", "WOR"),
        (TIE, None, "prompt", "WOR"),
        ([*TIE[:2], ("a", "r3", "WOR", "1"), ("a", "r4", "WOR", "1")], None, "prompt", "SAD"),
    ],
    ids=["prompt-tied", "rule-degree", "prompt-not-tied", "degree", "all-equal-first-named"],
)
def test_ties(lines: list, prompts: dict[str, str] | None, ties: str, expected: str) -> None:
    ratings = _votes(lines, prompts)
    choice, tied = majority(ratings, ties=ties)  # type: ignore[arg-type]
    assert ratings.labels[choice[0]] == expected
    assert tied.tolist() == [True]


def test_a_picture_without_category_votes_has_none() -> None:
    ratings = _votes([("a", "r1", "SAD", "1"), ("b", "r1", "", "2")])
    choice, tied = majority(ratings)
    assert choice.tolist() == [0, -1]
    assert tied.tolist() == [False, False]
