"""What the benchmark's source publishes, beside what this run found. Published claims are never ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from host_tools.memo.classes import CLASSES
from host_tools.memo.generation import Generation
from host_tools.memo.understanding import Understanding
from host_tools.metrics.statistics import mean_of_defined
from host_tools.report.tables import ReportTable

_NONE = "–"


def anchors_table(generation: Generation | None, understanding: Understanding | None) -> ReportTable:
    """Set the published findings beside those of this run."""
    rows: list[list[Any]] = []
    if generation:
        rows += _generation(generation)
    if understanding and understanding.models:
        rows += _understanding(understanding)
    caption = "Published findings beside this run; they agree only if archive, models and questions are the same."
    return ReportTable("anchors", caption, ["finding", "published", "this run"], rows)


def _generation(generation: Generation) -> list[list[Any]]:
    accuracy = {m: generation.by_model.micro(i).value for i, m in enumerate(generation.models)}
    quality = dict(zip(generation.models, generation.mean_quality, strict=True))
    best, worst = _ends(accuracy)
    gap = f"{100 * (accuracy[best] - accuracy[worst]):.1f} points" if best != _NONE else _NONE
    by_prompt = {c: mean_of_defined(generation.quality[:, k]) for k, c in enumerate(CLASSES)}
    lowest = sorted((v, m) for m, v in quality.items() if np.isfinite(v))[:2]
    return [
        ["best at generation", "SGA", best],
        ["worst at generation", "FCS", worst],
        ["gap between them", "more than 35 points", gap],
        ["best picture quality", "FCS", _ends(quality)[0]],
        ["lowest picture quality", "SD1, SD2", ", ".join(sorted(m for _, m in lowest)) or _NONE],
        ["prompts with the best quality", "NEU", _ends(by_prompt)[0]],
    ]


def _understanding(understanding: Understanding) -> list[list[Any]]:
    shares = understanding.shares
    names = [m.name for m in understanding.models]
    micro = {name: shares.micro(i).value for i, name in enumerate(names)}
    per_class = np.array([[e.value for e in shares.per_class(i)] for i in range(len(names))])
    best = _ends(micro)[0]
    means = {c: mean_of_defined(per_class[:, k]) for k, c in enumerate(CLASSES)}
    worst = _ends(means)[1]
    winners = {_ends(dict(zip(names, per_class[:, k], strict=True)))[0] for k in range(len(CLASSES))} - {_NONE}
    above = sum(v >= 0.5 for v in micro.values())
    happy = int(np.sum(per_class[:, CLASSES.index("HAP")] > 0.9))
    return [
        ["best overall accuracy", "0.6759 (mPLUG-Owl3)", f"{micro[best]:.4f} ({best})" if best != _NONE else _NONE],
        ["models with an overall accuracy of 0.5 or more", "most", f"{above} of {len(names)}"],
        ["models above 0.9 on HAP", "many", f"{happy} of {len(names)}"],
        ["hardest class", "WOR", worst],
        ["it is taken for", "SAD and NEU", _taken_for(understanding, worst)],
        ["the best model differs per emotion", "yes", f"{len(winners)} best among {len(names)}"],
    ]


def _taken_for(understanding: Understanding, worst: str) -> str:
    if worst not in CLASSES:
        return _NONE
    k = CLASSES.index(worst)
    counts = understanding.shares.counts[:, k, : len(CLASSES)].sum(axis=0)
    order = [CLASSES[o] for o in np.argsort(-counts, kind="stable") if o != k and counts[o] > 0]
    return " and ".join(order[:2]) or _NONE


def _ends(values: dict[str, float]) -> tuple[str, str]:
    """Return the names of the highest and the lowest defined value."""
    defined = {name: v for name, v in values.items() if np.isfinite(v)}
    return (
        (max(defined, key=lambda n: defined[n]), min(defined, key=lambda n: defined[n])) if defined else (_NONE, _NONE)
    )
