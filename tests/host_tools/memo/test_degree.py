from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from host_tools.memo.degree import degree_scores, fit_logistic


def test_by_hand() -> None:
    # Ranks 1, 2, 3 against 1, 3, 2: rho = 1 - 6 * 2 / (3 * 8) = .5; two pairs agree, one doesn't: tau = 1/3.
    # Deviations (-1, 0, 1) and (-1, 1, 0): r = 1 / 2. Errors 0, 1, -1: RMSE = sqrt(2/3).
    scores = degree_scores(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
    assert (scores.n, scores.srcc, scores.plcc) == (3, pytest.approx(0.5), pytest.approx(0.5))
    assert scores.krcc == pytest.approx(1 / 3)
    assert scores.rmse == pytest.approx(np.sqrt(2 / 3))
    assert scores.reason == "no logistic fit: fewer than five pictures"
    assert np.isnan(scores.plcc_fitted)


def test_against_scipy_with_ties_and_gaps() -> None:
    rng = np.random.default_rng(3)
    mos = rng.uniform(0, 5, 200)
    answers = np.rint(np.clip(mos + rng.normal(0, 1, 200), 0, 5))
    gaps = answers.copy()
    gaps[::7] = np.nan
    given = np.isfinite(gaps)
    scores = degree_scores(gaps, mos, n_resamples=200)
    assert scores.n == given.sum()
    assert scores.srcc == pytest.approx(stats.spearmanr(gaps[given], mos[given]).statistic, abs=1e-12)
    assert scores.krcc == pytest.approx(stats.kendalltau(gaps[given], mos[given]).statistic, abs=1e-12)
    assert scores.plcc == pytest.approx(stats.pearsonr(gaps[given], mos[given]).statistic, abs=1e-12)
    for name in ("srcc", "krcc", "plcc", "rmse"):
        assert scores.ci95[name][0] < getattr(scores, name) < scores.ci95[name][1]


def test_signs_are_kept_raw_and_hidden_by_the_fit() -> None:
    mos = np.linspace(0.5, 4.5, 40)
    scores = degree_scores(5 - mos, mos)
    assert (scores.srcc, scores.krcc, scores.plcc) == (pytest.approx(-1), pytest.approx(-1), pytest.approx(-1))
    assert scores.plcc_fitted > 0.999


def test_the_logistic_is_found_again() -> None:
    x = np.linspace(0, 5, 60)
    y = 1 + 3.5 / (1 + np.exp(-(x - 2.2) / 0.4))
    fitted, reason = fit_logistic(x, y)
    assert reason == ""
    assert fitted == pytest.approx(y, abs=1e-4)


@pytest.mark.parametrize(
    ("answers", "mos", "reason"),
    [
        ([3.0, 3, 3], [1.0, 2, 3], "constant predictor: every answer is 3"),
        ([1.0, 2, 3], [2.0, 2, 2], "constant MOS: every picture has 2"),
        ([4.0], [4.0], "one picture has no correlation"),
        ([np.nan], [4.0], "no picture with an answer and a MOS"),
    ],
    ids=["constant-predictor", "constant-mos", "one", "none"],
)
def test_undefined_with_a_reason(answers: list, mos: list, reason: str) -> None:
    scores = degree_scores(np.array(answers), np.array(mos))
    assert scores.reason == reason
    assert np.isnan([scores.srcc, scores.krcc, scores.plcc]).all()


def test_the_error_of_a_constant_predictor_is_defined() -> None:
    assert degree_scores(np.array([3.0, 3, 3]), np.array([2.0, 3, 4])).rmse == pytest.approx(np.sqrt(2 / 3))
