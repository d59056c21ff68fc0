"""How well answers follow a mean opinion score: rank and linear correlation, error, and the customary logistic fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from host_tools.metrics.statistics import bootstrap_indices, percentile_interval

Floats = npt.NDArray[np.float64]
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class DegreeScores:
    """Agreement of `n` answers with their MOS; signs are kept. What is undefined is nan, and `reason` says why.

    `srcc` Spearman, `krcc` Kendall's tau-b, `plcc` Pearson, `rmse` on the answers as given; `plcc_fitted` and
    `rmse_fitted` after the four-parameter logistic, which hides the sign. `ci95` holds the bootstrap intervals
    of the first four.
    """

    n: int
    srcc: float = NAN
    krcc: float = NAN
    plcc: float = NAN
    rmse: float = NAN
    plcc_fitted: float = NAN
    rmse_fitted: float = NAN
    ci95: dict[str, tuple[float, float]] = field(default_factory=dict)
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def degree_scores(answers: Floats, mos: Floats, *, n_resamples: int = 0, seed: int = 0) -> DegreeScores:
    """Compare answers (n,) with the MOS (n,) of the same pictures; pairs with a nan are left out.

    Parameters
    ----------
    n_resamples : int
        Bootstrap resamples for the intervals; 0 = no intervals.
    """
    given = np.isfinite(answers) & np.isfinite(mos)
    x, y = answers[given], mos[given]
    if not len(x):
        return DegreeScores(0, reason="no picture with an answer and a MOS")
    if reason := _undefined(x, y):
        return DegreeScores(len(x), rmse=rms_error(x, y), reason=reason)
    fitted, why = fit_logistic(x, y)
    return DegreeScores(
        len(x),
        srcc=spearman(x, y),
        krcc=kendall(x, y),
        plcc=pearson(x, y),
        rmse=rms_error(x, y),
        plcc_fitted=pearson(fitted, y),
        rmse_fitted=rms_error(fitted, y),
        ci95=_intervals(x, y, n_resamples, seed) if n_resamples else {},
        reason=why,
    )


def rms_error(x: Floats, y: Floats) -> float:
    """Return the root of the mean squared difference."""
    return float(np.sqrt(np.mean((x - y) ** 2)))


def pearson(x: Floats, y: Floats) -> float:
    """Return Pearson's correlation; nan if either is constant."""
    dx, dy = x - x.mean(), y - y.mean()
    spread = np.sqrt((dx @ dx) * (dy @ dy))
    return float(np.clip(dx @ dy / spread, -1, 1)) if spread > 0 else NAN


def spearman(x: Floats, y: Floats) -> float:
    """Return Spearman's rank correlation, ties sharing their mean rank; nan if either is constant."""
    from scipy.stats import rankdata

    return pearson(rankdata(x), rankdata(y))


def kendall(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b; nan if either is constant."""
    from scipy.stats import kendalltau

    return float(kendalltau(x, y, variant="b").statistic)


def fit_logistic(x: Floats, y: Floats) -> tuple[Floats, str]:
    """Map x to y by f(x) = b2 + (b1 - b2) / (1 + exp(-(x - b3) / |b4|)), least squares (Video Quality Experts Group).

    Returns
    -------
    fitted : float64 (n,)
        nan throughout where there is no fit.
    reason : str
        Why there is none.
    """
    from scipy.optimize import least_squares
    from scipy.special import expit

    if len(x) < 5:
        return np.full_like(y, np.nan), "no logistic fit: fewer than five pictures"

    def curve(b: Floats) -> Floats:
        return b[1] + (b[0] - b[1]) * expit((x - b[2]) / max(abs(b[3]), 1e-6))

    rising = pearson(x, y) >= 0
    ends = (y.max(), y.min()) if rising else (y.min(), y.max())
    start = np.array([*ends, x.mean(), max(x.std(), 1e-3)])
    fit = least_squares(lambda b: curve(b) - y, start, x_scale="jac", max_nfev=400)
    if not np.isfinite(fit.cost):
        return np.full_like(y, np.nan), "no logistic fit: it did not converge"
    return curve(fit.x), ""


def _undefined(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return "one picture has no correlation"
    if x.max() == x.min():
        return f"constant predictor: every answer is {x[0]:g}"
    if y.max() == y.min():
        return f"constant MOS: every picture has {y[0]:g}"
    return ""


def _intervals(x: Floats, y: Floats, n_resamples: int, seed: int) -> dict[str, tuple[float, float]]:
    statistics = {"srcc": spearman, "krcc": kendall, "plcc": pearson, "rmse": rms_error}
    draws = [
        [statistic(x[i], y[i]) for statistic in statistics.values()]
        for i in bootstrap_indices(len(x), n_resamples=n_resamples, seed=seed)
    ]
    return {name: percentile_interval(column) for name, column in zip(statistics, np.array(draws).T, strict=True)}
