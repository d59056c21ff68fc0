"""`python -m host_tools report SESSION`: what each score of an encrypted session rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pixel_model import PixelModel

from edge.config import ScoreConfig, load, to_dict
from edge.environment import store
from edge.environment_build import View, build, keep_covered
from edge.errors import RecordingError
from edge.events import features_to_plain
from edge.features import Embedder
from edge.records import Event, Features, RedactedFrame
from edge.session.layout import sessions
from host_tools.report import evidence
from host_tools.report.session_page import build_page

VIEW = np.random.default_rng(1).integers(0, 255, (120, 160, 3), dtype=np.uint8)


def header(environment: Path) -> dict:
    return {
        **{"schema": "emogaze.events", "version": 1, "emogaze": "0", "python": "3", "models": []},
        **{"scene": {"width": 160, "height": 120, "source": "clip"}, "gaze": {"simulated": False}},
        **{"environment": {"pixels": {}}, "config": to_dict(load(overrides=[f"environment.cache='{environment}'"]))},
    }


def score(i: int) -> dict:
    vector, model_id = np.arange(12, dtype=np.float32) * (i + 1), PixelModel().manifest.model_id
    return {
        **{"frame_id": i, "gaze": [[i, i, 80, 60, 1.0, i > 0, None, None]], "gaze_px": [80, 60], "emotion": None},
        **{"fixation": {"x_px": 80.0, "y_px": 60.0}, "faces": []},
        "features": features_to_plain(Features(i, i, vector, vector, model_id, "fp32")),
        "score": {
            **{"fcc_now": 0.5 + i / 10, "fcc": 0.5, "sim_local": 0.5, "sim_global": 0.25, "alpha": 0.7, "beta": 0.3},
            **{"weights": "fixed", "weights_emotion": "", "reason": "", "precision": "fp32", "model_id": model_id},
            **{"window_px": 30, "region": "desk", "frame_age_ns": 4_000_000},
        },
    }


def record(study, environment: Path, *purposes: str) -> Path:
    with study.open(consent=str(study.consent(*purposes))) as sink:
        sink.event(Event(0, 0, 0, "session", header(environment)))
        for i in range(3):
            sink.event(Event(i + 1, i * 40_000_000, 0, "score", score(i)))
            sink.picture(RedactedFrame(i, i * 40_000_000, VIEW, "cam", "scene", ()))
            payload = {"frame_id": i, "withheld": False, "reason": "", "faces": [{"covered": True}]}
            sink.event(Event(i + 4, i * 40_000_000, 0, "picture", payload))
    return sessions(study.recordings)[-1].folder


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    views = keep_covered([View("front", VIEW)], lambda image: image // 2)
    cache = build(Embedder(PixelModel(), ScoreConfig()), views, ScoreConfig(), measured=False)
    store(tmp_path / "environment", [cache])
    monkeypatch.setattr(evidence, "open_model", lambda name, models: PixelModel())
    return tmp_path / "environment"


def test_each_score_says_what_it_rests_on(study, environment: Path) -> None:
    html = build_page(record(study, environment), study.identity, shown=0).render()
    for caption in ("looked at", "loss of similarity", "most similar, in front"):
        assert html.count(f'alt="{caption}') == 3
    assert html.count("<td>desk</td><td>front</td>") == 3
    assert "1 of 1 gaze samples of this frame were invalid" in html
    assert "3 of 3" in html  # faces covered
    assert "no decision about a person should rest on them alone" in html


def test_scores_alone_are_explained_as_far_as_consent_goes(study, environment: Path) -> None:
    html = build_page(record(study, environment, "scores"), study.identity).render()
    assert "The recording&#x27;s consent left out: gaze, fixation, features." in html
    assert html.count("<td>desk</td>") == 3
    assert "looked at</figcaption>" not in html


def test_a_session_needs_an_identity(study, environment: Path) -> None:
    with pytest.raises(RecordingError, match="name a study identity"):
        build_page(record(study, environment), None)
