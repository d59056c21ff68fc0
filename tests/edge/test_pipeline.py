"""The score recipe, told as a short story: what the stages give is scripted, the order and the rules are real."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edge.adaptive import Embedded
from edge.config import Config, GovernorConfig, load
from edge.environment import Environments
from edge.governor import Governor, Spent
from edge.ladder import Ladder, Rung
from edge.pipeline import ScorePipeline, Step, fixated_face, largest_face
from edge.records import NAN, Emotion, Face, Features, Fixation, Frame, GazeSample, RawGaze, Subject, Telemetry

MS = 1_000_000


class Scripted:
    """Stages that note what they were asked for."""

    def __init__(self, faces: list[Face], label: str = "happy") -> None:
        self.calls: list[str] = []
        self._faces, self._label = faces, label

    def faces(self, frame: Frame) -> list[Face]:
        self.calls.append("faces")
        return self._faces

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        self.calls.append("embed" if not rung else f"embed:{rung}")
        one = np.ones(4, np.float32)
        return Embedded(Features(frame.frame_id, frame.t_ns, one, one, "model", "fp32"))

    def emotion(self, frame: Frame, face: Face | None, subject: Subject) -> Emotion | None:
        self.calls.append(f"emotion:{subject}:{face.score if face else None}")
        if face is None:
            return Emotion(frame.t_ns, subject, "", {}, "model", "no_face")
        return Emotion(frame.t_ns, subject, self._label, {self._label: 1.0}, "model")


def mapping(raw: RawGaze) -> GazeSample:
    return GazeSample(raw.seq, raw.t_ns, raw.x, raw.y, raw.x / 30, raw.y / 30, raw.confidence, raw.valid)


def frame(t_ms: int) -> Frame:
    return Frame(t_ms, t_ms * MS, np.zeros((360, 640, 3), np.uint8), "test")


def steady(start_ms: int, end_ms: int, x: float = 100.0, y: float = 100.0) -> list[RawGaze]:
    return [RawGaze(t, t * MS, x, y) for t in range(start_ms, end_ms, 5)]


def scored(stages: Scripted, config: Config | None = None) -> Step:
    pipeline = ScorePipeline(config or load(), mapping, stages, None, gaze_hz=200)
    return pipeline.score(frame(300), steady(0, 350), now_ns=300 * MS)


def test_order_is_faces_embed_classify_score() -> None:
    stages = Scripted([Face((90, 90, 20, 20), 0.9)])
    step = scored(stages)
    assert stages.calls == ["faces", "embed", "emotion:fixated:0.9"]
    assert step.fixation is not None
    assert step.gaze_px == (100.0, 100.0)


def test_without_environment_the_score_is_undefined_and_says_so() -> None:
    score = scored(Scripted([])).score
    assert math.isnan(score.fcc_now) and math.isnan(score.fcc)
    assert score.reason == "no_environment"


def test_features_of_an_artefact_without_a_cache_are_undefined() -> None:
    pipeline = ScorePipeline(load(), mapping, Scripted([]), Environments([]), gaze_hz=200)
    assert pipeline.score(frame(300), steady(0, 350), now_ns=300 * MS).score.reason == "model_mismatch"


def test_the_governor_chooses_before_anything_is_embedded() -> None:
    rungs = (Rung(artefact="a", latency_ms=9, drift=0), Rung(artefact="b", latency_ms=3, drift=0.01))
    governor = Governor(Ladder(machine="test", rungs=rungs), GovernorConfig(min_side_px=360, dwell_s=0), 100.0)
    stages = Scripted([])
    pipeline = ScorePipeline(load(), mapping, stages, None, governor=governor, gaze_hz=200)
    known = {300: Telemetry(300 * MS, battery_percent=80), 400: Telemetry(400 * MS, battery_percent=20), 500: None}
    steps = [
        pipeline.score(frame(t), steady(t - 300 if t == 300 else t - 50, t + 50), now_ns=t * MS, telemetry=state)
        for t, state in known.items()
    ]
    assert [call for call in stages.calls if call.startswith("embed")] == ["embed", "embed:1", "embed:1"]
    assert [step.choice.reasons for step in steps if step.choice] == [(), ("battery",), ("battery",)]


def test_late_frames_are_told_to_the_governor() -> None:
    rungs = (Rung(artefact="a", latency_ms=9, drift=0), Rung(artefact="b", latency_ms=3, drift=0.01))
    governor = Governor(Ladder(machine="test", rungs=rungs), GovernorConfig(), 100.0)
    pipeline = ScorePipeline(load(), mapping, Scripted([]), None, governor=governor, gaze_hz=200)
    step = pipeline.score(frame(300), steady(0, 350), now_ns=300 * MS, spent=Spent(path_ms=101, embed_ms=50))
    assert step.choice is not None and (step.choice.rung, step.choice.reasons) == (1, ("deadline",))


def test_the_fixated_person_never_selects_weights() -> None:
    score = scored(Scripted([Face((90, 90, 20, 20), 0.9)])).score
    assert (score.alpha, score.beta, score.weights, score.weights_emotion) == (0.7, 0.3, "fixed", "")


def test_the_wearer_selects_weights() -> None:
    stages = Scripted([Face((90, 90, 20, 20), 0.5), Face((300, 90, 90, 90), 0.8)])
    score = scored(stages, load(overrides=["face_camera.source=scene"])).score
    assert stages.calls[-1] == "emotion:wearer:0.8"
    assert (score.alpha, score.beta, score.weights, score.weights_emotion) == (0.4, 0.6, "merged", "happy")


def test_a_face_camera_is_looked_at_instead_of_the_scene() -> None:
    stages = Scripted([Face((0, 0, 50, 50), 0.7)])
    pipeline = ScorePipeline(load(), mapping, stages, None, gaze_hz=200)
    pipeline.score(frame(300), steady(0, 350), now_ns=300 * MS, face_frame=frame(299))
    assert stages.calls == ["faces", "embed", "faces", "emotion:wearer:0.7"]


@pytest.mark.parametrize(
    ("gaze", "reason"),
    [
        pytest.param([], "no_gaze", id="none-at-all"),
        pytest.param(steady(0, 95), "stale", id="silent-for-longer-than-the-bound"),
        pytest.param([RawGaze(0, 0, NAN, NAN, 0.0, False)], "no_gaze", id="only-invalid"),
    ],
)
def test_no_score_without_fresh_gaze(gaze: list[RawGaze], reason: str) -> None:
    stages = Scripted([])
    pipeline = ScorePipeline(load(), mapping, stages, None, gaze_hz=200)
    step = pipeline.score(frame(300), gaze, now_ns=300 * MS)
    assert step.score.reason == reason
    assert step.fixation is None
    assert "embed" not in stages.calls


def test_ages_ride_on_the_score() -> None:
    pipeline = ScorePipeline(load(), mapping, Scripted([]), None, gaze_hz=200)
    score = pipeline.score(frame(300), steady(0, 285), now_ns=312 * MS).score
    assert score.frame_age_ns == 12 * MS
    assert score.gaze_age_ns == 20 * MS


def test_largest_and_fixated_face() -> None:
    small, large = Face((0, 0, 40, 40), 0.9), Face((0, 0, 100, 100), 0.8)
    fixation = Fixation(0, 0, 1, 10.0, 10.0, 0.0, 0.0, 0.1, 5, "ongoing")
    assert largest_face([small, large]) is large
    assert largest_face([]) is None
    assert fixated_face([large, small], fixation) is small
    assert fixated_face([large, small], None) is None


def test_a_withheld_picture_gives_its_reason_and_asks_no_network_but_for_faces() -> None:
    stages = Scripted([Face((90, 90, 20, 20), 0.9)])
    pipeline = ScorePipeline(load(), mapping, stages, None, gaze_hz=200)
    step = pipeline.score(frame(300), steady(0, 350), now_ns=300 * MS, withhold="stale")
    assert stages.calls == ["faces"]  # redaction needs them
    assert (step.score.reason, step.fixation, step.features, step.emotion) == ("stale", None, None, None)
    # the gaze was followed all the same: the next picture has its fixation
    assert pipeline.score(frame(360), steady(350, 400), now_ns=360 * MS).score.reason == "no_environment"


@pytest.mark.parametrize(
    ("ahead_ms", "reason"), [(90, "no_environment"), (110, "unsynchronised"), (15_000, "unsynchronised")]
)
def test_gaze_that_is_stamped_later_than_now_belongs_to_another_clock(ahead_ms: int, reason: str) -> None:
    """A picture waits 50 ms for its gaze and streams may be 50 ms apart: beyond 100 ms the stamps can't be ours."""
    pipeline = ScorePipeline(load(), mapping, Scripted([]), None, gaze_hz=200)
    pipeline.score(frame(200), steady(0, 200), now_ns=200 * MS)
    ahead = steady(200, 301 + ahead_ms)
    assert pipeline.score(frame(300), ahead, now_ns=300 * MS).score.reason == reason


def test_gaze_without_pictures_is_followed() -> None:
    pipeline = ScorePipeline(load(), mapping, Scripted([]), None, gaze_hz=200)
    samples, ended = pipeline.follow(steady(0, 500) + steady(530, 1000, x=400.0))
    assert len(samples) == 194 and len(ended) == 1
    assert ended[0].start_ns == 0 and ended[0].x_px == pytest.approx(100.0)
