"""What each part of the score contributes: ablations, and sweeps of one setting at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from edge.errors import EmoGazeError
from host_tools.evaluate.attention import Pairs
from host_tools.evaluate.looks import find
from host_tools.evaluate.run import Evaluation, Scored, with_score
from host_tools.metrics import classification as cl

Array = npt.NDArray[np.float64]


def ablations(state: Evaluation) -> list[dict[str, Any]]:
    """Return, per system and source, the headline with a part of the score taken away.

    Absolute change in points and relative change in percent, both against the full score.
    """
    return [row for scored in state.scored for row in _ablate(state, scored)]


def _ablate(state: Evaluation, scored: Scored) -> Iterator[dict[str, Any]]:
    samples, weights = scored.table.samples, state.config.score.weights
    if not np.isfinite(samples.fcc).any():
        return
    full, emotions = cl.score(samples), state.emotions(scored.system)
    scene_alone = scored.pairs.fcc(len(samples), emotions, weights, local=False)
    static = scored.pairs.fcc(len(samples), emotions, "fixed")
    parts = [
        ("full", full[cl.HEADLINE], "all of it"),
        ("classification only", full[f"{cl.HEADLINE}_base"], "FCC = 1: macro-F1 of the same samples"),
        ("FCC only", full["mean_fcc"], "bF1 = 1 makes cawF1 = 1 by its formula: mean FCC stands in its place"),
        ("global features only", _headline(scored, scene_alone), "alpha = 0"),
        ("static weights", _headline(scored, static), "0.7 / 0.3 whatever the emotion"),
    ]
    for name, value, note in parts:
        row = {"system": scored.system, "source": scored.source, "ablation": name, "value": value, "note": note}
        comparable = name != "FCC only" and full[cl.HEADLINE] > 0
        yield {
            **row,
            "points": 100 * (value - full[cl.HEADLINE]) if comparable else None,
            "relative_percent": 100 * (value / full[cl.HEADLINE] - 1) if comparable else None,
        }


def sweeps(state: Evaluation) -> list[dict[str, Any]]:
    """Return, for every value of every swept setting, each system's headline and how far its FCC moves.

    What can't be had (an artefact that is missing or gives no feature map, too few vectors for a projection) is a row
    with its reason.
    """
    return [row for setting, value, found in _variants(state) for row in _rows(state, setting, value, found)]


Variant = dict[tuple[str, str], Pairs] | str


def _variants(state: Evaluation) -> Iterator[tuple[str, str, Variant]]:
    config, wanted = state.config, state.config.sweeps
    for window in wanted.window:
        yield "window", window, _compare(state, window=window)
    for embedding in wanted.embedding:
        yield "embedding", embedding, _compare(state, embedding=embedding)
    for weights in wanted.weights:
        yield "weights", weights, state.pairs
    for embedder in wanted.embedder:
        yield "embedder", embedder, _compare(state, embedder=embedder)
    for hz in wanted.hz:
        looks = list(find(state.dataset, engine=state.engine, hz=hz))
        try:
            yield "hz", f"{hz:g}", state.compare(looks, config.score, config.models)
        except EmoGazeError as error:
            yield "hz", f"{hz:g}", str(error)


def _compare(state: Evaluation, *, embedder: str = "", **score: str) -> Variant:
    models = msgspec.structs.replace(state.config.models, embedder=embedder) if embedder else state.config.models
    try:
        return state.compare(state.looks, with_score(state.config, **score), models)
    except EmoGazeError as error:
        return str(error)


def _rows(state: Evaluation, setting: str, value: str, found: Variant) -> Iterator[dict[str, Any]]:
    for scored in state.scored:
        row: dict[str, Any] = {"setting": setting, "value": value, "system": scored.system, "source": scored.source}
        if isinstance(found, str):
            yield {**row, "reason": found}
            continue
        if (scored.system, scored.source) not in found:  # scored by the runtime, and not to be scored anew
            continue
        weights = value if setting == "weights" else state.config.score.weights
        fcc = found[scored.system, scored.source].fcc(len(scored.table.samples), state.emotions(scored.system), weights)
        yield {**row, **shift(scored, fcc), "reason": ""}


def shift(scored: Scored, fcc: Array) -> dict[str, float]:
    """Return the headline with other FCC, and how these differ from the reference: the drift of an artefact, say."""
    from scipy.stats import spearmanr

    reference = scored.table.samples.fcc
    both = np.isfinite(reference) & np.isfinite(fcc)
    moved = np.abs(fcc - reference)[both]
    full, other = cl.score(scored.table.samples), cl.score(scored.table.samples.weighted_by(fcc))
    varies = both.sum() > 2 and np.ptp(fcc[both]) > 0 and np.ptp(reference[both]) > 0
    return {
        "mean_fcc": other["mean_fcc"],
        "std_fcc": float(np.nanstd(fcc)) if np.isfinite(fcc).any() else float("nan"),
        cl.HEADLINE: other[cl.HEADLINE],
        "points": 100 * (other[cl.HEADLINE] - full[cl.HEADLINE]),
        "relative_percent": 100 * (other[cl.HEADLINE] / full[cl.HEADLINE] - 1) if full[cl.HEADLINE] else float("nan"),
        "median_abs_dfcc": float(np.median(moved)) if len(moved) else float("nan"),
        "p95_abs_dfcc": float(np.quantile(moved, 0.95)) if len(moved) else float("nan"),
        "spearman": float(spearmanr(fcc[both], reference[both]).statistic) if varies else float("nan"),
        "n_without_fcc": int(np.sum(~np.isfinite(fcc))),
    }


def _headline(scored: Scored, fcc: Array) -> float:
    return cl.score(scored.table.samples.weighted_by(fcc))[cl.HEADLINE]
