"""The video sink: what it writes is a fragmented H.264 clip with the pictures' own times."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np
import pytest

from edge.config import Config, SinksConfig
from edge.errors import SinkError
from edge.records import Frame, RedactedFrame
from edge.sinks.video import VideoSink, VideoWriter, open_sink

MS = 1_000_000


def picture(index: int, t_ms: int, size: tuple[int, int] = (64, 48)) -> RedactedFrame:
    image = np.full((size[1], size[0], 3), 20 * index, np.uint8)
    return RedactedFrame(index, t_ms * MS, image, "story", "scene", ())


def read(path: Path) -> list[tuple[int, int]]:
    """Times (ms) and gray levels of a clip."""
    with av.open(str(path)) as container:
        return [
            (round(float(f.pts * f.time_base) * 1000), round(float(f.to_ndarray(format="gray").mean())))
            for f in container.decode(video=0)
        ]


def test_pictures_keep_their_times(tmp_path: Path) -> None:
    path = tmp_path / "out" / "redacted.mp4"
    times = [0, 33, 100, 110]
    with VideoSink(path) as sink:
        for index, time in enumerate(times):
            sink.picture(picture(index, time))
        assert not path.exists()  # not until it is whole
    seen = read(path)
    assert [time for time, _ in seen] == times
    assert all(abs(level - 20 * index) <= 3 for index, (_, level) in enumerate(seen))
    assert list(path.parent.iterdir()) == [path]


def test_a_browser_plays_it(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with VideoSink(path) as sink:
        sink.picture(picture(0, 0, (33, 21)))
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height) == (34, 22)  # 4:2:0 has even sides
    assert b"moof" in path.read_bytes()


@pytest.mark.parametrize("height", [pytest.param(h, id=f"{h}px") for h in (48, 49, 50, 51)])
def test_colours_stay_where_they_are(tmp_path: Path, height: int) -> None:
    image = np.zeros((height, 66, 3), np.uint8)
    image[: height // 2, :33], image[height // 2 :, 33:] = (200, 40, 40), (40, 40, 200)
    with VideoSink(tmp_path / "a.mp4") as sink:
        sink.picture(RedactedFrame(0, 0, image, "story", "scene", ()))
    with av.open(str(tmp_path / "a.mp4")) as container:
        seen = next(container.decode(video=0)).to_ndarray(format="bgr24")[:height]
    assert np.abs(seen[4 : height // 2 - 4, 4:29].astype(int) - (200, 40, 40)).max() < 20
    assert np.abs(seen[height // 2 + 4 : -4, 37:62].astype(int) - (40, 40, 200)).max() < 20
    assert seen[4 : height // 2 - 4, 37:62].max() < 20


def test_an_unfinished_clip_is_readable_and_does_not_have_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    writer = VideoWriter(path)
    for index in range(90):
        writer.write(picture(index % 10, index * 33))
    part = tmp_path / "copy.mp4"
    part.write_bytes((tmp_path / "a.part.mp4").read_bytes())  # what a kill at this moment leaves
    assert len(read(part)) >= 30
    assert not path.exists()
    writer.close(whole=False)
    assert list(tmp_path.iterdir()) == [part]


@contextmanager
def file_limit(n_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond `n_bytes`: writes fail as on a full disk."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("keep", [pytest.param(False, id="dropped"), pytest.param(True, id="kept")])
def test_a_clip_that_the_disk_did_not_take_whole_does_not_get_the_name(tmp_path: Path, keep: bool) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (96, 128, 3), np.uint8)
    writer = VideoWriter(tmp_path / "a.mp4")
    with file_limit(4096):  # one fragment, that is written when the file ends
        for index in range(5):
            writer.write(RedactedFrame(index, index * 33 * MS, noise, "story", "scene", ()))
        with pytest.raises(SinkError, match="can't be finished"):
            writer.close(keep=keep)
    assert [path.name for path in tmp_path.iterdir()] == ["a.part.mp4"] * keep


def test_one_run_at_a_time_writes_a_clip(tmp_path: Path) -> None:
    with VideoSink(tmp_path / "a.mp4") as sink:
        sink.picture(picture(0, 0))
        with pytest.raises(SinkError, match="is being written by another run"):
            VideoWriter(tmp_path / "a.mp4")
    assert len(read(tmp_path / "a.mp4")) == 1


def test_only_a_redacted_picture_is_taken(tmp_path: Path) -> None:
    raw = Frame(0, 0, np.zeros((48, 64, 3), np.uint8), "story")
    with VideoSink(tmp_path / "a.mp4") as sink, pytest.raises(TypeError, match="RedactedFrame"):
        sink.picture(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        pytest.param(picture(1, 0), "doesn't follow", id="same-time"),
        pytest.param(picture(1, 40, (32, 48)), "doesn't follow", id="other-size"),
    ],
)
def test_a_picture_that_does_not_fit_is_refused(tmp_path: Path, second: RedactedFrame, message: str) -> None:
    with VideoSink(tmp_path / "a.mp4") as sink:
        sink.picture(picture(0, 0))
        with pytest.raises(SinkError, match=message):
            sink.picture(second)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("a.avi", "ends in .mp4", id="other-kind"),
        pytest.param("file/a.mp4", "can't be written", id="no-folder"),
    ],
)
def test_an_output_that_can_not_be_written_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(SinkError, match=message):
        VideoWriter(tmp_path / name)


def test_it_is_off_unless_a_path_is_set(tmp_path: Path) -> None:
    assert open_sink(Config(), {}) is None
    sink = open_sink(Config(sinks=SinksConfig(video=str(tmp_path / "a.mp4"))), {})
    assert sink is not None
    sink.close()
