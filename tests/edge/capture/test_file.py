"""Clips: real presentation times, rotation, and what is said of odd ones."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from edge.capture import open_capture
from edge.capture.base import FrameSource
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.records import Frame

MS = 1_000_000


def write_clip(
    path: Path, times_ms: list[int], *, width: int = 64, height: int = 32, pix_fmt: str = "yuv420p", noise: int = 0
) -> Path:
    """Pictures whose left half is white and whose gray level on the right counts them."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
        stream.codec_context.time_base = Fraction(1, 1000)
        for index, time in enumerate(times_ms):
            image = np.full((height, width, 3), 20 * index, np.uint8)
            image[:, : width // 2] = 255
            image -= rng.integers(0, noise + 1, image.shape, np.uint8)
            picture = av.VideoFrame.from_ndarray(image, format="bgr24")
            picture.pts, picture.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def turn(path: Path, matrix: tuple[int, int, int, int]) -> None:
    """Write a rotation (a, b, c, d of the display matrix) into an MP4's track header."""
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4 + 40  # version 0: the matrix stands 40 bytes into the box's content
    a, b, c, d = (v << 16 for v in matrix)
    data[start : start + 20] = struct.pack(">5i", a, b, 0, c, d)
    path.write_bytes(data)


def frames(source: FrameSource) -> list[Frame]:
    return list(iter(source.read, None))


def open_clip(path: Path, *, start_s: float = 0.0, end_s: float = 0.0) -> FrameSource:
    return open_capture(SceneConfig(source=str(path), start_s=start_s, end_s=end_s), "scene")


def test_real_times_are_used_and_an_irregular_rate_is_flagged(tmp_path: Path) -> None:
    with open_clip(write_clip(tmp_path / "a.mp4", [0, 33, 100, 110])) as source:
        assert [f.t_ns for f in frames(source)] == [0, 33 * MS, 100 * MS, 110 * MS]
        assert source.ended
        assert "irregular rate: steps of 10.0 to 67.0 ms" in source.info.note


def test_a_regular_clip_has_nothing_to_note_and_starts_at_0(tmp_path: Path) -> None:
    with open_clip(write_clip(tmp_path / "a.mp4", [500, 540, 580])) as source:
        seen = frames(source)
        assert [f.t_ns for f in seen] == [0, 40 * MS, 80 * MS]
        assert [f.frame_id for f in seen] == [0, 1, 2]
        assert source.info.note == ""


@pytest.mark.parametrize(
    ("matrix", "white"),
    [
        pytest.param((0, 1, -1, 0), "top", id="quarter-turn-clockwise"),
        pytest.param((-1, 0, 0, -1), "right", id="half-turn"),
        pytest.param((0, -1, 1, 0), "bottom", id="quarter-turn-counter-clockwise"),
        pytest.param((1, 0, 0, 1), "left", id="upright"),
    ],
)
def test_a_clip_is_turned_as_its_container_says(tmp_path: Path, matrix: tuple[int, int, int, int], white: str) -> None:
    path = write_clip(tmp_path / "a.mp4", [0, 40, 80])
    turn(path, matrix)
    with open_clip(path) as source:
        image = frames(source)[0].image
        size = (source.info.width, source.info.height)
    assert size == (image.shape[1], image.shape[0]) == ((64, 32) if white in {"left", "right"} else (32, 64))
    halves = {
        "top": image[: image.shape[0] // 2],
        "bottom": image[image.shape[0] // 2 :],
        "left": image[:, : image.shape[1] // 2],
        "right": image[:, image.shape[1] // 2 :],
    }
    assert max(halves, key=lambda name: halves[name].mean()) == white


def test_start_and_end_keep_the_clips_own_times_and_numbers(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", [0, 40, 80, 120])
    with open_clip(path, start_s=0.04, end_s=0.12) as source:
        assert [(f.frame_id, f.t_ns) for f in frames(source)] == [(1, 40 * MS), (2, 80 * MS)]


@pytest.mark.parametrize("pix_fmt", ["gray", "yuv420p10le", "yuv444p"])
def test_gray_and_ten_bit_clips_come_as_bgr(tmp_path: Path, pix_fmt: str) -> None:
    with open_clip(write_clip(tmp_path / "a.mp4", [0, 40], pix_fmt=pix_fmt)) as source:
        image = frames(source)[0].image
    assert image.shape == (32, 64, 3)
    assert image[:, :24].min() > 240
    assert image[:, 40:].max() < 15


def test_odd_sizes_are_read(tmp_path: Path) -> None:
    with open_clip(write_clip(tmp_path / "a.mp4", [0], width=63, height=31, pix_fmt="yuv444p")) as source:
        assert frames(source)[0].image.shape == (31, 63, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"this is no clip" * 100, "can't be read as a clip", id="text"),
    ],
)
def test_a_bad_clip_is_refused_by_name(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "bad.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=message) as error:
        open_clip(path)
    assert str(path) in str(error.value)


def test_a_clip_without_pictures_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
        container.mux(stream.encode(None))
    with pytest.raises(SourceError, match="no video stream"):
        open_clip(path)


def test_a_part_in_which_nothing_lies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="between start_s and end_s"):
        open_clip(write_clip(tmp_path / "a.mp4", [0, 40]), start_s=5)


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(SourceError, match="is no clip"):
        open_capture(SceneConfig(source="nothing-here.xyz"), "scene")


def test_declared_and_decoded_pictures_are_both_said(data: Path) -> None:
    with open_clip(data / "faces" / "no_face_caminandes.mp4") as source:
        assert source.info.n_frames == 98
        assert len(frames(source)) == 95
        assert "98 pictures declared, 95 decoded" in source.info.note


def test_a_clip_that_was_cut_says_what_it_lacks(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mkv", list(range(0, 3000, 250)), noise=15)
    clip.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    with open_clip(clip) as source:
        assert len(frames(source)) < 12
        assert "2.8 s declared, " in source.info.note


def test_real_clip_times(data: Path) -> None:
    with open_clip(data / "faces" / "WolfgangLanger_Pexels.mp4", end_s=0.1) as source:
        assert [f.t_ns for f in frames(source)] == [0, 41_708_333, 83_416_667]  # 24000/1001 Hz
