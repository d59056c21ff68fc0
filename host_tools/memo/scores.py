"""From votes to the table of scores that everything later takes as the truth."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from edge.errors import DataError
from host_tools.memo.mos import Options, agreement, few_votes, image_rows, mean_opinion_scores, rejected_rows
from host_tools.memo.ratings import Ratings


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
        raise DataError("ratings", "no score is left", fix="look at the counts above, or say --scale LOW:HIGH")
    images = image_rows(ratings, results, ties=ties)
    notes = [f"{name}: {result.screening.note}" for name, result in results.items() if result.screening.note]
    if few := few_votes(ratings):
        notes.append(f"{len(few)} raters gave fewer than 10 scores: {', '.join(map(str, few[:5]))}")
    return {
        "n_images": len(ratings.images),
        "n_raters": len(ratings.raters),
        "n_votes": int(_said(ratings).sum()),
        "n_ties": sum(bool(row.get("tie")) for row in images),
        "rejected": rejected_rows(ratings, results),
        "images": images,
        "agreement": agreement(ratings),
        "remarks": ratings.remarks.as_rows(),
        "notes": notes,
    }


def _said(ratings: Ratings) -> np.ndarray:
    """bool (images, raters): a rater said anything about a picture."""
    said = np.zeros((len(ratings.images), len(ratings.raters)), bool)
    if ratings.votes is not None:
        said |= ratings.votes >= 0
    for values in ratings.scores.values():
        said |= np.isfinite(values)
    return said
