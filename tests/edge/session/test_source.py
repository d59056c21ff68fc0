"""A recorded session as camera and eye tracker of another run."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from edge.capture import open_capture
from edge.config import GazeConfig, SceneConfig
from edge.errors import SourceError
from edge.events import gaze_to_plain
from edge.gaze.sources import open_gaze
from edge.gaze.sources.base import GazeInfo
from edge.records import Event, RawGaze, RedactedFrame

START_NS = 5_000_000_000


@pytest.fixture
def source(study):
    """Three frames from 5 s of the device's clock on, two gaze samples each."""
    info = GazeInfo("tracker", "scene_norm", "norm", "bottom-left", live=True, hz_declared=60.0, device="serial 7")
    with study.open() as sink:
        sink.event(Event(0, 0, 0, "session", {"gaze": asdict(info), "geometry": {"screen": _screen()}}))
        for i in range(3):
            t = START_NS + i * 40_000_000
            samples = [RawGaze(2 * i + k, t + k * 1_000_000, 0.1 * i, 0.5) for k in range(2)]
            sink.event(Event(i, t, t, "score", {"gaze": gaze_to_plain(samples)}))
            sink.picture(RedactedFrame(i, t, np.full((16, 32, 3), 40 * i, np.uint8), "cam", "scene", ()))
    return f"session:{next(study.recordings.glob('*Z-*'))}?identity={study.identity}"


def _screen():
    return {"width_px": 1920, "height_px": 1080, "width_mm": 500.0, "height_mm": 280.0, "distance_mm": 600.0}


def test_pictures_start_at_zero_and_keep_their_numbers(source):
    with open_capture(SceneConfig(source=source), "scene") as frames:
        assert (frames.info.width, frames.info.height, frames.info.live) == (32, 16, False)
        read = [frames.read() for _ in range(3)]
        assert frames.ended
        assert frames.read() is None
    assert [(f.frame_id, f.t_ns) for f in read] == [(0, 0), (1, 40_000_000), (2, 80_000_000)]
    assert [int(f.image.mean()) for f in read] == [0, 40, 80]


def test_a_span_of_it(source):
    with open_capture(SceneConfig(source=source, start_s=0.03, end_s=0.08), "scene") as frames:
        assert frames.read().frame_id == 1
        assert frames.ended


def test_gaze_comes_as_its_source_declared_it(source):
    with open_gaze(GazeConfig(source=source)) as gaze:
        assert (gaze.info.frame, gaze.info.origin, gaze.info.hz_declared) == ("scene_norm", "bottom-left", 60.0)
        assert not gaze.info.live
        first = gaze.read_until(40_000_000)
        assert [(s.seq, s.t_ns) for s in first] == [(0, 0), (1, 1_000_000), (2, 40_000_000)]
        assert len(gaze.read_until(10**12)) == 3
        assert gaze.ended


def test_the_identity_may_come_from_the_environment(source, monkeypatch):
    bare, _, identity = source.partition("?identity=")
    with pytest.raises(SourceError, match="is encrypted"):
        open_capture(SceneConfig(source=bare), "scene")
    monkeypatch.setenv("EMOGAZE_IDENTITY", identity)
    open_capture(SceneConfig(source=bare), "scene").close()


def test_a_session_without_gaze_or_pictures_says_so(study):
    with study.open(consent=str(study.consent("scores"))) as sink:
        sink.event(Event(0, 0, 0, "score", {"frame_id": 1, "gaze": [[1, 2, 0.1, 0.1, 1.0, True, None, None]]}))
    text = f"session:{next(study.recordings.glob('*Z-*'))}?identity={study.identity}"
    with pytest.raises(SourceError, match="holds no gaze"):
        open_gaze(GazeConfig(source=text))
    with pytest.raises(SourceError, match="holds no pictures of the scene camera"):
        open_capture(SceneConfig(source=text), "scene")
