"""Three complaints about cawF1, each with its measured cause and the measured effect of the remedy.

Nothing here is a rule of thumb: every figure comes from the evaluation at hand, on the machine at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from edge.backends.base import open_model
from edge.config import ModelsConfig, ScoreConfig
from edge.errors import EmoGazeError
from edge.features import Embedder
from host_tools.evaluate.run import Evaluation, Scored, with_score
from host_tools.metrics import classification as cl
from host_tools.metrics.estimates import Resampled
from host_tools.metrics.statistics import mean_of_defined, roc_auc

Array = npt.NDArray[np.float64]
SHARES = (0.25, 0.5, 1.0)
DRAWS = 20  #: subsets of participants that a share is averaged over
EMBEDDINGS = ("raw", "centred")
WINDOWS_TIMED = 16


def diagnose(state: Evaluation) -> dict[str, Any]:
    """Return the three complaints with what was measured."""
    scored = [s for s in state.scored if np.isfinite(s.table.samples.fcc).sum() > 1]
    return {
        "unstable": [unstable(state, s) for s in scored],
        "too_close": list(too_close(state, scored)),
        "too_slow": too_slow(state),
    }


def unstable(state: Evaluation, scored: Scored) -> dict[str, Any]:
    """Where the width of the interval comes from, and what more participants and more fixations do to it."""
    config, samples = state.config, scored.table.samples
    by_person = width(samples, config.resamples, config.seed)
    by_sample = width(
        cl.Samples(samples.labels, samples.true, samples.pred, samples.fcc), config.resamples, config.seed
    )
    counts = cl.confusion(samples).sum(axis=1)
    return {
        "system": scored.system,
        "source": scored.source,
        "interval_width": by_person,
        "interval_width_by_sample": by_sample,
        "design_effect": (by_person / by_sample) ** 2 if by_sample > 0 else float("nan"),
        "smallest_class": int(counts[counts > 0].min()),
        "reliability_of_fcc": reliability(state, scored),
        "width_by_share_of_participants": by_share(samples, config.resamples, config.seed),
    }


def width(samples: cl.Samples, n_resamples: int, seed: int) -> float:
    """Return the width of the headline's interval."""
    low, high = Resampled(samples, n_resamples, seed).estimate(cl.HEADLINE).ci95
    return high - low


def by_share(samples: cl.Samples, n_resamples: int, seed: int) -> list[dict[str, float]]:
    """Return the interval's width with a share of the participants, averaged over random subsets of them."""
    people = np.array(samples.participants or [])
    names = np.unique(people)
    rng = np.random.default_rng(seed)
    rows = []
    for share in SHARES:
        n = round(share * len(names))
        if n < 2:
            continue
        chosen = [rng.choice(names, n, replace=False) for _ in range(DRAWS if share < 1 else 1)]
        widths = [width(samples.take(np.isin(people, subset)), min(n_resamples, 300), seed) for subset in chosen]
        rows.append({"share": share, "participants": n, "width": mean_of_defined(widths)})
    return rows


def reliability(state: Evaluation, scored: Scored) -> dict[str, float]:
    """Return the split-half reliability of FCC: odd against even fixations of a sample, and of all of them.

    `all` is by Spearman and Brown's formula, 2r / (1 + r). Samples with fewer than two compared fixations are left out.
    """
    each = scored.pairs.fcc_per_fixation(state.emotions(scored.system), state.config.score.weights)
    by_sample: dict[int, list[float]] = {}
    for i, value in zip(scored.pairs.sample, each, strict=True):
        if np.isfinite(value):
            by_sample.setdefault(i, []).append(float(value))
    halves = np.array([(np.mean(v[::2]), np.mean(v[1::2])) for v in by_sample.values() if len(v) > 1]).reshape(-1, 2)
    if len(halves) < 3 or not (halves.std(axis=0) > 0).all():
        return {"half": float("nan"), "all": float("nan"), "n": float(len(halves))}
    r = float(np.corrcoef(halves.T)[0, 1])
    return {"half": r, "all": 2 * r / (1 + r) if r > -1 else float("nan"), "n": float(len(halves))}


def too_close(state: Evaluation, scored: Sequence[Scored]) -> Iterator[dict[str, Any]]:
    """Why cawF1 and F1 differ so little, under the raw and the centred embedding.

    Exactly: hard cawF1 - accuracy = r * std(FCC) * std(right) / mean(FCC). So a small difference means an FCC that
    hardly varies, or one that has nothing to do with being right; the first has a remedy, the second is a finding.
    """
    for embedding in EMBEDDINGS:
        found = state.compare(state.looks, with_score(state.config, embedding=embedding), state.config.models)
        for one in scored:
            pairs = found.get((one.system, one.source))
            if pairs is None:
                continue
            fcc = pairs.fcc(len(one.table.samples), state.emotions(one.system), state.config.score.weights)
            yield {"system": one.system, "source": one.source, "embedding": embedding, **decompose(one, fcc)}


def decompose(scored: Scored, fcc: Array) -> dict[str, float]:
    """Return the factors of hard cawF1 - accuracy, their product, and the headline's shift from its base."""
    samples = scored.table.samples.weighted_by(fcc)
    has = np.isfinite(fcc)
    weight, right = fcc[has], (samples.true == samples.pred)[has].astype(np.float64)
    varies = len(weight) > 1 and weight.std() > 0 and right.std() > 0
    r = float(np.corrcoef(weight, right)[0, 1]) if varies else float("nan")
    scores = cl.score(samples)
    return {
        "mean_fcc": float(weight.mean()) if len(weight) else float("nan"),
        "std_fcc": float(weight.std()) if len(weight) else float("nan"),
        "correlation_with_right": r,
        "auc_right_against_wrong": roc_auc(weight[right == 1], weight[right == 0]),
        "product": r * float(weight.std() * right.std() / weight.mean()) if varies else float("nan"),
        "hard_minus_accuracy": scores["cawf1_hard"] - scores["cawf1_hard_base"],
        "headline_minus_base": scores[cl.HEADLINE] - scores[f"{cl.HEADLINE}_base"],
    }


def too_slow(state: Evaluation) -> dict[str, Any]:
    """What a window costs with this artefact and the swept ones, and what a repeated comparison costs."""
    start = perf_counter()
    state.compare(state.looks, state.config.score, state.config.models)
    cached_s = perf_counter() - start
    n_windows = sum(len(k) for k in state.looks) + len(state.looks)
    models = state.config.models
    artefacts = [_time(models, name) for name in dict.fromkeys((models.embedder, *state.config.sweeps.embedder))]
    uncached = artefacts[0].get("batched_ms")
    return {
        "windows_and_scenes": n_windows,
        "artefacts": artefacts,
        "embedding_s_uncached": None if uncached is None else n_windows * uncached / 1000,
        "comparison_s_cached": cached_s,
    }


def _time(models: ModelsConfig, name: str) -> dict[str, Any]:
    """Time an artefact on random windows; a reason stands in place of figures where it can't be run."""
    try:
        model = open_model(name, msgspec.structs.replace(models, embedder=name))
        embedder = Embedder(model, ScoreConfig(still_tolerance=0))
    except EmoGazeError as error:
        return {"embedder": name, "reason": str(error)}
    rng = np.random.default_rng(0)
    windows = [rng.integers(0, 255, (200, 200, 3), dtype=np.uint8) for _ in range(WINDOWS_TIMED)]
    embedder.local(windows)  # warm
    single = _median_ms([_seconds(partial(embedder.local, [window])) for window in windows])
    batched = _median_ms([_seconds(lambda: embedder.local(windows)) / len(windows) for _ in range(3)])
    return {
        "embedder": name,
        "precision": model.manifest.precision,
        "backend": model.backend,
        "single_ms": single,
        "batched_ms": batched,
        "reason": "",
    }


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _median_ms(seconds: Sequence[float]) -> float:
    return 1000 * float(np.median(seconds))


def as_text(found: dict[str, Any]) -> list[str]:
    """Return the diagnosis in words."""
    unstable_lines = [line for row in found["unstable"] for line in _unstable_text(row)]
    close_lines = [_close_text(row) for row in found["too_close"]]
    slow_lines = _slow_text(found["too_slow"])
    return [
        *("Scores are unstable", *unstable_lines, ""),
        *("cawF1 is too close to F1", *close_lines, ""),
        *("Too slow", *slow_lines),
    ]


def _unstable_text(row: dict[str, Any]) -> list[str]:
    share = ", ".join(
        f"{100 * r['width']:.1f} with {r['participants']} people" for r in row["width_by_share_of_participants"]
    )
    independent, fcc = 100 * row["interval_width_by_sample"], row["reliability_of_fcc"]
    return [
        f"  {row['system']} ({row['source']}): the interval is {100 * row['interval_width']:.1f} points wide",
        f"    cause: {independent:.1f} if samples were independent (design effect {row['design_effect']:.2f}); "
        f"the smallest class has {row['smallest_class']} samples",
        f"    remedy, more participants: {share}",
        f"    remedy, more fixations: FCC's reliability {fcc['half']:.2f} with half of them, {fcc['all']:.2f} with all",
    ]


def _close_text(row: dict[str, Any]) -> str:
    r, auc = row["correlation_with_right"], row["auc_right_against_wrong"]
    return (
        f"  {row['system']} ({row['source']}), {row['embedding']}: std(FCC) {row['std_fcc']:.4f}, "
        f"correlation with being right {r:+.3f} (AUC {auc:.3f}); "
        f"hard cawF1 - accuracy {100 * row['hard_minus_accuracy']:+.2f} points, "
        f"headline - base {100 * row['headline_minus_base']:+.2f}"
    )


def _slow_text(slow: dict[str, Any]) -> list[str]:
    lines = []
    for row in slow["artefacts"]:
        name = row["embedder"]
        if row["reason"]:
            lines.append(f"  {name}: {row['reason']}")
        else:
            single, batched = row["single_ms"], row["batched_ms"]
            with_what = f"{row['precision']}, {row['backend']}"
            lines.append(f"  {name} ({with_what}): {single:.1f} ms a window alone, {batched:.1f} in batches")
    if slow["embedding_s_uncached"] is not None:
        lines.append(
            f"  {slow['windows_and_scenes']} windows and scenes take {slow['embedding_s_uncached']:.1f} s to embed "
            f"once; with the cache a whole comparison took {slow['comparison_s_cached']:.1f} s"
        )
    return lines
