"""Emotion patterns of each sample (see `host_tools.metrics.patterns`), and how well each tells its emotion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.commands.base import progress
from host_tools.datasets import panorama
from host_tools.datasets.maps import read_picture
from host_tools.engine import Work, run
from host_tools.evaluate.attention import distances
from host_tools.evaluate.config import PatternConfig
from host_tools.evaluate.embed import Points
from host_tools.evaluate.looks import Looks, batches
from host_tools.evaluate.regions import NOWHERE, Annotation, read_annotations
from host_tools.evaluate.run import Evaluation, places
from host_tools.labels import canonical
from host_tools.metrics import patterns as pt
from host_tools.metrics.statistics import percentile_interval, resampled_auc, roc_auc
from host_tools.tables import write_csv

Array = npt.NDArray[np.float64]
WORK_PX = 160  #: long side to which a picture is brought for its luminance and saturation
GRID = 64  #: columns of the grid on which the area of a region is taken

#: What each pattern needs, said where it is undefined for all samples.
NEEDS = {
    "happy": "needs pictures and fixations on them",
    "sad": "needs durations and at least two fixations",
    "angry": "needs annotated regions of threat or faces, and durations",
    "fear": "needs annotated regions of threat and of exit in one picture",
    "surprise": "needs times of fixations and the pupil's diameter",
    "disgust": "needs annotated repellent regions, and durations",
}


def emotion_patterns(state: Evaluation) -> list[dict[str, Any]]:
    """Return, per pattern, its means with and without the label, and its AUC; each sample's go to ``patterns.csv``."""
    found = of_samples(state)
    ids = [sample.sample_id for sample in state.dataset.samples]
    rows = ({"sample_id": name, **{k: v[i] for k, v in found.items()}} for i, name in enumerate(ids))
    write_csv(state.out / "patterns.csv", rows, ["sample_id", *found])
    return [_against_labels(state, emotion, values) for emotion, values in found.items()]


def of_samples(state: Evaluation) -> dict[str, Array]:
    """Return the patterns (n,) of the samples by emotion; `nan` where undefined."""
    looks = state.looks
    on_regions = np.array(list(_on_regions(state))).reshape(len(looks), 3).T
    durations, saccades, shifts = (
        np.array([figure(k, state) for k in looks]) for figure in (_fixation_ms, _saccade, _shift_rate)
    )
    return {
        "happy": np.array(list(progress(_brightness(state), "patterns", len(looks))), dtype=np.float64),
        "sad": pt.both_high(durations, -saccades),
        "angry": on_regions[0],
        "fear": on_regions[1],
        "surprise": pt.both_high(shifts, [k.pupil_change_mm for k in looks]),
        "disgust": on_regions[2],
    }


def labels_at(points: Points, annotations: Sequence[Annotation], size: tuple[int, int], state: Evaluation) -> list[str]:
    """Return what most annotators call the place at each point (ties: first in the alphabet); `NOWHERE` if none does.

    An annotator's word for a point is that of the nearest place marked, within the reach of a cluster.
    """
    names = sorted({label for _, _, label in annotations})
    votes = np.zeros((len(points), len(names)), dtype=np.int64)
    for annotator in {a for a, _, _ in annotations}:
        own = [(place, label) for a, place, label in annotations if a == annotator]
        apart = distances(points, np.concatenate([place for place, _ in own]), size, sphere=state.sphere)
        near = np.flatnonzero(apart.min(axis=1) <= state.reach)
        codes = np.array([names.index(label) for _, label in own])
        votes[near, codes[apart.argmin(axis=1)[near]]] += 1
    return [names[k] if votes[i, k] else NOWHERE for i, k in enumerate(votes.argmax(axis=1))]


def make_brightness(context: dict[str, Any], device: str) -> Work:
    """Return what finds the brightness at the fixations of a batch of samples (a worker of `host_tools.engine`)."""
    root, sphere = Path(context["_root"]), context["projection"] == "panorama"

    def one(item: dict[str, Any]) -> float:
        import cv2

        picture = read_picture(root / item["media"])
        height, width = picture.shape[:2]
        scale = min(1.0, context["work_px"] / max(width, height))
        small = cv2.resize(
            picture, (max(1, round(width * scale)), max(1, round(height * scale))), interpolation=cv2.INTER_AREA
        )
        rows, columns = small.shape[:2]
        points = np.array(item["points"], dtype=np.float64).reshape(-1, 2)
        at = (points[:, 1] * rows / height).astype(np.int64), (points[:, 0] * columns / width).astype(np.int64)
        saturation = cv2.cvtColor(small, cv2.COLOR_BGR2HSV)[..., 1]
        return pt.brightness(cv2.cvtColor(small, cv2.COLOR_BGR2GRAY), saturation, at, _area(rows, columns, sphere))

    return lambda job: [one(item) if item["media"] else pt.NAN for item in job["items"]]


def _brightness(state: Evaluation) -> Iterator[float]:
    context = {"_root": str(state.dataset.folder), "projection": state.dataset.info.projection, "work_px": WORK_PX}
    items = (
        {"media": s.media, "sha": state.media_sha.get(s.media, ""), "points": places(k)[k.on_picture].tolist()}
        for s, k in zip(state.dataset.samples, state.looks, strict=True)
    )
    jobs = ({"items": part} for part in batches(items))
    for part in run(jobs, make_brightness, context, engine=state.engine):
        yield from part


def _on_regions(state: Evaluation) -> Iterator[tuple[float, float, float]]:
    """Give each sample's patterns of angry, fear and disgust."""
    annotated, kinds = read_annotations(state.everything), _Kinds(state.config.patterns)
    areas: dict[str, float] = {}
    for sample, look in zip(state.dataset.samples, state.looks, strict=True):
        annotations = annotated.get(sample.media, [])
        present = {kinds.of(label) for _, _, label in annotations} - {NOWHERE}
        if not present or not look.size[0] or not len(look):
            yield pt.NAN, pt.NAN, pt.NAN
            continue
        if "repellent" in present and sample.media not in areas:
            areas[sample.media] = _area_share(annotations, look.size, kinds, state)
        seen = [kinds.of(label) for label in labels_at(places(look), annotations, look.size, state)]
        time = look.duration_ms.tolist()
        on_threat_or_face = pt.dwell(time, [k in ("threat", "face") for k in seen])
        threat_and_exit = pt.alternation([k if k in ("threat", "exit") else "" for k in seen])
        on_repellent = pt.dwell(time, [k == "repellent" for k in seen])
        yield (
            on_threat_or_face if present & {"threat", "face"} else pt.NAN,
            threat_and_exit if present >= {"threat", "exit"} else pt.NAN,
            pt.avoidance(areas.get(sample.media, 0.0), on_repellent),
        )


class _Kinds:
    """The kind of region that an annotator's word names."""

    def __init__(self, config: PatternConfig) -> None:
        named = {kind: getattr(config, kind) for kind in config.__struct_fields__}
        self._kind = {word.strip().lower(): kind for kind, words in named.items() for word in words}

    def of(self, label: str) -> str:
        return self._kind.get(label.strip().lower(), NOWHERE)


def _area_share(annotations: Sequence[Annotation], size: tuple[int, int], kinds: _Kinds, state: Evaluation) -> float:
    columns, rows = GRID, max(1, round(GRID * size[1] / size[0]))
    x, y = np.meshgrid((np.arange(columns) + 0.5) * size[0] / columns, (np.arange(rows) + 0.5) * size[1] / rows)
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    inside = [kinds.of(label) == "repellent" for label in labels_at(points, annotations, size, state)]
    area = _area(rows, columns, state.sphere).ravel()
    return float(area[inside].sum() / area.sum())


def _area(rows: int, columns: int, sphere: bool) -> Array:
    """Return how much of its scene each cell (rows, columns) holds; on a panorama rows shrink towards the poles."""
    _, elevation = panorama.to_angles(0, np.arange(rows) + 0.5, columns, rows)
    weight = np.cos(np.radians(elevation)) if sphere else np.ones(rows)
    return np.tile(weight[:, None], columns)


def _fixation_ms(look: Looks, state: Evaluation) -> float:
    return float(np.median(look.duration_ms)) if len(look) else pt.NAN


def _saccade(look: Looks, state: Evaluation) -> float:
    """Median distance of successive fixations: degrees on a panorama, else as a share of the picture's diagonal."""
    if len(look) < 2 or not look.size[0]:
        return pt.NAN
    apart = distances(places(look)[:-1], places(look)[1:], look.size, sphere=state.sphere).diagonal()
    return float(np.median(apart)) / (1.0 if state.sphere else float(np.hypot(*look.size)))


def _shift_rate(look: Looks, state: Evaluation) -> float:
    """Moves to another fixation per second."""
    span_ms = look.start_ms[-1] + look.duration_ms[-1] - look.start_ms[0] if len(look) else 0.0
    return float(1000 * (len(look) - 1) / span_ms) if span_ms > 0 else pt.NAN


def _against_labels(state: Evaluation, emotion: str, values: Array) -> dict[str, Any]:
    samples = state.dataset.samples
    defined = np.isfinite(values)
    is_label = np.array([canonical(s.label) == emotion for s in samples], dtype=bool)[defined]
    value = values[defined]
    people = [s.participant for s, d in zip(samples, defined, strict=True) if d]
    reason = NEEDS[emotion] if not len(value) else ""
    if not reason and (is_label.all() or not is_label.any()):
        reason = "needs samples with the label and without it"
    interval = (pt.NAN, pt.NAN)
    if not reason:
        options = {"n_resamples": state.config.resamples, "seed": state.config.seed}
        interval = percentile_interval(resampled_auc(value, is_label, people if all(people) else None, **options))
    return {
        "emotion": emotion,
        "n": len(value),
        "n_with_label": int(is_label.sum()),
        "mean_with_label": float(value[is_label].mean()) if is_label.any() else pt.NAN,
        "mean_without": float(value[~is_label].mean()) if (~is_label).any() else pt.NAN,
        "auc": roc_auc(value[is_label], value[~is_label]),
        "ci95": interval,
        "reason": reason,
    }
