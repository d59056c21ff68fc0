"""Equirectangular pictures: pixels and angles, great-circle distance, and flat views of a direction.

Azimuth runs from -180 degrees at the left edge to 180 at the right, elevation from 90 at the top to -90 at the bottom.
Distances in pixels break at the seam and at the poles; those on the sphere don't.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge.records import Image

Array = npt.NDArray[np.float64]
VIEW_PX = 224  #: side of a flat view


def to_angles(x_px: npt.ArrayLike, y_px: npt.ArrayLike, width: int, height: int) -> tuple[Array, Array]:
    """Return azimuth and elevation (deg) of places in a panorama."""
    x, y = np.asarray(x_px, dtype=np.float64), np.asarray(y_px, dtype=np.float64)
    return (x / width - 0.5) * 360, (0.5 - y / height) * 180


def to_pixels(azimuth: npt.ArrayLike, elevation: npt.ArrayLike, width: int, height: int) -> tuple[Array, Array]:
    """Return x and y (px) of directions (deg); any azimuth is brought into the picture."""
    a, e = np.asarray(azimuth, dtype=np.float64), np.asarray(elevation, dtype=np.float64)
    return np.mod(a / 360 + 0.5, 1.0) * width, (0.5 - e / 180) * height


def unit_vectors(azimuth: npt.ArrayLike, elevation: npt.ArrayLike) -> Array:
    """Return unit vectors (..., 3): x to the right, y up, z forward (azimuth 0, elevation 0)."""
    a, e = np.radians(np.asarray(azimuth, dtype=np.float64)), np.radians(np.asarray(elevation, dtype=np.float64))
    return np.stack([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)], axis=-1)


def great_circle_deg(one: tuple[npt.ArrayLike, npt.ArrayLike], other: tuple[npt.ArrayLike, npt.ArrayLike]) -> Array:
    """Return the angles (n, m) in degrees between directions (n,) and (m,), each azimuth and elevation in degrees.

    By the chord, which stays exact for small angles where the arc cosine doesn't.
    """
    a, b = unit_vectors(*one), unit_vectors(*other)
    chord = np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], axis=-1)
    return np.degrees(2 * np.arcsin(np.clip(chord / 2, 0, 1)))


def view(panorama: Image, azimuth: float, elevation: float, fov_deg: float, side_px: int = VIEW_PX) -> Image:
    """Return the flat view (gnomonic projection) around a direction: uint8 (side_px, side_px, 3).

    The picture goes on across the seam; at the poles the view is as sharp as anywhere.
    """
    height, width = panorama.shape[:2]
    half = np.tan(np.radians(fov_deg / 2))
    steps = (np.arange(side_px) + 0.5) / side_px * 2 - 1
    right, up = np.meshgrid(half * steps, -half * steps)
    e, a = np.radians(elevation), np.radians(azimuth)
    y = up * np.cos(e) + np.sin(e)
    forward = np.cos(e) - up * np.sin(e)
    x, z = right * np.cos(a) + forward * np.sin(a), forward * np.cos(a) - right * np.sin(a)
    source_x, source_y = to_pixels(
        np.degrees(np.arctan2(x, z)), np.degrees(np.arctan2(y, np.hypot(x, z))), width, height
    )
    # One column of the other side on each edge, so that interpolation crosses the seam.
    padded = np.concatenate([panorama[:, -1:], panorama, panorama[:, :1]], axis=1)
    map_x, map_y = (source_x + 0.5).astype(np.float32), (source_y - 0.5).astype(np.float32)
    flat = cv2.remap(padded, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return cast(Image, flat)


def fov_of_window(window_px: int, height: int) -> float:
    """Return the field of view (deg) of a window of so many pixels at the horizon of a panorama."""
    return window_px * 180 / height
