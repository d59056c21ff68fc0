"""From votes to the table of scores that everything later takes as the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from edge.errors import DataError
from host_tools.memo.mos import Mos, Options, agreement, few_votes, image_rows, mean_opinion_scores, rejected_rows
from host_tools.memo.ratings import Key, Ratings


def summarise(ratings: Ratings, options: Options, *, ties: Literal["prompt", "degree"] = "prompt") -> dict[str, Any]:
    """Score all pictures of a study.

    Returns
    -------
    dict
        ``rejected``, ``images``, ``agreement``, and the counts and notes that go with them; see docs/memo.md.

    Raises
    ------
    DataError
        If no score is left.
    """
    results = {name: mean_opinion_scores(values, options) for name, values in ratings.scores.items()}
    if ratings.votes is None and not any(r.n.any() for r in results.values()):
        raise DataError(
            "ratings",
            "no score is left",
            got=_why_none(ratings, results),
            fix="give --scale LOW:HIGH for another scale, or --screen-on raw to take scores as they are",
        )
    images = image_rows(ratings, results, ties=ties)
    notes = [f"{name}: {result.screening.note}" for name, result in results.items() if result.screening.note]
    if few := few_votes(ratings):
        notes.append(f"{len(few)} raters gave fewer than 10 scores: {', '.join(map(str, few[:5]))}")
    return {
        "n_images": len(ratings.images),
        "n_raters": len(ratings.raters),
        "n_votes": int(ratings.given().sum()),
        "n_ties": sum(bool(row.get("tie")) for row in images),
        "rejected": rejected_rows(ratings, results),
        "images": images,
        "agreement": agreement(ratings),
        "remarks": ratings.remarks.as_rows(),
        "notes": notes,
    }


def summarise_with_models(
    ratings: Ratings, options: Options, models: Sequence[Key], *, ties: Literal["prompt", "degree"] = "prompt"
) -> dict[str, Any]:
    """Score all pictures by what people say; raters that are models are compared with them (``model_raters``).

    Raises
    ------
    DataError
        If there is no such rater, or the votes hold no category to compare.
    """
    unknown = [name for name in models if name not in ratings.raters]
    if unknown or (models and ratings.votes is None):
        problem = f"there is no rater {unknown[0]!r}" if unknown else "votes without a category compare nothing"
        raise DataError("model rater", problem, got=", ".join(map(str, ratings.raters[:5])))
    from host_tools.memo.humans import rater_rows

    people = ratings.without(models)
    rows = rater_rows(ratings, options, raters=models, truth=people) if models else []
    return {**summarise(people, options, ties=ties), "model_raters": rows}


def _why_none(ratings: Ratings, results: dict[str, Mos]) -> str:
    reasons = [f"rater {row['rater']} {row['reason']}" for row in rejected_rows(ratings, results)]
    more = [f"{len(reasons) - 3} more raters"] if len(reasons) > 3 else []
    return "; ".join((*ratings.remarks.lines(), *reasons[:3], *more))
