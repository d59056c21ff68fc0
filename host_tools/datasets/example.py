"""A small complete data set, drawn and simulated: scenes, 120 Hz gaze, annotations and the answers of three systems.

It exists so that everything here can be tried and tested without a licence; every output that comes from it says that
it is simulated, and its figures say nothing about people or products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge.config import GazeConfig
from edge.files import write_atomic
from host_tools.datasets import layout
from host_tools.datasets._drawing import CUES, HEIGHT, SCENE_TYPES, WIDTH, Thing, draw_scene
from host_tools.tables import write_csv

HZ = 120.0
LABELS = tuple(sorted(CUES))
_SCREEN = "screen = {width_mm = 320, height_mm = 240, width_px = 640, height_px = 480, distance_mm = 600}"
_N_PARTICIPANTS = 12
_NOISE_PX = 1.5
_PUPIL_MM, _SURPRISED_MM = 3.5, 0.25  # made up, as all of it


@dataclass(frozen=True, slots=True)
class _Seen:
    """A sample with what its participant looked at: (n, 3) of x, y in pixels and duration in ms."""

    sample: layout.Sample
    things: Sequence[Thing]
    looks: npt.NDArray[np.float64]


def generate(folder: Path, *, pictures_per_emotion: int = 6, viewers: int = 4, seed: int = 0) -> int:
    """Write the data set and `evaluate.toml`, the evaluation of it; return the number of samples.

    A third of the pictures is the `train` split. Each is seen by `viewers` of twelve participants.
    """
    rng = np.random.default_rng(seed)
    seen: list[_Seen] = []
    shown = [0] * _N_PARTICIPANTS
    number = 0
    for label in LABELS:
        for k in range(pictures_per_emotion):
            scene_type = SCENE_TYPES[number % len(SCENE_TYPES)]
            picture, things = draw_scene(scene_type, CUES[label], rng)
            media = f"media/{number:03d}.jpg"
            _write_picture(folder / media, picture, [cv2.IMWRITE_JPEG_QUALITY, 90])
            split = "train" if k < pictures_per_emotion // 3 else "test"
            for viewer in rng.permutation(_N_PARTICIPANTS)[:viewers]:
                name = f"{number:03d}-{viewer:02d}"
                sample = layout.Sample(
                    sample_id=name,
                    participant=f"P{viewer:02d}",
                    label=label,
                    label_source="simulated",
                    scene_type=scene_type,
                    split=split,
                    media=media,
                    gaze=f"gaze/{name}.csv",
                    t_s=str(4 * shown[viewer]),
                )
                shown[viewer] += 1
                looks = _looks(things, rng)
                _write_gaze(folder / sample.gaze, looks, rng, _SURPRISED_MM if label == "surprise" else 0.0)
                seen.append(_Seen(sample, things, looks))
            number += 1
    layout.write(folder, _info(), [s.sample for s in seen])
    _write_annotations(folder, seen, rng)
    _write_systems(folder / "predictions", seen, rng)
    write_atomic(folder / "evaluate.toml", _EVALUATION)
    return len(seen)


def _info() -> layout.DatasetInfo:
    return layout.DatasetInfo(
        name="EmoGaze example",
        description="Drawn scenes with simulated gaze and simulated systems; not a measurement of anything.",
        licence="Apache-2.0",
        source="python -m host_tools example-dataset",
        simulated=True,
        labels="ekman6",
        gaze=GazeConfig(
            format="csv", columns={"t": "t_ms"}, time_unit="ms", units="px", frame="screen_px", geometry=_SCREEN
        ),
        sync_ms=8.0,
        lacks=("faces of the participants", "EEG"),
    )


def _looks(things: Sequence[Thing], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Look at the cue longest and most often, and at some of the rest."""
    weights = np.array([3.0] + [1.0] * (len(things) - 1))
    rows: list[tuple[float, float, float]] = []
    last = -1
    for _ in range(int(rng.integers(5, 8))):
        open_to = np.where(np.arange(len(things)) == last, 0, weights)
        last = int(rng.choice(len(things), p=open_to / open_to.sum()))
        x, y = np.array([things[last].x_px, things[last].y_px]) + rng.normal(0, 9, size=2)
        rows.append((x, y, float(rng.integers(220, 560 if last == 0 else 380))))
    return np.array(rows)


def _write_gaze(path: Path, looks: npt.NDArray[np.float64], rng: np.random.Generator, dilation_mm: float) -> None:
    step = 1000 / HZ
    places = []
    for i, (x, y, duration) in enumerate(looks):
        places += [(x, y)] * round(duration / step)
        if i + 1 < len(looks):
            jump = np.linspace(0, 1, 6)[1:-1, None]
            places += list((1 - jump) * [x, y] + jump * looks[i + 1, :2])
    xy = np.array(places) + rng.normal(0, _NOISE_PX, (len(places), 2))
    valid = np.ones(len(xy), dtype=bool)
    blink = int(rng.integers(len(xy)))
    valid[blink : blink + 5] = rng.random() > 0.3
    t_ms = np.arange(len(xy)) * step
    pupil = _PUPIL_MM + dilation_mm * np.clip(t_ms / 1000 - 0.5, 0, 1) + rng.normal(0, 0.2, len(xy))
    columns = zip(t_ms.round(3), xy[:, 0].round(2), xy[:, 1].round(2), valid.astype(int), pupil.round(3), strict=True)
    names = ("t_ms", "x", "y", "valid", "pupil_mm")
    write_csv(path, (dict(zip(names, row, strict=True)) for row in columns), names)


def _write_annotations(folder: Path, seen: Sequence[_Seen], rng: np.random.Generator) -> None:
    names = sorted({thing.name for s in seen for thing in s.things})
    rows = []
    for s in seen:
        for thing in s.things:
            for annotator, slips in (("A", 0.03), ("B", 0.05)):
                label = str(rng.choice(names)) if rng.random() < slips else thing.name
                place = {"x_px": thing.x_px, "y_px": thing.y_px}
                rows.append({"sample_id": s.sample.sample_id, "annotator": annotator, **place, "label": label})
    write_csv(folder / "annotations.csv", rows, ("sample_id", "annotator", "x_px", "y_px", "label"))


def _write_systems(folder: Path, seen: Sequence[_Seen], rng: np.random.Generator) -> None:
    """Three systems: one that predicts fixations, one that predicts saliency maps, one that gives labels alone."""
    answers = [("context-net", 0.80), ("saliency-net", 0.70), ("face-sdk", 0.72)]
    for name, skill in answers:
        rows = [{"sample_id": s.sample.sample_id, **_answer(s.sample.label, skill, rng)} for s in seen]
        write_csv(folder / f"{name}.csv", rows, ("sample_id", "pred", *(f"p_{label}" for label in LABELS)))
    fixations = []
    for s in seen:
        # In a share of the samples it misses more of the looks, so that FCC has something to tell apart.
        misses = rng.choice([0.0, 0.2, 0.6])
        for x, y, duration in s.looks:
            away = rng.random() < misses
            dx, dy = rng.normal(0, 160 if away else 22, size=2)
            place = {"x_px": _inside(x + dx, WIDTH), "y_px": _inside(y + dy, HEIGHT)}
            fixations.append({"sample_id": s.sample.sample_id, **place, "duration_ms": duration})
        name = f"{s.sample.sample_id}.png"
        _write_picture(folder / "saliency-net" / name, _map(s.things, rng), [cv2.IMWRITE_PNG_COMPRESSION, 3])
    write_csv(folder / "context-net_fixations.csv", fixations, ("sample_id", "x_px", "y_px", "duration_ms"))


def _answer(label: str, skill: float, rng: np.random.Generator) -> dict[str, Any]:
    evidence = rng.gamma(0.5, 1.0, size=len(LABELS))
    right = label if rng.random() < skill else str(rng.choice([other for other in LABELS if other != label]))
    evidence[LABELS.index(right)] += evidence.max() + rng.gamma(1.0, 1.0)
    p = np.round(evidence / evidence.sum(), 4)
    return {"pred": right, **{f"p_{name}": float(v) for name, v in zip(LABELS, p, strict=True)}}


def _map(things: Sequence[Thing], rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    values = np.zeros((HEIGHT // 8, WIDTH // 8))
    for thing, weight in zip(things, (1.0, *rng.uniform(0.3, 0.9, len(things) - 1)), strict=True):
        x, y = np.array([thing.x_px, thing.y_px]) / 8 + rng.normal(0, 3, size=2)
        dx, dy = np.arange(values.shape[1]) - x, np.arange(values.shape[0])[:, None] - y
        values += weight * np.exp(-(dx**2 + dy**2) / (2 * 5.0**2))
    values = cv2.resize(values / values.max(), (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    return np.round(255 * values).astype(np.uint8)


def _inside(value: float, size: int) -> float:
    return float(np.round(np.clip(value, 0, size - 1), 2))


def _write_picture(path: Path, picture: npt.NDArray[np.uint8], options: list[int]) -> None:
    write_atomic(path, cv2.imencode(path.suffix, picture, options)[1].tobytes())


_EVALUATION = """\
# python -m host_tools evaluate evaluate.toml -o RESULTS
dataset = "."
split = "test"
baseline = "face-sdk"
temporal_window_s = 20

[[systems]]
name = "context-net"
predictions = "predictions/context-net.csv"
fixations = "predictions/context-net_fixations.csv"

[[systems]]
name = "saliency-net"
predictions = "predictions/saliency-net.csv"
maps = "predictions/saliency-net"

[[systems]]
name = "face-sdk"
predictions = "predictions/face-sdk.csv"

[[systems]]
name = "probe"          # a linear probe on the scene embedding, fitted on the train split; attends by its class maps
kind = "probe"

[patterns]              # what the annotators call the regions that emotion patterns speak of
threat = ["spider", "thorns"]
exit = ["house"]
repellent = ["slime"]

[sweeps]
window = ["20%", "25%", "30%", "100px"]
embedding = ["raw", "centred", "pca:16"]
weights = ["merged", "fixed", "doc-3.2", "doc-5.2"]
hz = [30, 60, 120]
"""
