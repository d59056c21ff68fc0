"""Stills and folders of pictures: orientation, channels, order, rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge.capture import open_capture
from edge.capture.images import list_pictures, read_picture
from edge.config import SceneConfig
from edge.errors import SourceError

LEFT_WHITE = np.zeros((24, 40, 3), np.uint8)
LEFT_WHITE[:, :20] = 255


def write(path: Path, image: np.ndarray) -> Path:
    assert cv2.imwrite(str(path), image)
    return path


def with_orientation(path: Path, orientation: int) -> Path:
    """Put a minimal EXIF block with an orientation tag behind a JPEG's first marker."""
    data = path.read_bytes()
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + bytes([0, orientation]) + b"\0\0\0\0\0\0"
    block = b"Exif\0\0" + tiff
    path.write_bytes(data[:2] + b"\xff\xe1" + (len(block) + 2).to_bytes(2, "big") + block + data[2:])
    return path


@pytest.mark.parametrize(
    ("orientation", "shape", "white"),
    [
        pytest.param(1, (24, 40), np.s_[:, :16], id="upright"),
        pytest.param(3, (24, 40), np.s_[:, 24:], id="half-turn"),
        pytest.param(6, (40, 24), np.s_[:16], id="quarter-turn"),
        pytest.param(8, (40, 24), np.s_[24:], id="quarter-turn-back"),
    ],
)
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int, shape: tuple[int, int], white: Any) -> None:
    path = with_orientation(write(tmp_path / "a.jpg", LEFT_WHITE), orientation)
    image = read_picture(path).image
    assert image.shape[:2] == shape
    assert image[white].min() > 240


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(LEFT_WHITE[:, :, 0], id="gray"),
        pytest.param(LEFT_WHITE[:, :, :1], id="gray-x1"),
        pytest.param(LEFT_WHITE.astype(np.uint16) * 257, id="16-bit"),
    ],
)
def test_other_kinds_of_pixels_become_bgr(tmp_path: Path, image: np.ndarray) -> None:
    picture = read_picture(write(tmp_path / "a.png", image))
    assert picture.alpha is None
    assert (picture.image == LEFT_WHITE).all()


@pytest.mark.parametrize("scale", [pytest.param(1, id="8-bit"), pytest.param(257, id="16-bit")])
def test_alpha_is_kept_apart(tmp_path: Path, scale: int) -> None:
    alpha = (np.arange(24 * 40) % 256).astype(np.uint8).reshape(24, 40)
    full = np.dstack([LEFT_WHITE, alpha])
    image = full if scale == 1 else full.astype(np.uint16) * 257
    picture = read_picture(write(tmp_path / "a.png", image))
    assert picture.alpha is not None
    assert (picture.alpha == alpha).all()
    assert (picture.image == LEFT_WHITE).all()


def test_a_folder_plays_in_natural_order_at_its_rate(tmp_path: Path) -> None:
    for name in ("p10.png", "p2.png", "p1.png"):
        write(tmp_path / name, LEFT_WHITE)
    (tmp_path / "notes.txt").write_text("no picture")
    assert [p.name for p in list_pictures(tmp_path)] == ["p1.png", "p2.png", "p10.png"]
    with open_capture(SceneConfig(source=str(tmp_path), rate_hz=4), "scene") as source:
        frames = list(iter(source.read, None))
        assert [f.t_ns for f in frames] == [0, 250_000_000, 500_000_000]
        assert source.ended


def test_one_still_needs_no_rate(tmp_path: Path) -> None:
    with open_capture(SceneConfig(source=str(write(tmp_path / "a.png", LEFT_WHITE))), "scene") as source:
        frame = source.read()
        assert frame is not None
        assert (frame.t_ns, source.read()) == (0, None)


def test_several_pictures_without_a_rate_are_refused(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        write(tmp_path / name, LEFT_WHITE)
    with pytest.raises(SourceError, match=r"set scene\.rate_hz"):
        open_capture(SceneConfig(source=str(tmp_path)), "scene")


def test_a_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.png", LEFT_WHITE)
    write(tmp_path / "b.png", LEFT_WHITE[:10])
    with open_capture(SceneConfig(source=str(tmp_path), rate_hz=1), "scene") as source:
        source.read()
        with pytest.raises(SourceError, match=r"another size.*\(40, 24\)"):
            source.read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"no picture", "can't be read as a picture", id="text"),
        pytest.param(b"", "can't be read as a picture", id="empty"),
        pytest.param(None, "no such file", id="missing"),
    ],
)
def test_a_bad_still_is_refused_by_name(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "a.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=message) as error:
        open_capture(SceneConfig(source=str(path)), "scene")
    assert str(path) in str(error.value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no pictures"):
        open_capture(SceneConfig(source=str(tmp_path), rate_hz=1), "scene")
