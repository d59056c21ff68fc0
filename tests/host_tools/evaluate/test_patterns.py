"""Emotion patterns of a small data set whose numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from host_tools.datasets import layout
from host_tools.evaluate import patterns
from host_tools.evaluate.config import EvaluateConfig, PatternConfig, SystemConfig
from host_tools.evaluate.looks import Looks
from host_tools.evaluate.run import Evaluation

LABELS = ("angry", "fear", "disgust", "happy")
SIZE = (128, 64)
ANNOTATIONS = """sample_id,annotator,x_px,y_px,label
0,A,20,20,snake
0,A,100,40,Exit
0,A,60,50,slime
0,B,21,20,snake
0,B,100,41,window
"""


def looks(*places: tuple[float, float], ms: float = 200.0, pupil: float = float("nan")) -> Looks:
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    return Looks(x, y, np.arange(len(x)) * (ms + 100), np.full(len(x), ms), SIZE, pupil_change_mm=pupil)


@pytest.fixture
def state(tmp_path: Path) -> Evaluation:
    half = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    half[:, 64:] = (0, 0, 255)  # the right half is red: bright and saturated; the left one is black
    cv2.imwrite(str(tmp_path / "p.png"), half)
    cv2.imwrite(str(tmp_path / "q.png"), 255 - half)
    samples = [layout.Sample(str(i), f"P{i}", label, media="p.png") for i, label in enumerate(LABELS)]
    samples.append(layout.Sample("4", "P4", "happy", media="q.png"))
    layout.write(tmp_path, layout.DatasetInfo(name="x", labels=",".join(LABELS)), samples)
    (tmp_path / "annotations.csv").write_text(ANNOTATIONS)
    kinds = PatternConfig(threat=("snake",), repellent=("slime",))
    system = SystemConfig(name="s", predictions="p.csv")
    evaluation = Evaluation(
        EvaluateConfig(dataset=".", systems=(system,), cluster_px=10.0, patterns=kinds), tmp_path, tmp_path / "out"
    )
    evaluation.__dict__["looks"] = [
        looks((20, 20), (22, 20), pupil=0.1),
        looks((20, 20), (100, 40), (20, 21), (3, 3), pupil=0.3),
        looks((60, 50), (3, 3)),
        looks((120, 10), (120, 50)),
        looks(),
    ]
    return evaluation


def test_patterns_of_the_samples(state: Evaluation) -> None:
    found = patterns.of_samples(state)
    assert found["angry"][:4].tolist() == [1.0, 0.5, 0.0, 0.0]
    # "Exit" and "window" are named once each: the first in the alphabet names the place.
    assert found["fear"][:2].tolist() == [0.0, 1.0]
    assert np.isnan(found["fear"][2:]).all()  # the picture has both kinds, but fewer than two looks go there
    area = np.pi * 10**2 / (128 * 64)  # a disc of 10 px around the slime
    assert found["disgust"][[0, 2]] == pytest.approx([1.0, area / (area + 0.5)], rel=0.05)
    # Half of all pixels are black: percentile 1/4; the others 3/4.
    assert found["happy"][[0, 3]] == pytest.approx([0.25, 0.75])
    assert np.isnan([values[4] for values in found.values()]).all()  # nobody looked
    assert np.isfinite(found["surprise"]).tolist() == [True, True, False, False, False]  # no pupil in the others
    assert np.isfinite(found["sad"]).tolist() == [True] * 4 + [False]


def test_each_is_held_against_its_label(state: Evaluation) -> None:
    rows = {row["emotion"]: row for row in patterns.emotion_patterns(state)}
    assert (rows["angry"]["n"], rows["angry"]["n_with_label"], rows["angry"]["auc"]) == (4, 1, 1.0)
    assert rows["angry"]["mean_without"] == pytest.approx(0.5 / 3)
    assert rows["fear"]["ci95"] == (1.0, 1.0)
    assert np.isnan(rows["surprise"]["auc"])
    header, first = (state.out / "patterns.csv").read_text().splitlines()[:2]
    assert header == "sample_id,happy,sad,angry,fear,surprise,disgust"
    assert first.startswith("0,0.25,")


def test_without_annotations_it_says_what_is_needed(state: Evaluation) -> None:
    (state.base / "annotations.csv").unlink()
    rows = {row["emotion"]: row for row in patterns.emotion_patterns(state)}
    assert (rows["angry"]["n"], rows["angry"]["reason"]) == (0, patterns.NEEDS["angry"])
