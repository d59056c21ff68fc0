"""The pieces of live capture that need no process: ring, pixels, multipart, lateness, names."""

from __future__ import annotations

import io

import numpy as np
import pytest

from edge.capture._pixels import to_bgr
from edge.capture._ring import Ring
from edge.capture.base import public_name
from edge.capture.http import read_parts
from edge.capture.rtsp import Lateness
from edge.errors import SourceError


def image(value, height=4, width=6):
    return np.full((height, width, 3), value, np.uint8)


def test_ring_gives_the_newest_once():
    ring = Ring.create()
    assert ring.newest(-1) is None
    ring.allocate(image(0).nbytes)
    assert ring.newest(-1) is None
    for k in range(7):
        assert ring.write(image(k), k, 10 * k, 5 * k)
    picture = ring.newest(-1)
    assert picture is not None
    assert (picture.frame_id, picture.t_ns, picture.changed_ns) == (6, 60, 30)
    assert (picture.image == 6).all()
    assert ring.newest(6) is None
    ring.close()


def test_ring_takes_smaller_pictures_and_refuses_larger_ones():
    ring = Ring.create()
    ring.allocate(image(0, 100, 100).nbytes)
    assert ring.write(image(1, 50, 60), 0, 0, 0)
    newest = ring.newest(-1)
    assert newest is not None and newest.image.shape == (50, 60, 3)
    assert not ring.write(image(1, 300, 300), 1, 0, 0)
    ring.close()


@pytest.mark.parametrize(
    ("given", "bits", "pixel"),
    [
        (np.full((2, 3), 7, np.uint8), 0, (7, 7, 7)),
        (np.full((2, 3, 1), 7, np.uint8), 0, (7, 7, 7)),
        (np.tile(np.array([1, 2, 3], np.uint8), (2, 3, 1)), 0, (1, 2, 3)),
        (np.tile(np.array([1, 2, 3, 4], np.uint8), (2, 3, 1)), 0, (1, 2, 3)),
        (np.full((2, 3), 1023, np.uint16), 10, (255, 255, 255)),
        (np.full((2, 3), 512, np.uint16), 10, (128, 128, 128)),
        (np.full((2, 3), 0x1234, np.uint16), 16, (0x12, 0x12, 0x12)),
    ],
    ids=["gray", "gray with an axis", "bgr", "bgra", "10 bits white", "10 bits half", "16 bits"],
)
def test_pixels_become_bgr(given, bits, pixel):
    result = to_bgr(given, "camera", bits)
    assert result.shape == (2, 3, 3) and result.dtype == np.uint8
    assert (result == pixel).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((2, 3), np.uint16), "cam: gives 16-bit pictures of unknown depth.*pixel_format"),
        (np.zeros((2, 3), np.float32), "cam: .*can't be used.*float32"),
        (np.zeros((2, 3, 2), np.uint8), r"cam: .*can't be used.*\(2, 3, 2\)"),
    ],
    ids=["depth unknown", "floats", "two channels"],
)
def test_pixels_that_cannot_be_used_are_named(given, said):
    with pytest.raises(SourceError, match=said):
        to_bgr(given, "cam")


@pytest.mark.parametrize(
    ("stream", "bodies"),
    [
        (b"--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b\r\nContent-Length: 2\r\n\r\nde\r\n", [b"abc", b"de"]),
        (b"--b\r\nContent-Type: x\r\n\r\nab\nc\r\n--b\r\n\r\nde\r\n--b--", [b"ab\nc", b"de"]),
        (b"preamble\r\n--b\r\ncontent-length:3\r\n\r\nabc", [b"abc"]),
        (b"--b\r\nContent-Length: 30\r\n\r\nabc", []),
        (b"--b\r\n\r\nabc", []),
        (b"", []),
    ],
    ids=["with length", "without length", "after a preamble", "cut", "cut without length", "empty"],
)
def test_multipart_bodies(stream, bodies):
    assert list(read_parts(io.BytesIO(stream), b"b")) == bodies


def test_multipart_body_has_a_bound():
    with pytest.raises(ValueError, match="a picture of 99999999999 bytes"):
        list(read_parts(io.BytesIO(b"--b\r\nContent-Length: 99999999999\r\n\r\n"), b"b"))


def test_lateness_after_a_pause():
    """Pictures every 33 ms that take 20 ms; then a pause of 300 ms after which three come at once."""
    ms = 1_000_000
    lateness = Lateness()
    assert [lateness.add(pts * ms, (pts + 20) * ms) for pts in (0, 33, 67)] == [0, 0, 0]
    assert [lateness.add(pts * ms, 420 * ms) // ms for pts in (100, 133, 400)] == [300, 267, 0]


def test_lateness_forgets_what_is_half_a_minute_old():
    """A stream whose clock runs 0.1 % slow must not be late for ever: 29 intervals of 1.001 s fit into 30 s."""
    s = 1_000_000_000
    lateness = Lateness()
    late = [lateness.add(t * s, t * s + t * s // 1000) for t in range(0, 200)]
    assert max(late) == 29 * s // 1000


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("rtsp://admin:secret@10.0.0.7:554/ch1?token=1", "rtsp://10.0.0.7:554/ch1"),
        ("http://10.0.0.7/", "http://10.0.0.7/"),
        ("gst:rtspsrc location=rtsp://me:pw@h/x ! decodebin", "gst:rtspsrc location=rtsp://h/x ! decodebin"),
        ("session:rec/s?identity=study.txt", "session:rec/s?identity=study.txt"),
        ("/dev/video0", "/dev/video0"),
        ("csi://0", "csi://0"),
    ],
)
def test_names_show_no_credentials(source, shown):
    assert public_name(source) == shown


def test_what_begins_like_a_url_and_is_none_is_told_without_its_password():
    with pytest.raises(SourceError, match=r"^http://\[::1: is no address: Invalid IPv6 URL"):
        public_name("http://me:secret@[::1")
