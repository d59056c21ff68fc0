"""The human row: each rater held against the others, as a model is held against all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from host_tools.memo.classes import CLASSES, find_class
from host_tools.memo.degree import degree_scores
from host_tools.memo.mos import Options, majority, mean_opinion_scores
from host_tools.memo.ratings import Key, Ratings
from host_tools.metrics.agreement import cohen_kappa
from host_tools.metrics.statistics import bootstrap_indices, mean_of_defined, percentile_interval


def rater_rows(
    ratings: Ratings, options: Options, *, raters: Sequence[Key] | None = None, truth: Ratings | None = None
) -> list[dict[str, Any]]:
    """Compare raters with the majority and the MOS of the others.

    Parameters
    ----------
    ratings : Ratings
        Votes with a category; degree if there is one.
    raters : sequence, optional
        Whom to compare; default everyone.
    truth : Ratings, optional
        Whose votes are "the others" (a model that was added as a rater is compared with people only); default all but
        the one compared.

    Returns
    -------
    list of dict
        rater, n, accuracy (overall and of each class) and kappa (Cohen) against the others' majority, and the degree's
        agreement on the pictures whose class the rater named as the others do.
    """
    rows = []
    for rater in ratings.raters if raters is None else raters:
        i = ratings.raters.index(rater)
        others = (truth or ratings).without([rater])
        if ratings.votes is None or others.votes is None:
            raise ValueError("these ratings hold no category")
        choice, _ = majority(others)
        own = ratings.votes[:, i]
        both = (own >= 0) & (choice >= 0)
        right = both & (own == choice)
        row: dict[str, Any] = {"rater": rater, "n": int(both.sum())}
        row["accuracy"] = float(right.sum() / both.sum()) if both.any() else float("nan")
        names = ratings.labels
        for k, name in enumerate(names):
            of_class = both & (choice == k)
            row[_of(name)] = float(right[of_class].mean()) if of_class.any() else float("nan")
        row["kappa"] = cohen_kappa([names[k] for k in own[both]], [names[k] for k in choice[both]])
        if "degree" in ratings.scores:
            mos = mean_opinion_scores(others.scores["degree"], options).mean
            row |= degree_scores(ratings.scores["degree"][right, i], mos[right]).as_dict() | {"n": row["n"]}
            row["n_degree"] = int(right.sum())
        rows.append(row)
    return rows


def human_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Average `rater_rows` over the raters, undefined values left out.

    Beside the means: lowest and highest accuracy, and the accuracy's interval from resampling the raters.
    """
    wanted = ("accuracy", *map(_of, CLASSES), "kappa", "srcc", "krcc", "plcc", "rmse")
    names = [k for k in wanted if any(k in row for row in rows)]
    mean = {name: mean_of_defined([row.get(name, np.nan) for row in rows]) for name in names}
    accuracies = [row["accuracy"] for row in rows if np.isfinite(row["accuracy"])]
    spread: dict[str, Any] = {}
    if accuracies:
        draws = [np.mean(np.array(accuracies)[i]) for i in bootstrap_indices(len(accuracies))]
        spread = {"accuracy_min": min(accuracies), "accuracy_max": max(accuracies)}
        spread["accuracy_ci95"] = percentile_interval(draws)
    return {"n_raters": len(rows), **mean, **spread}


def _of(label: str) -> str:
    return f"accuracy_{find_class(label) or label}"
