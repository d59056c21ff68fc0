"""All scores of one system's table of samples, with intervals and checks, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from host_tools.metrics import checks as ck
from host_tools.metrics import classification as cl
from host_tools.metrics.estimates import Estimate, Resampled, against_base
from host_tools.samples import SampleTable

SMALLEST_CELL = 10  # fewer samples give no score of a part


def evaluate(
    table: SampleTable,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    kappa: ck.Check | None = None,
    sync: ck.Check | None = None,
) -> dict[str, Any]:
    """Return n, n_without_fcc, applies, scores, per_class, other, checks and more of one system.

    Parameters
    ----------
    table : SampleTable
        The system's samples.
    n_resamples, seed : int
        Of the bootstrap.
    kappa, sync : Check, optional
        What is known about annotators' agreement and synchronisation; unknown otherwise.
    """
    samples = table.samples
    system = Resampled(samples, n_resamples, seed)
    n_with = int(np.isfinite(samples.fcc).sum())
    applies, why = ck.applicability(len(samples.labels), n_with, table.scene_types)
    return {
        "n": len(samples),
        "n_without_fcc": len(samples) - n_with,
        "applies": applies,
        "applies_reason": why,
        "scores": {name: reading(system, name) for name in cl.READINGS},
        "mean_fcc": estimate(system.estimate("mean_fcc")),
        "mean_fcc_bf1": estimate(system.estimate("mean_fcc_bf1")),
        "classification": {name: estimate(system.estimate(name)) for name in cl.SET_METRICS},
        "per_class": per_class(system),
        "confusion": {
            "labels": list(samples.labels.labels),
            "columns": [*samples.labels.labels, "other"],
            "counts": cl.confusion(samples).astype(int).tolist(),
        },
        "per_scene_type": per_scene_type(table, n_resamples, seed),
        "other": table.other,
        "checks": [check_dict(check) for check in _checks(table, system, kappa, sync)],
        "notes": list(table.notes),
    }


def reading(system: Resampled, name: str) -> dict[str, Any]:
    """Return a reading with its interval, its base, and its difference from the base tested in pairs."""
    value, base = system.estimate(name), system.estimate(f"{name}_base")
    shift = against_base(system, name)
    return {
        "value": value.value,
        "ci95": list(value.ci95),
        "base": base.value,
        "base_ci95": list(base.ci95),
        "difference": shift.value,
        "difference_ci95": list(shift.ci95),
        "p": shift.p,
        "dz": shift.dz,
    }


def estimate(given: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values."""
    return {"value": given.value, "ci95": list(given.ci95)}


def check_dict(check: ck.Check) -> dict[str, Any]:
    """Return a check as plain values."""
    return {name: getattr(check, name) for name in ("name", "status", "value", "bound", "text")}


def per_class(system: Resampled) -> dict[str, dict[str, Any]]:
    """Return counts, F1, precision, recall, F1 of the FCC-weighted confusion and mean FCC of each label."""
    samples = system.samples
    counts = cl.confusion(samples)
    weighted = cl.f1_per_class(cl.confusion(samples, samples.fcc))
    precision, recall = cl.precision_per_class(counts), cl.recall_per_class(counts)
    out = {}
    for i, (label, f1) in enumerate(zip(samples.labels.labels, system.f1_per_class(), strict=True)):
        fcc = samples.fcc[samples.true == i]
        fcc = fcc[np.isfinite(fcc)]
        out[label] = {
            "n_true": int(counts[i].sum()),
            "n_pred": int(counts[:, i].sum()),
            "f1": f1.value,
            "f1_ci95": list(f1.ci95),
            "precision": float(precision[i]),
            "recall": float(recall[i]),
            "f1_weighted_by_fcc": float(weighted[i]),
            "mean_fcc": float(fcc.mean()) if len(fcc) else float("nan"),
        }
    return out


def per_scene_type(table: SampleTable, n_resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return n, mean FCC, headline and base of each scene type; below ten samples the scores are `nan`."""
    types = np.array(table.scene_types)
    return {
        str(name): part(table.samples.take(types == name), n_resamples, seed)
        for name in (np.unique(types) if len(types) else ())
    }


def part(samples: cl.Samples, n_resamples: int, seed: int) -> dict[str, Any]:
    """Return n, mean FCC, headline and base of a part of the samples (a scene type, a region, a window)."""
    if len(samples) < SMALLEST_CELL:
        nothing = {"value": float("nan"), "ci95": [float("nan")] * 2}
        return {"n": len(samples), "mean_fcc": nothing, cl.HEADLINE: nothing, "base": nothing}
    system = Resampled(samples, n_resamples, seed)
    return {
        "n": len(samples),
        "mean_fcc": estimate(system.estimate("mean_fcc")),
        cl.HEADLINE: estimate(system.estimate(cl.HEADLINE)),
        "base": estimate(system.estimate(f"{cl.HEADLINE}_base")),
    }


def joint(table: SampleTable, weights: Sequence[float], n_resamples: int = 1000, seed: int = 0) -> dict[str, Any]:
    """Return maF1: every reading with the joint attention of the `att_<modality>` columns in FCC's place."""
    modalities = list(table.attention)
    attention = cl.joint_attention(np.stack(list(table.attention.values()), axis=1), weights)
    system = Resampled(table.samples.weighted_by(attention), n_resamples, seed)
    return {
        "modalities": modalities,
        "weights": [float(w) / sum(weights) for w in weights],
        "n_without_attention": int(np.isnan(attention).sum()),
        "scores": {name.replace("cawf1", "maf1"): reading(system, name) for name in cl.READINGS},
    }


def _checks(table: SampleTable, system: Resampled, kappa: ck.Check | None, sync: ck.Check | None) -> list[ck.Check]:
    samples, point = system.samples, system.point
    counts = cl.confusion(samples)
    fcc = samples.fcc[np.isfinite(samples.fcc)]
    n_true = {label: int(n) for label, n in zip(samples.labels.labels, counts.sum(axis=1), strict=True)}
    weighted = cl.f1_per_class(cl.confusion(samples, samples.fcc))
    left_out = [label for label, f1 in zip(samples.labels.labels, weighted, strict=True) if np.isnan(f1)]
    return [
        ck.fcc_defined(len(samples), len(samples) - len(fcc), float(fcc.sum())),
        ck.classes(n_true, left_out if len(fcc) else []),
        ck.samples_per_emotion(n_true),
        ck.predictions(table.other),
        ck.participants(samples.participants),
        ck.interval_width(system.estimate(cl.HEADLINE).ci95),
        ck.shift_from_base(point[cl.HEADLINE], point[f"{cl.HEADLINE}_base"]),
        kappa or ck.kappa(None, ""),
        sync or ck.synchronisation(None),
    ]
