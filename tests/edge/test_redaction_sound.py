"""What of a clip's sound is kept beside the part of it that is redacted."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import av
import numpy as np
import pytest

from edge.config import RedactConfig, SceneConfig
from edge.faces import FaceDetector
from edge.records import Face, Image
from edge.redaction import Detectors, redact_clip

HZ = 44_100


class NoFaces:
    """A detector that finds nothing."""

    def detect(self, image: Image, score: float) -> list[Face]:
        return []


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of pictures, and three of sound."""
    path = tmp_path_factory.mktemp("sound") / "clip.mp4"
    with av.open(str(path), "w") as container:
        video, audio = container.add_stream("libx264", rate=10), container.add_stream("aac", rate=HZ)
        video.width, video.height, video.pix_fmt, audio.layout = 64, 48, "yuv420p", "mono"
        for value in range(20):
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 10 * value, np.uint8), format="bgr24")
            container.mux(video.encode(picture))
        tone = av.AudioFrame.from_ndarray(np.zeros((1, 3 * HZ), np.float32), format="fltp", layout="mono")
        tone.sample_rate = HZ
        container.mux(audio.encode(tone))
        for stream in (video, audio):
            container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def late_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds of a container whose time doesn't begin at 0, with a click two seconds after the first picture."""
    path = tmp_path_factory.mktemp("late") / "clip.ts"
    sound = np.zeros((1, 3 * HZ), np.int16)
    sound[0, 2 * HZ : 2 * HZ + 2000] = 30_000
    with av.open(str(path), "w", format="mpegts") as container:
        video, audio = container.add_stream("libx264", rate=10), container.add_stream("mp2", rate=HZ)
        video.width, video.height, video.pix_fmt, audio.layout = 64, 48, "yuv420p", "mono"
        for i in range(30):
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 5 * i, np.uint8), format="bgr24")
            container.mux(video.encode(picture))
            piece = np.ascontiguousarray(sound[:, i * HZ // 10 : (i + 1) * HZ // 10])
            tone = av.AudioFrame.from_ndarray(piece, format="s16", layout="mono")
            tone.sample_rate, tone.pts = HZ, i * HZ // 10
            container.mux(audio.encode(tone))
        for stream in (video, audio):
            container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("start_s", [0.0, 1.5], ids=["whole", "a part"])
def test_the_sound_goes_with_the_pictures_whatever_the_container_calls_0(
    late_clip: Path, tmp_path: Path, start_s: float
) -> None:
    output, scene = tmp_path / "covered.mp4", SceneConfig(source=str(late_clip), start_s=start_s)
    redact_clip(scene, output, Detectors(cast(FaceDetector, NoFaces()), None), RedactConfig(), keep_audio=True)
    with av.open(str(output)) as container:
        sounds = [(float(frame.time or 0), np.abs(frame.to_ndarray()).max()) for frame in container.decode(audio=0)]
    loudest = max(volume for _, volume in sounds)
    assert next(t_s for t_s, volume in sounds if volume > loudest / 2) == pytest.approx(2 - start_s, abs=0.05)


@pytest.mark.parametrize(
    ("start_s", "end_s", "kept_s"),
    [
        pytest.param(0, 0, 3, id="all of it, though the last picture comes before its end"),
        pytest.param(1, 0, 2, id="nothing of what was skipped"),
        pytest.param(0, 1, 1, id="nothing of what follows"),
    ],
)
def test_the_sound_is_that_of_the_pictures(
    clip: Path, tmp_path: Path, start_s: float, end_s: float, kept_s: float
) -> None:
    output, scene = tmp_path / "covered.mp4", SceneConfig(source=str(clip), start_s=start_s, end_s=end_s)
    detectors = Detectors(cast(FaceDetector, NoFaces()), None)
    assert redact_clip(scene, output, detectors, RedactConfig(), keep_audio=True).audio == "kept"
    with av.open(str(output)) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) / HZ == pytest.approx(kept_s, abs=0.15)
