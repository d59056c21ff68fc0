"""A picture straight into a model's input buffer: resize, colour order, and (pixel - mean) * scale from a table."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge.manifest import TensorSpec
from edge.records import Image

_CHANNELS = {"BGR": (0, 1, 2), "RGB": (2, 1, 0)}


@lru_cache(maxsize=32)
def _tables(spec: TensorSpec) -> tuple[npt.NDArray[np.float32], tuple[npt.NDArray[np.float32], ...]]:
    """Return what each pixel value becomes, for all channels and per channel (256,): a table beats arithmetic.

    For all channels it is float32 (256,) where they share it, which is twice as fast, else (1, 256, 3).
    """
    pixel = np.arange(256, dtype=np.float64)[:, None]
    values = ((pixel - np.array(spec.mean)) * np.array(spec.scale)).astype(np.float32)
    values = np.broadcast_to(values, (256, 3))
    columns = tuple(np.ascontiguousarray(column) for column in values.T)
    shared = bool((values == values[:, :1]).all())
    return columns[0] if shared else np.ascontiguousarray(values)[np.newaxis], columns


class _Kept(threading.local):
    """A thread's memory for the planes of a picture: new memory would cost more than splitting does."""

    _planes: tuple[npt.NDArray[np.uint8], ...] = ()

    def planes(self, height: int, width: int) -> tuple[npt.NDArray[np.uint8], ...]:
        if not self._planes or self._planes[0].shape != (height, width):
            self._planes = tuple(np.empty((height, width), np.uint8) for _ in range(3))
        return self._planes


_kept = _Kept()


def fill_input(image: Image, spec: TensorSpec, out: npt.NDArray[np.float32]) -> None:
    """Write a picture into one item of an input batch, in place.

    Parameters
    ----------
    image : uint8 (h, w, 3) BGR
        Any size; it is resized (linear) to the size of `out` without regard to its proportions.
    spec : TensorSpec
        The input: layout, colour order, and ``value = (pixel - mean) * scale`` per channel.
    out : float32 (c, h, w) or (h, w, c)
        The item, e.g. ``batch[i]``, or a rectangle of it; what lies in one row must be contiguous.

    Raises
    ------
    ValueError
        `out` doesn't fit `spec`, or `image` is empty.
    """
    channels = 1 if spec.colour == "GRAY" else 3
    planar = spec.layout == "NCHW"
    row = (4,) if planar else (4 * channels, 4)
    fits = out.ndim == 3 and out.shape[0 if planar else 2] == channels and out.strides[-len(row) :] == row
    if not fits or out.dtype != np.float32:
        raise ValueError(f"input {spec.name}: {out.dtype} {out.shape} is no contiguous float32 {spec.layout} item")
    if image.size == 0:
        raise ValueError(f"input {spec.name}: the picture is empty: {image.shape}")
    height, width = out.shape[1:] if planar else out.shape[:2]
    if image.shape[:2] != (height, width):
        image = cast(Image, cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR))
    table, columns = _tables(spec)
    if channels == 1:
        gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        cv2.LUT(gray, columns[0], dst=out[0] if planar else out[..., 0])
        return
    if not planar:
        cv2.LUT(image if spec.colour == "BGR" else cv2.cvtColor(image, cv2.COLOR_BGR2RGB), table, dst=out)
        return
    planes = cv2.split(image, _kept.planes(height, width))
    for c, source in enumerate(_CHANNELS[spec.colour]):
        cv2.LUT(planes[source], columns[c], dst=out[c])


def resize_smooth(image: Image, size: tuple[int, int]) -> Image:
    """Resize a picture to (width, height), averaging where it shrinks: small things don't vanish between pixels.

    It is halved until less than half is left to do, and only the rest goes through the area filter: halves have a fast
    path. What shrinks to a quarter or less is first sampled (linear) at twice the size, so that each pixel is the mean
    of 16 spread over its area: a large picture is then not read whole.
    """
    width, height = size
    if image.shape[0] >= 4 * height and image.shape[1] >= 4 * width:
        image = cast(Image, cv2.resize(image, (2 * width, 2 * height), interpolation=cv2.INTER_LINEAR))
    while image.shape[0] >= 2 * height and image.shape[1] >= 2 * width:
        half = (image.shape[1] // 2, image.shape[0] // 2)
        image = cast(Image, cv2.resize(image, half, interpolation=cv2.INTER_AREA))
    if image.shape[:2] == (height, width):
        return image
    shrinks = image.shape[0] > height or image.shape[1] > width
    return cast(Image, cv2.resize(image, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR))


def block_means(image: Image, along: int) -> npt.NDArray[np.float32]:
    """Return the mean colour of each block, float32 (rows, columns, 3), of which the longer side holds `along`."""
    height, width = image.shape[:2]
    side = max(height, width) / along
    size = (max(1, round(width / side)), max(1, round(height / side)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.float32)
