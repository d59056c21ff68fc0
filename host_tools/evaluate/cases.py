"""Samples worth a look: where context fits best and worst, and those that move cawF1 away from F1 the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge.files import write_atomic
from host_tools.datasets.maps import read_picture
from host_tools.evaluate.run import OBSERVED, Evaluation, Scored, SystemRun
from host_tools.metrics import classification as cl
from host_tools.metrics import saliency as sal

PER_KIND = 3
FIXATION_MAPS = 6
WIDTH_PX = 640
_HUMAN, _SYSTEM = (60, 220, 255), (255, 120, 30)  # BGR
_ROWS_AT_ONCE = 4096


def influence(samples: cl.Samples) -> npt.NDArray[np.float64]:
    """Return how far each sample (n,) moves cawF1 (macro) away from its base: all of them against all but it."""
    each = cl.terms(samples)
    k = len(samples.labels)

    def gap(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        values = cl.values(sums, k)
        return values[cl.HEADLINE] - values[f"{cl.HEADLINE}_base"]

    total = each.sum(axis=0)
    parts = [gap(total - each[i : i + _ROWS_AT_ONCE]) for i in range(0, len(each), _ROWS_AT_ONCE)]
    return gap(total) - np.concatenate(parts)


def cases(state: Evaluation) -> list[dict[str, Any]]:
    """Choose the cases of each system under its own attention source, draw them into ``cases/`` and describe them."""
    found = []
    for run in state.runs:
        source = run.config.attention_source
        scored = next(s for s in state.scored if (s.system, s.source) == (run.config.name, source))
        for kind, rows, why in _choose(scored):
            for rank, i in enumerate(rows):
                name = f"cases/{run.config.name}.{kind}.{rank + 1}.jpg"
                drawn = _draw(state, run, i, state.out / name)
                found.append(
                    {
                        "system": run.config.name,
                        "source": source,
                        "kind": kind,
                        "picture": name if drawn else "",
                        **_describe(state, scored, i),
                        "influence": float(why[i]) if kind == "influence" else None,
                    }
                )
    return found


def fixation_maps(state: Evaluation) -> list[dict[str, Any]]:
    """Draw the densities of all recorded fixations on the pictures most looked at, into ``cases/``."""
    counts: dict[str, int] = {}
    for sample, looks in zip(state.dataset.samples, state.looks, strict=True):
        if sample.media:
            counts[sample.media] = counts.get(sample.media, 0) + int(looks.on_picture.sum())
    chosen = sorted(counts, key=lambda media: (-counts[media], media))[:FIXATION_MAPS]
    rows = []
    for number, media in enumerate(chosen):
        name = f"cases/fixation_map.{number + 1}.jpg"
        _write(state.out / name, _heat(state, media))
        labels = sorted({s.label for s in state.dataset.samples if s.media == media})
        rows.append({"media": media, "picture": name, "n_fixations": counts[media], "labels": labels})
    return rows


def histograms(state: Evaluation) -> list[dict[str, Any]]:
    """Return, per system and source, how FCC is distributed over right and wrong samples."""
    edges = np.linspace(0, 1, 41)
    rows = []
    for scored in state.scored:
        samples = scored.table.samples
        right = samples.true == samples.pred
        counts = {
            name: np.histogram(samples.fcc[where & np.isfinite(samples.fcc)], edges)[0].tolist()
            for name, where in (("right", right), ("wrong", ~right))
        }
        rows.append({"system": scored.system, "source": scored.source, "edges": edges.tolist(), **counts})
    return rows


def _choose(scored: Scored) -> Iterator[tuple[str, Sequence[int], npt.NDArray[np.float64]]]:
    samples = scored.table.samples
    has = np.isfinite(samples.fcc)
    moved = influence(samples) if has.any() else np.zeros(len(samples))
    right = samples.true == samples.pred
    best = np.flatnonzero(has & right)
    worst = np.flatnonzero(has & ~right)
    yield "best", best[np.argsort(-samples.fcc[best], kind="stable")][:PER_KIND].tolist(), moved
    yield "worst", worst[np.argsort(samples.fcc[worst], kind="stable")][:PER_KIND].tolist(), moved
    ranked = np.argsort(-np.abs(np.where(has, moved, 0.0)), kind="stable")
    yield "influence", [int(i) for i in ranked[:PER_KIND] if has[i]], moved


def _describe(state: Evaluation, scored: Scored, i: int) -> dict[str, Any]:
    sample, samples, pairs = state.dataset.samples[i], scored.table.samples, scored.pairs
    own = [k for k, owner in enumerate(pairs.sample) if owner == i]
    labels = (*samples.labels.labels, "other")
    return {
        "sample_id": sample.sample_id,
        "media": sample.media,
        "scene_type": sample.scene_type,
        "true": sample.label,
        "pred": labels[samples.pred[i]],
        "fcc": float(samples.fcc[i]),
        "sim_local": float(np.mean([pairs.sim_local[k] for k in own])) if own else float("nan"),
        "sim_global": float(np.mean([pairs.sim_global[k] for k in own])) if own else float("nan"),
        "n_fixations": len(state.looks[i]),
    }


def _draw(state: Evaluation, run: SystemRun, i: int, path: Path) -> bool:
    sample, looks = state.dataset.samples[i], state.looks[i]
    if not sample.media:
        return False
    canvas, scale = _canvas(state, sample.media)
    places = np.stack([looks.x_px, looks.y_px], axis=1) * scale
    radius = 8 + 10 * np.nan_to_num(looks.duration_ms) / 400
    for k, (x, y) in enumerate(places):
        if k:
            cv2.line(canvas, _at(*places[k - 1]), _at(x, y), _HUMAN, 1, cv2.LINE_AA)
        cv2.circle(canvas, _at(x, y), round(float(radius[k])), _HUMAN, 2, cv2.LINE_AA)
        cv2.putText(canvas, str(k + 1), _at(x - 4, y + 4), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
    if run.points is not None and run.config.attention_source != OBSERVED:
        for x, y in run.points[i] * scale:
            cv2.drawMarker(canvas, _at(x, y), _SYSTEM, cv2.MARKER_TILTED_CROSS, 16, 2, cv2.LINE_AA)
    _write(path, canvas)
    return True


def _heat(state: Evaluation, media: str) -> npt.NDArray[np.uint8]:
    canvas, scale = _canvas(state, media)
    shape = canvas.shape[:2]
    x, y = (
        np.concatenate(
            [
                getattr(looks, name)
                for sample, looks in zip(state.dataset.samples, state.looks, strict=True)
                if sample.media == media
            ]
        )
        * scale
        for name in ("x_px", "y_px")
    )
    pixels, _ = sal.to_pixels(x, y, shape)
    density = sal.density(shape, pixels, max(shape) / 40)
    level = density / density.max() if density.max() > 0 else density
    colours = cv2.applyColorMap(np.round(255 * level).astype(np.uint8), cv2.COLORMAP_INFERNO)
    weight = (0.65 * np.sqrt(level))[..., None]
    return np.round(canvas * (1 - weight) + colours * weight).astype(np.uint8)


def _canvas(state: Evaluation, media: str) -> tuple[npt.NDArray[np.uint8], float]:
    picture = read_picture(state.dataset.path(media))
    scale = min(1.0, WIDTH_PX / picture.shape[1])
    if scale == 1.0:
        return picture, scale
    size = WIDTH_PX, max(1, round(picture.shape[0] * scale))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), dtype=np.uint8), scale


def _at(x: float, y: float) -> tuple[int, int]:
    return round(float(x)), round(float(y))


def _write(path: Path, picture: npt.NDArray[np.uint8]) -> None:
    write_atomic(path, cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes())
