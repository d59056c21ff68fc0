"""Where people and models part, and where people part among themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from host_tools.memo.archive import Archive
from host_tools.memo.classes import CLASSES
from host_tools.memo.truth import class_codes
from host_tools.memo.understanding import OUTCOMES, Understanding
from host_tools.metrics.agreement import vote_counts


def split_pictures(archive: Archive, n: int = 8) -> list[dict[str, Any]]:
    """List the pictures on whose class the raters are split most (smallest share of the leading class)."""
    ratings = archive.truth.ratings
    if ratings is None or ratings.votes is None:
        return []
    codes = class_codes(ratings.labels)
    counts = vote_counts(ratings.votes, len(ratings.labels))
    total = counts.sum(axis=1)
    lead = np.divide(counts.max(axis=1), total, out=np.full(len(total), np.inf), where=total > 1)
    rows = []
    for i in np.argsort(lead, kind="stable")[:n]:
        votes = {CLASSES[codes[k]]: int(c) for k, c in enumerate(counts[i]) if c}
        if np.isfinite(lead[i]):
            ordered = sorted(votes.items(), key=lambda v: -v[1])
            rows.append({"image": str(ratings.images[i]), "votes": ", ".join(f"{k} {c}" for k, c in ordered)})
    return rows


def missed_pictures(archive: Archive, understanding: Understanding, n: int = 8) -> list[dict[str, Any]]:
    """List the pictures that most models get wrong although the raters see one class; the strongest degrees first."""
    truth = archive.truth
    outcomes = np.array([m.outcome for m in understanding.models])
    asked = (outcomes >= 0).sum(axis=0)
    wrong = ((outcomes != truth.category) & (outcomes >= 0)).sum(axis=0)
    candidates = np.flatnonzero((wrong > 0) & (truth.category >= 0) & ~truth.tie)
    order = sorted(candidates, key=lambda i: (-wrong[i] / asked[i], -np.nan_to_num(truth.degree[i])))
    rows = []
    for i in order[:n]:
        said = [f"{m.name}: {OUTCOMES[m.outcome[i]]}" for m in understanding.models if m.outcome[i] >= 0]
        row = {"image": truth.images[i], "class": CLASSES[truth.category[i]], "degree": float(truth.degree[i])}
        rows.append(row | {"wrong": int(wrong[i]), "asked": int(asked[i]), "said": "; ".join(said[:4])})
    return rows
