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
