"""All results of an evaluation as plain values: what `results.json` holds and the report shows."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import msgspec
import numpy as np

import edge
from edge.manifest import load_manifest, models_dir
from host_tools.datasets.layout import table_path
from host_tools.evaluate import ablations as ab
from host_tools.evaluate import attended, comparisons
from host_tools.evaluate import cases as cs
from host_tools.evaluate import cawf1 as ev
from host_tools.evaluate import gamma as gm
from host_tools.evaluate import regions as rg
from host_tools.evaluate.patterns import emotion_patterns
from host_tools.evaluate.run import Evaluation
from host_tools.evaluate.systems import content_hash
from host_tools.metrics import checks as ck
from host_tools.metrics.estimates import mean_with_interval

#: What the source of cawF1 claims, percent. Printed beside a rerun as "published", never as ours.
PUBLISHED = [
    {"system": "ResNet-50 (+LSTM)", "accuracy": 68.2, "f1": 65.7, "auc_judd": 58.3, "cawf1": 62.1},
    {"system": "EmoGazeNet", "accuracy": 80.2, "f1": 78.9, "auc_judd": 72.5, "cawf1": 79.6},
    {"system": "Affectiva SDK", "accuracy": 72.4, "f1": 70.8, "auc_judd": 63.2, "cawf1": 68.3},
]
PUBLISHED_ABLATIONS = [
    {"ablation": "classification only", "drop_percent": 19.2},
    {"ablation": "FCC only", "drop_percent": 27.5},
    {"ablation": "global features only", "drop_percent": 8.3},
    {"ablation": "static weights", "drop_percent": 5.1},
]
LOW_RATE_HZ = 100.0


def collect(state: Evaluation) -> dict[str, Any]:
    """Work everything out and return it."""
    systems = comparisons.resampled(state.scored, state.config)
    regions = rg.find_regions(state)
    kappa = regions.check(state)
    return {
        "dataset": {**card(state), "annotators": rg.pairwise_agreement(regions), "n_regions": len(regions.clusters)},
        "checks": [ev.check_dict(check) for check in (kappa, *dataset_checks(state))],
        "systems": {run.config.name: _system(state, run.config.name, kappa) for run in state.runs},
        "comparisons": comparisons.pairwise(state, systems),
        "leads": comparisons.leads(state, systems),
        "against_bases": comparisons.against_bases(systems, state.config.correction),
        "ablations": ab.ablations(state),
        "sweeps": ab.sweeps(state),
        "gamma": gm.fixed(state),
        "gamma_learned": gm.learned(state),
        "regions": [row for scored in state.scored for row in rg.per_region(state, regions, scored)],
        "transitions": rg.transitions(state, regions),
        "dynamics": rg.dynamics_by_emotion(state, regions),
        "patterns": emotion_patterns(state),
        "over_time": [row for scored in state.scored for row in rg.over_time(state, scored)],
        "fcc_histograms": cs.histograms(state),
        "fixation_maps": cs.fixation_maps(state),
        "cases": cs.cases(state),
        "published": {"systems": PUBLISHED, "ablations": PUBLISHED_ABLATIONS},
        "made_with": made_with(state),
    }


def card(state: Evaluation) -> dict[str, Any]:
    """Return the data card: what the data set is, how much of it there is, and what it lacks."""
    info, samples, looks = state.dataset.info, state.dataset.samples, state.looks
    rates = [k.hz for k in looks if np.isfinite(k.hz)]
    off = sum(int((~k.on_picture).sum()) for k in looks)
    return {
        "name": info.name,
        "description": info.description,
        "source": info.source,
        "licence": info.licence,
        "simulated": info.simulated,
        "projection": info.projection,
        "split": state.config.split,
        "label_set": state.dataset.label_set.name,
        "labels": dict(sorted(Counter(s.label for s in samples).items())),
        "label_sources": dict(sorted(Counter(s.label_source or "not said" for s in samples).items())),
        "scene_types": dict(sorted(Counter(s.scene_type or "not said" for s in samples).items())),
        "n_samples": len(samples),
        "n_participants": len({s.participant for s in samples} - {""}),
        "n_pictures": len({s.media for s in samples} - {""}),
        "n_gaze_samples": sum(k.n_samples for k in looks),
        "n_gaze_invalid": sum(k.n_invalid for k in looks),
        "gaze_hz": float(np.median(rates)) if rates else None,
        "n_fixations": sum(len(k) for k in looks),
        "n_fixations_off_picture": off,
        "samples_without_fixations": dict(sorted(Counter(k.reason for k in looks if not len(k)).items())),
        "lacks": list(info.lacks),
    }


def dataset_checks(state: Evaluation) -> list[ck.Check]:
    """Return the checks of the data set's streams; each system's own stand with its scores."""
    return [ck.synchronisation(state.dataset.info.sync_ms), _gaze_rate(state), _off_picture(state)]


def _gaze_rate(state: Evaluation) -> ck.Check:
    rates = [k.hz for k in state.looks if np.isfinite(k.hz)]
    if not rates:
        return ck.Check("gaze_rate", "unknown", None, LOW_RATE_HZ, "there is no gaze whose rate could be measured")
    lowest, median = min(rates), float(np.median(rates))
    low = lowest < LOW_RATE_HZ
    text = f"measured {median:.0f} Hz (lowest {lowest:.0f})"
    text += "; fixation borders are coarse below 100 Hz" if low else ""
    return ck.Check("gaze_rate", "warn" if low else "pass", median, LOW_RATE_HZ, text)


def _off_picture(state: Evaluation) -> ck.Check:
    off = sum(int((~k.on_picture).sum()) for k in state.looks)
    total = sum(len(k) for k in state.looks)
    text = f"{off} of {total} fixations are off their picture and left out"
    return ck.Check("fixations_off_picture", "warn" if off else "pass", off, 0, text)


def made_with(state: Evaluation) -> dict[str, Any]:
    """Return what a result rests on: command, versions, artefact and its hash, hashes of the inputs, settings."""
    config = state.config
    manifest = load_manifest(models_dir(config.models.dir) / config.models.embedder)
    packages = ("numpy", "scipy", "opencv-python-headless", "faiss-cpu", "onnxruntime")
    return {
        "command": "python -m host_tools " + " ".join(sys.argv[1:]),
        "emogaze_edge": edge.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in packages},
        "embedder": {
            "name": manifest.name,
            "model_id": manifest.model_id,
            "precision": manifest.precision,
            "sha256": manifest.sha256,
            "weights": manifest.weights,
        },
        "inputs": _inputs(state),
        "settings": msgspec.to_builtins(config),
    }


def _inputs(state: Evaluation) -> dict[str, str]:
    """Return the hash of each table that was read, and one of all pictures."""
    folder = state.dataset.folder
    tables = {f"{name} table": table_path(folder, name) for name in ("samples", "fixations", "annotations")}
    paths = {name: path for name, path in tables.items() if path}
    for system in state.config.systems:
        for kind in ("predictions", "fixations", "maps"):
            if value := getattr(system, kind):
                paths[f"{system.name} {kind}"] = state.base / value
    pictures = hashlib.sha256("\n".join(f"{k} {v}" for k, v in state.media_sha.items()).encode()).hexdigest()
    return {**{name: content_hash(path) for name, path in paths.items()}, "pictures": pictures}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _system(state: Evaluation, name: str, kappa: ck.Check) -> dict[str, Any]:
    config = state.config
    facts = {"kappa": kappa, "sync": ck.synchronisation(state.dataset.info.sync_ms)}
    sources = {}
    for scored in state.scored:
        if scored.system == name:
            body = ev.evaluate(scored.table, n_resamples=config.resamples, seed=config.seed, **facts)
            body["reasons_without_fcc"] = scored.pairs.reasons
            body["n_unmatched_fixations"] = scored.pairs.n_unmatched
            if scored.table.attention:
                weights = [1.0] * len(scored.table.attention)
                body["maf1"] = ev.joint(scored.table, weights, config.resamples, config.seed)
            sources[scored.source] = body
    return {"sources": sources, "saliency": _saliency(state, name)}


def _saliency(state: Evaluation, name: str) -> dict[str, Any] | None:
    """Return mean saliency scores overall, per emotion and per scene type; None where the system attends to nothing."""
    rows = state.saliency.get(name)
    if rows is None:
        return None
    samples = state.dataset.samples
    people = [s.participant for s in samples]

    def means(where: Sequence[int]) -> dict[str, Any]:
        chosen = [people[i] for i in where]
        return {
            metric: ev.estimate(
                mean_with_interval(
                    [rows[i][metric] for i in where],
                    chosen if all(chosen) else None,
                    n_resamples=state.config.resamples,
                    seed=state.config.seed,
                )
            )
            for metric in attended.METRICS
        }

    def by(attribute: str) -> dict[str, Any]:
        values = [getattr(s, attribute) for s in samples]
        return {v: means([i for i, w in enumerate(values) if w == v]) for v in sorted(set(values)) if v}

    return {
        "n_samples": sum(np.isfinite(row["auc_judd"]) for row in rows),
        "n_without": sum(not np.isfinite(row["auc_judd"]) for row in rows),
        "n_off_image": sum(int(row["n_off_image"]) for row in rows),
        "overall": means(range(len(samples))),
        "per_emotion": by("label"),
        "per_scene_type": by("scene_type"),
    }
