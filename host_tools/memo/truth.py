"""What the raters say about each picture: the truth that generators and models are held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from host_tools.memo.classes import CLASSES, find_class
from host_tools.memo.mos import Options, majority, mean_opinion_scores
from host_tools.memo.ratings import Ratings
from host_tools.memo.scores import summarise

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """Class and scores per picture.

    Attributes
    ----------
    images : list of str
    category : int64 (n,)
        Index into `CLASSES`, -1 where there is none.
    tie : bool (n,)
    degree, quality : float64 (n,)
        MOS; nan where there is none.
    ratings : Ratings or None
        The votes behind them; None if the archive gives averages only.
    summary : dict
        What `mos` reports, less the pictures.
    """

    images: list[str]
    category: Ints
    tie: npt.NDArray[np.bool_]
    degree: Floats
    quality: Floats
    ratings: Ratings | None = None
    summary: dict[str, Any] = field(default_factory=dict)


def truth_from_votes(ratings: Ratings, options: Options, *, ties: Literal["prompt", "degree"] = "prompt") -> Truth:
    """Score all pictures of a study; raters' categories must be MEMO classes."""
    summary = summarise(ratings, options, ties=ties)
    del summary["images"]
    n = len(ratings.images)
    category, tied = np.full(n, -1), np.zeros(n, bool)
    if ratings.votes is not None:
        choice, tied = majority(ratings, ties=ties)
        category = np.append(class_codes(ratings.labels), -1)[choice]
    scores = {
        name: mean_opinion_scores(ratings.scores[name], options).mean if name in ratings.scores else np.full(n, np.nan)
        for name in ("degree", "quality")
    }
    images = [str(image) for image in ratings.images]
    return Truth(images, category, tied, scores["degree"], scores["quality"], ratings, summary)


def class_codes(labels: list[str]) -> Ints:
    """Return the index in `CLASSES` of each label, -1 for one that is none."""
    return np.array([CLASSES.index(find_class(label)) if find_class(label) else -1 for label in labels], np.int64)
