"""Mean opinion scores with ITU-R BT.500-13 screening, and the class that most raters named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from host_tools.memo.ratings import Key, Ratings
from host_tools.metrics.agreement import fleiss_kappa, krippendorff_interval, krippendorff_nominal, vote_counts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NORMAL_95 = 1.959964  #: two-sided 95 % quantile of the normal distribution
FEW_SCORES = 10  #: a rater with fewer is named: a share of 5 % can't be told from none


@dataclass(frozen=True)
class Options:
    """How scores become a MOS.

    Attributes
    ----------
    screen_on : {"z", "raw"}
        ``z``: scores are standardised per rater, screened, rescaled, averaged. ``raw``: BT.500 itself, screening and
        averaging the scores as given.
    std : {"population", "sample"}
        Divisor n or n - 1 in the standard deviation over the raters of one picture, which screening compares with.
    rescale : {"bt500", "minmax"}
        z to the scale 0..5: ``5 (z + 3) / 6``, or so that the extremes of all scores become 0 and 5.
    """

    screen_on: Literal["z", "raw"] = "z"
    std: Literal["population", "sample"] = "population"
    rescale: Literal["bt500", "minmax"] = "bt500"


@dataclass(frozen=True)
class Screening:
    """Per rater: how often the score lay far above (`p`) and far below (`q`) the others', out of `n`; who goes."""

    p: Ints
    q: Ints
    n: Ints
    rejected: Bools
    note: str = ""


@dataclass(frozen=True)
class Mos:
    """Per picture: the mean, its 95 % interval (images, 2), the number of scores in it; and who was left out why."""

    mean: Floats
    ci95: Floats
    n: Ints
    screening: Screening
    excluded: dict[int, str]


def standardise(scores: Floats) -> tuple[Floats, dict[int, str]]:
    """Return each rater's scores as z = (r - mean) / std (n - 1) over that rater's pictures.

    Parameters
    ----------
    scores : float64 (images, raters)

    Returns
    -------
    z : float64 (images, raters)
        nan for raters whose z isn't defined.
    excluded : dict
        Column -> reason, for raters with fewer than two scores or with one value only.
    """
    z = np.full_like(scores, np.nan)
    excluded = {}
    for i in range(scores.shape[1]):
        given = scores[np.isfinite(scores[:, i]), i]
        if len(given) < 2:
            excluded[i] = "gave 1 score: no standard deviation" if len(given) else "gave no score"
        elif given.max() == given.min():
            excluded[i] = f"gave one value only ({given[0]:g}, {len(given)} times)"
        else:
            z[:, i] = (scores[:, i] - given.mean()) / given.std(ddof=1)
    return z, excluded


def screen(scores: Floats, *, std: Literal["population", "sample"]) -> Screening:
    """Find the raters to reject by ITU-R BT.500-13, annex 2, 2.3.1.

    Per picture, the kurtosis b2 = m4 / m2^2 of its scores decides the width T: 2 if 2 <= b2 <= 4 (normal), else
    sqrt(20). P counts a rater's scores at or above mean + T std, Q those at or below mean - T std. A rater goes if
    (P + Q) / n > 0.05 and |P - Q| / (P + Q) < 0.3. A picture whose scores are all equal counts in neither. If all
    would go, none goes.

    Parameters
    ----------
    scores : float64 (images, raters)
        nan where there is none.
    """
    given = np.isfinite(scores)
    count = given.sum(axis=1)
    x = np.where(given, scores, 0.0)
    mean = x.sum(axis=1) / np.maximum(count, 1)
    deviation = np.where(given, scores - mean[:, None], 0.0)
    m2 = (deviation**2).sum(axis=1) / np.maximum(count, 1)
    m4 = (deviation**4).sum(axis=1) / np.maximum(count, 1)
    high, low = np.where(given, scores, -np.inf).max(axis=1), np.where(given, scores, np.inf).min(axis=1)
    varied = high > low
    kurtosis = np.divide(m4, m2**2, out=np.zeros_like(m4), where=varied)
    divisor = count if std == "population" else count - 1
    spread = np.sqrt(np.divide(m2 * count, divisor, out=np.zeros_like(m2), where=divisor > 0))
    reach = np.where((kurtosis >= 2) & (kurtosis <= 4), 2.0, np.sqrt(20.0)) * spread
    counted = given & varied[:, None]
    p = (counted & (scores >= (mean + reach)[:, None])).sum(axis=0)
    q = (counted & (scores <= (mean - reach)[:, None])).sum(axis=0)
    n = given.sum(axis=0)
    far = p + q
    rejected = (far > 0.05 * n) & (np.abs(p - q) < 0.3 * far)
    if rejected.any() and rejected[n > 0].all():
        return Screening(p, q, n, np.zeros_like(rejected), "screening would have rejected every rater; none was")
    return Screening(p, q, n, rejected)


def rescale(z: Floats, how: Literal["bt500", "minmax"]) -> Floats:
    """Map standardised scores to the scale 0..5."""
    if how == "bt500":
        return 5 * (z + 3) / 6
    low, high = np.nanmin(z), np.nanmax(z)
    return 5 * (z - low) / (high - low)


def mean_opinion_scores(scores: Floats, options: Options) -> Mos:
    """Screen the raters of one dimension and average the rest.

    Parameters
    ----------
    scores : float64 (images, raters)
        nan where there is none.
    """
    values, excluded = (scores, {}) if options.screen_on == "raw" else standardise(scores)
    screening = screen(values, std=options.std)
    kept = np.where(screening.rejected[None, :], np.nan, values)
    if options.screen_on == "z" and np.isfinite(kept).any():
        kept = rescale(kept, options.rescale)
    mean, ci95, n = mean_and_interval(kept)
    return Mos(mean, ci95, n, screening, excluded)


def mean_and_interval(values: Floats) -> tuple[Floats, Floats, Ints]:
    """Return per row the mean, the interval mean -+ 1.96 std / sqrt(n) (BT.500; n - 1 in std), and n.

    No value gives nan, and a single one no interval.
    """
    given = np.isfinite(values)
    n = given.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(given, values, 0.0).sum(axis=1) / n
        squares = np.where(given, values - mean[:, None], 0.0) ** 2
        half = NORMAL_95 * np.sqrt(squares.sum(axis=1) / (n - 1) / n)
    half[n < 2] = np.nan
    return mean, np.stack([mean - half, mean + half], axis=1), n


def majority(ratings: Ratings, *, ties: Literal["prompt", "degree"] = "prompt") -> tuple[Ints, Bools]:
    """Return the class that most raters named per picture, -1 without a vote, and where several led.

    A tie goes to the class of the picture's prompt if that is among the leaders (unless ``ties="degree"``), else to the
    one whose voters gave the higher summed degree, else to the first in order of appearance.
    """
    if ratings.votes is None:
        raise ValueError("these ratings hold no category")
    counts = vote_counts(ratings.votes, len(ratings.labels))
    leads = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    choice = np.where(leads.any(axis=1), leads.argmax(axis=1), -1)
    tied = leads.sum(axis=1) > 1
    degree = ratings.scores.get("degree")
    for i in np.flatnonzero(tied):
        wanted = -1 if ratings.prompts is None or ties == "degree" else int(ratings.prompts[i])
        if wanted >= 0 and leads[i, wanted]:
            choice[i] = wanted
        elif degree is not None:
            voted = ratings.votes[i] >= 0
            sums = np.bincount(ratings.votes[i][voted], np.nan_to_num(degree[i][voted]), leads.shape[1])
            choice[i] = int(np.argmax(np.where(leads[i], sums, -np.inf)))
    return choice, tied


def agreement(ratings: Ratings) -> dict[str, float]:
    """Return Fleiss' kappa and Krippendorff's alpha of the category, and alpha (interval) of each score.

    A matrix of one dimension has no category: alpha is that of its scores, and kappa takes each distinct score as a
    class if there are at most eleven.
    """
    alpha = {name: krippendorff_interval(values) for name, values in ratings.scores.items()}
    if ratings.votes is not None:
        counts = vote_counts(ratings.votes, len(ratings.labels))
        first = {"fleiss": fleiss_kappa(counts), "krippendorff": krippendorff_nominal(counts)}
        return first | {f"krippendorff_{name}": value for name, value in alpha.items()}
    name, scores = next(iter(ratings.scores.items()))
    distinct = np.unique(scores[np.isfinite(scores)])
    kappa = float("nan")
    if len(distinct) <= 11:
        codes = np.where(np.isfinite(scores), np.searchsorted(distinct, np.nan_to_num(scores)), -1)
        kappa = fleiss_kappa(vote_counts(codes, len(distinct)))
    return {"fleiss": kappa, "krippendorff": alpha[name]}


def rejected_rows(ratings: Ratings, results: dict[str, Mos]) -> list[dict[str, Any]]:
    """List the raters whose scores don't count in a dimension, with P, Q, n and the reason."""
    rows = []
    for name, result in results.items():
        found = result.screening
        for i, rater in enumerate(ratings.raters):
            p, q, n = int(found.p[i]), int(found.q[i]), int(np.isfinite(ratings.scores[name][:, i]).sum())
            reason = result.excluded.get(i, "")
            if found.rejected[i]:
                reason = f"(P+Q)/n = {(p + q) / n:.4f} > 0.05 and |P-Q|/(P+Q) = {abs(p - q) / (p + q):.4f} < 0.3"
            if reason:
                rows.append({"rater": rater, "P": p, "Q": q, "n": n, "dimension": name, "reason": reason})
    return rows


def image_rows(ratings: Ratings, results: dict[str, Mos], *, ties: Literal["prompt", "degree"]) -> list[dict[str, Any]]:
    """List the pictures with their class, scores, intervals and numbers of votes."""
    matrix = list(results) == ["score"]
    means = {"mos" if matrix else f"mos_{name}": result.mean.tolist() for name, result in results.items()}
    intervals = {name: result.ci95.tolist() for name, result in results.items()}
    n = results["score"].n if matrix else ratings.given().sum(axis=1)
    rows: list[dict[str, Any]] = []
    for i, image in enumerate(ratings.images):
        scores = {name: values[i] for name, values in means.items()}
        ci95 = {name: values[i] for name, values in intervals.items()}
        rows.append({"id": image, **scores, "ci95": ci95["score"] if matrix else ci95, "n": int(n[i])})
    if ratings.votes is None:
        return rows
    choice, tied = majority(ratings, ties=ties)
    names = [*ratings.labels, None]  # -1: nobody named a class
    said = ({"category": names[k], "tie": tie} for k, tie in zip(choice.tolist(), tied.tolist(), strict=True))
    return [{"id": row["id"], **category, **row} for category, row in zip(said, rows, strict=True)]


def few_votes(ratings: Ratings) -> list[Key]:
    """Name the raters with fewer than `FEW_SCORES` scores in some dimension in which they scored at all."""
    few = np.zeros(len(ratings.raters), bool)
    for values in ratings.scores.values():
        n = np.isfinite(values).sum(axis=0)
        few |= (n > 0) & (n < FEW_SCORES)
    return [rater for rater, is_few in zip(ratings.raters, few, strict=True) if is_few]
