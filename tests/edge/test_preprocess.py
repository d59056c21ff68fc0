"""The table-based filling equals plain arithmetic, in every layout and colour order."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge.manifest import TensorSpec
from edge.preprocess import fill_input, resize_smooth

PICTURE = np.random.default_rng(5).integers(0, 256, (30, 50, 3), dtype=np.uint8)
MEAN, SCALE = (10.0, 20.0, 30.0), (0.5, 0.25, 2.0)


@pytest.mark.parametrize("size", [(50, 30), (16, 8)], ids=["same size", "resized"])
@pytest.mark.parametrize("colour", ["RGB", "BGR"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_equals_arithmetic(layout: str, colour: str, size: tuple[int, int]) -> None:
    width, height = size
    expected = cv2.resize(PICTURE, size, interpolation=cv2.INTER_LINEAR)[..., :: -1 if colour == "RGB" else 1]
    expected = (expected.astype(np.float64) - MEAN) * SCALE
    shape = (3, height, width) if layout == "NCHW" else (height, width, 3)
    spec = TensorSpec(name="x", shape=(-1, *shape), layout=layout, colour=colour, mean=MEAN, scale=SCALE)
    batch = np.full((2, *shape), np.nan, dtype=np.float32)
    fill_input(PICTURE, spec, batch[1])
    got = batch[1].transpose(1, 2, 0) if layout == "NCHW" else batch[1]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert np.isnan(batch[0]).all()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_rectangle_of_an_item_is_filled_and_nothing_else(layout: str) -> None:
    shape = (3, 40, 60) if layout == "NCHW" else (40, 60, 3)
    spec = TensorSpec(name="x", shape=(-1, *shape), layout=layout, colour="BGR")
    item = np.full(shape, -1, dtype=np.float32)
    inside = item[:, 4:34, 6:56] if layout == "NCHW" else item[4:34, 6:56]
    fill_input(PICTURE, spec, inside)
    seen = item.transpose(1, 2, 0) if layout == "NCHW" else item
    np.testing.assert_array_equal(seen[4:34, 6:56], PICTURE)
    assert (seen == -1).all(axis=2).sum() == 40 * 60 - 30 * 50


@pytest.mark.parametrize("side", [700, 300, 90, 45], ids=["larger", "a bit smaller", "a fifth", "a tenth"])
def test_resizing_smoothly_keeps_the_mean_of_each_part(side: int) -> None:
    slope = np.add.outer(np.arange(450), np.arange(450)) // 4
    noise = np.random.default_rng(2).integers(-20, 21, slope.shape)
    image = np.repeat((slope + noise).clip(0, 255).astype(np.uint8)[..., np.newaxis], 3, axis=2)
    small = resize_smooth(image, (side, side))
    assert small.shape == (side, side, 3)
    parts = [cv2.resize(p, (3, 3), interpolation=cv2.INTER_AREA).astype(int) for p in (image, small)]
    assert np.abs(parts[0] - parts[1]).max() <= 2


def test_one_mean_serves_all_channels() -> None:
    spec = TensorSpec(name="x", shape=(-1, 3, 30, 50), layout="NCHW", colour="BGR", mean=(1.0,), scale=(2.0,))
    out = np.empty((3, 30, 50), dtype=np.float32)
    fill_input(PICTURE, spec, out)
    np.testing.assert_array_equal(out, (PICTURE.transpose(2, 0, 1).astype(np.float32) - 1) * 2)


def test_gray() -> None:
    spec = TensorSpec(name="x", shape=(-1, 1, 30, 50), layout="NCHW", colour="GRAY", mean=(127.5,), scale=(1 / 127.5,))
    out = np.empty((1, 30, 50), dtype=np.float32)
    fill_input(PICTURE, spec, out)
    blue, green, red = (PICTURE[..., c].astype(np.float64) for c in range(3))
    gray = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
    np.testing.assert_allclose(out[0], gray / 127.5 - 1, atol=0.6 / 127.5)


@pytest.mark.parametrize(
    "out",
    [
        pytest.param(np.empty((3, 8, 8), dtype=np.float64), id="dtype"),
        pytest.param(np.empty((8, 8, 3), dtype=np.float32), id="layout"),
        pytest.param(np.empty((3, 8, 16), dtype=np.float32)[:, :, ::2], id="not contiguous"),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(out: np.ndarray) -> None:
    spec = TensorSpec(name="x", shape=(-1, 3, 8, 8), layout="NCHW", colour="RGB")
    with pytest.raises(ValueError, match="no contiguous float32 NCHW item"):
        fill_input(PICTURE, spec, out)


def test_an_empty_picture_is_refused() -> None:
    spec = TensorSpec(name="x", shape=(-1, 3, 8, 8), layout="NCHW", colour="RGB")
    with pytest.raises(ValueError, match="is empty"):
        fill_input(PICTURE[:0], spec, np.empty((3, 8, 8), dtype=np.float32))
