"""The evidence of single scores on a run's page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from pixel_model import PixelModel

from edge.config import ScoreConfig, load, to_dict
from edge.environment import store
from edge.environment_build import View, build, keep_covered
from edge.events import features_to_plain
from edge.features import Embedder
from edge.records import Event, Features
from host_tools.report import evidence
from host_tools.report.page import Section

SIZE = (160, 120)


def event(i: int, fcc: float, reason: str = "") -> Event:
    manifest = PixelModel().manifest
    vector = np.arange(12, dtype=np.float32) * (i + 1)
    score = {
        **{"fcc_now": fcc, "sim_local": 0.5, "sim_global": 0.25, "alpha": 0.7, "beta": 0.3, "window_px": 30},
        **{
            "weights": "fixed",
            "weights_emotion": "",
            "reason": reason,
            "precision": "fp32",
            "model_id": manifest.model_id,
        },
    }
    features = Features(i, i, vector, vector, manifest.model_id, "fp32")
    payload = {
        **{"frame_id": i, "gaze": [], "emotion": None, "fixation": {"x_px": 80.0, "y_px": 60.0}, "score": score},
        "features": features_to_plain(features),
    }
    return Event(i, i * 40_000_000, 0, "score", payload)


def test_the_lowest_the_highest_and_ranks_between() -> None:
    values = [0.5, 0.9, 0.1, 0.7, 0.3, 0.6, 0.8]
    scores = [*(event(i, v) for i, v in enumerate(values)), event(7, 0.0, "no_fixation")]
    # by rank: 0.1 0.3 0.5 0.6 0.7 0.8 0.9; ranks 0, 2, 4 and 6
    assert evidence.choose(scores) == [0, 1, 2, 3]
    assert evidence.choose(scores[:1]) == [0]
    assert evidence.choose([event(0, 0.0, "stale")]) == []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, Path]:
    """A run's header and redacted video; the embedder is the one that can be worked out by hand."""
    model = PixelModel()
    view = np.random.default_rng(1).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    views = keep_covered([View("front", view)], lambda image: image // 2)
    embedder = Embedder(model, ScoreConfig())
    store(tmp_path / "environment", [build(embedder, views, ScoreConfig(), measured=False)])
    writer = cv2.VideoWriter(str(tmp_path / "redacted.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 25, SIZE)
    for _ in range(5):
        writer.write(view)
    writer.release()
    monkeypatch.setattr(evidence, "open_model", lambda name, models: model)
    config = to_dict(load(overrides=[f"environment.cache='{tmp_path / 'environment'}'"]))
    return {"environment": {"pixels": {}}, "config": config}, tmp_path / "redacted.mp4"


def page(scores: list[Event], header: dict, video: Path) -> str:
    section = Section("evidence")
    evidence.add_evidence(section, scores, header, partial(evidence.video_pictures, video))
    return "".join(section.parts)


def test_windows_maps_and_neighbours_are_shown(run: tuple[dict, Path]) -> None:
    html = page([event(i, 0.5 + i / 100) for i in range(5)], *run)
    assert html.count("<h3>") == 4 + 1  # and the table of each score
    for caption in ("looked at", "loss of similarity", "most similar, in front"):
        assert html.count(f'alt="{caption}') == 4
    assert "The weights are the fixed ones" in html


def test_without_a_video_the_figures_remain(run: tuple[dict, Path]) -> None:
    html = page([event(0, 0.5)], run[0], run[1].with_name("none.mp4"))
    assert "neighbour in front" in html and "loss of similarity" not in html


def test_a_cache_that_is_gone_is_said(run: tuple[dict, Path]) -> None:
    gone = {**run[0], "environment": {"nowhere": {}}}
    assert "no longer here" in page([event(0, 0.5)], gone, run[1])


def test_a_run_without_environment_or_scores_is_said(run: tuple[dict, Path]) -> None:
    assert "no environment" in page([event(0, 0.5)], {**run[0], "environment": None}, run[1])
    assert "No score is defined" in page([event(0, 0.5, "stale")], *run)
