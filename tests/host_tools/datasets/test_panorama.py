from __future__ import annotations

import numpy as np
import pytest

from host_tools.datasets import panorama as pano


@pytest.mark.parametrize(
    ("one", "other", "angle"),
    [
        ((0, 0), (90, 0), 90),
        ((179, 0), (-179, 0), 2),
        ((0, 89), (180, 89), 2),
        ((10, 40), (10, 40), 0),
        ((0, 60), (60, 60), 28.955),  # haversine: sin(d/2) = cos 60 sin 30
    ],
    ids=["quarter", "seam", "pole", "same", "off-equator"],
)
def test_great_circle(one: tuple[float, float], other: tuple[float, float], angle: float) -> None:
    found = pano.great_circle_deg(([one[0]], [one[1]]), ([other[0]], [other[1]]))
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(angle, abs=1e-3)


def test_pixels_and_angles_are_inverse_and_wrap() -> None:
    x, y = pano.to_pixels([-180, 0, 90, 270], [90, 0, -45, 0], 2000, 1000)
    np.testing.assert_allclose(x, [0, 1000, 1500, 500])
    np.testing.assert_allclose(y, [0, 500, 750, 500])
    np.testing.assert_allclose(pano.to_angles(x[:3], y[:3], 2000, 1000), [[-180, 0, 90], [90, 0, -45]])


def coloured(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    """A smooth picture on the sphere, the same on both sides of the seam."""
    v = pano.unit_vectors(azimuth, elevation)
    return np.round(127 + 120 * v).astype(np.uint8)


@pytest.fixture(scope="module")
def sphere() -> np.ndarray:
    x, y = np.meshgrid(np.arange(1000) + 0.5, np.arange(500) + 0.5)
    return coloured(*pano.to_angles(x, y, 1000, 500))


@pytest.mark.parametrize(
    ("azimuth", "elevation"),
    [(0, 0), (180, 0), (-179, 30), (40, 88), (0, -90)],
    ids=["front", "seam", "near-seam", "pole", "nadir"],
)
def test_centre_of_a_view_shows_its_direction(sphere: np.ndarray, azimuth: float, elevation: float) -> None:
    view = pano.view(sphere, azimuth, elevation, 36, side_px=101)
    assert np.abs(view[50, 50].astype(int) - coloured(np.array(azimuth), np.array(elevation)).astype(int)).max() <= 3


def test_view_is_the_right_way_round_and_as_wide_as_asked(sphere: np.ndarray) -> None:
    view = pano.view(sphere, 0, 0, 90, side_px=91).astype(int)
    for row, column, direction in ((45, 90, (44.5, 0)), (45, 0, (-44.5, 0)), (0, 45, (0, 44.5)), (90, 45, (0, -44.5))):
        expected = coloured(np.array(direction[0]), np.array(direction[1])).astype(int)
        assert np.abs(view[row, column] - expected).max() <= 4


def test_view_of_the_real_panorama_crosses_the_seam(data) -> None:  # type: ignore[no-untyped-def]
    from host_tools.datasets.maps import read_picture

    picture = read_picture(data / "panorama" / "P41_2000x1000.jpg")
    assert picture.shape == (1000, 2000, 3)
    view = pano.view(picture, 180, 0, 36, side_px=224)
    rolled = pano.view(np.roll(picture, 1000, axis=1), 0, 0, 36, side_px=224)
    assert np.abs(view.astype(int) - rolled.astype(int)).max() <= 2
