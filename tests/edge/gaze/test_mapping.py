"""Frames, units and geometry: worked by hand, or against OpenCV's projection."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.errors import ConfigError
from edge.gaze.angles import angle_deg, from_vector, to_vector
from edge.gaze.geometry import Camera, Geometry, Screen, read_geometry
from edge.gaze.mapping import make_mapping
from edge.gaze.sources.base import GazeInfo
from edge.records import NAN, RawGaze

# 1000x500 pixels, principal point in the middle, 500 px focal length: the edge lies at 45 degrees.
CAMERA = Geometry(camera=Camera(width_px=1000, height_px=500, fx=500).complete())
# 400x300 mm seen from 1000 mm, 1000x750 pixels: 0.4 mm a pixel.
SCREEN = Geometry(screen=Screen(width_mm=400, height_mm=300, width_px=1000, height_px=750, distance_mm=1000))


def info(frame: str, units: str, origin: str = "top-left") -> GazeInfo:
    return GazeInfo("gaze.csv", frame, units, origin, live=False)  # type: ignore[arg-type]


def gaze(x: float, y: float) -> RawGaze:
    return RawGaze(7, 1_000, x, y, confidence=0.5, valid=True, pupil_mm=3.0)


@pytest.mark.parametrize(
    ("frame", "units", "geometry", "frame_size", "xy", "px", "deg"),
    [
        ("scene_px", "px", CAMERA, (1000, 500), (1000, 250), (1000, 250), (45, 0)),
        ("scene_px", "px", CAMERA, (500, 250), (1000, 250), (500, 125), (45, 0)),
        ("scene_px", "px", CAMERA, None, (500, 0), (500, 0), (0, math.degrees(math.atan(0.5)))),
        ("scene_norm", "norm", CAMERA, (500, 250), (0.5, 0.5), (250, 125), (0, 0)),
        ("screen_px", "px", SCREEN, None, (500, 375), (500, 375), (0, 0)),
        ("screen_px", "px", SCREEN, (2000, 1500), (1000, 375), (2000, 750), (math.degrees(math.atan(0.2)), 0)),
        ("screen_norm", "norm", SCREEN, None, (0.5, 0.0), (500, 0), (0, math.degrees(math.atan(0.15)))),
        ("direction", "deg", CAMERA, (1000, 500), (45, 0), (1000, 250), (45, 0)),
        ("direction", "vector", CAMERA, (1000, 500), (math.sqrt(0.5), 0), (1000, 250), (45, 0)),
    ],
    ids=["px", "px scaled", "up", "norm", "screen", "screen scaled", "screen norm", "deg", "vector"],
)
def test_places_and_directions(
    frame: str,
    units: str,
    geometry: Geometry,
    frame_size: tuple[int, int] | None,
    xy: tuple[float, float],
    px: tuple[float, float],
    deg: tuple[float, float],
) -> None:
    sample = make_mapping(info(frame, units), geometry, frame_size)(gaze(*xy))
    assert (sample.x_px, sample.y_px) == pytest.approx(px, abs=1e-9)
    assert (sample.x_deg, sample.y_deg) == pytest.approx(deg, abs=1e-9)
    assert (sample.seq, sample.t_ns, sample.confidence, sample.valid, sample.pupil_mm) == (7, 1_000, 0.5, True, 3.0)


@pytest.mark.parametrize(("units", "xy"), [("norm", (0.5, 0.9)), ("px", (50, 90))], ids=["norm", "px"])
def test_bottom_left_origin(units: str, xy: tuple[float, float]) -> None:
    geometry = Geometry(camera=Camera(width_px=100, height_px=100, fx=100).complete())
    mapping = make_mapping(info(f"scene_{units}", units, "bottom-left"), geometry, (100, 100))
    sample = mapping(gaze(*xy))
    assert (sample.x_px, sample.y_px) == pytest.approx((50, 10))


def test_gaze_off_the_picture_stays_valid_and_is_not_clamped() -> None:
    mapping = make_mapping(info("scene_norm", "norm"), CAMERA, (1000, 500))
    sample = mapping(gaze(1.2, -0.1))
    assert (sample.x_px, sample.y_px) == pytest.approx((1200, -50))
    assert sample.valid


def test_directions_without_a_scene_camera_have_no_pixels() -> None:
    mapping = make_mapping(info("direction", "deg"), None)
    sample = mapping(gaze(3, -4))
    assert (sample.x_deg, sample.y_deg) == (3, -4)
    assert math.isnan(sample.x_px)
    assert math.isnan(mapping.px_per_deg)
    assert mapping.lack.startswith("gives degrees alone") and "[camera]" in mapping.lack
    assert make_mapping(info("direction", "deg"), CAMERA).lack == ""


def test_px_per_deg_is_that_of_the_picture_shown() -> None:
    assert make_mapping(info("scene_px", "px"), CAMERA, (500, 250)).px_per_deg == pytest.approx(250 * math.radians(1))
    one_deg_px = 2 * 1000 * math.tan(math.radians(0.5)) / 0.4
    assert make_mapping(info("screen_px", "px"), SCREEN).px_per_deg == pytest.approx(one_deg_px, rel=1e-9)


def test_distortion_agrees_with_opencv_both_ways() -> None:
    distortion = (-0.13, 0.1, 0.001, -0.0006, 0.17, 0.05, 0.02, 0.01)
    camera = Camera(width_px=1600, height_px=1200, fx=890, fy=892, cx=810, cy=605, distortion=distortion).complete()
    matrix = np.array([[890, 0, 810], [0, 892, 605], [0, 0, 1.0]])
    direction = np.array([math.tan(math.radians(20)), -0.3, 1.0])
    pixel, _ = cv2.projectPoints(direction[None, None], np.zeros(3), np.zeros(3), matrix, np.array(distortion))
    azimuth, elevation = from_vector(*direction)
    forth = make_mapping(info("direction", "deg"), Geometry(camera=camera))(gaze(azimuth, elevation))
    assert (forth.x_px, forth.y_px) == pytest.approx(pixel.ravel(), abs=1e-6)
    back = make_mapping(info("scene_px", "px"), Geometry(camera=camera))(gaze(*pixel.ravel().tolist()))
    assert (back.x_deg, back.y_deg) == pytest.approx((azimuth, elevation), abs=1e-3)


def test_extrinsics_turn_the_source_into_the_camera() -> None:
    # The camera looks 45 degrees to the right of the tracker's axis: its centre is the tracker's azimuth 45.
    c = math.sqrt(0.5)
    camera = Camera(width_px=1000, height_px=500, fx=500, rotation=((c, 0, -c), (0, 1, 0), (c, 0, c)))
    mapping = make_mapping(info("direction", "deg"), Geometry(camera=camera.complete()), (1000, 500))
    sample = mapping(gaze(45, 0))
    assert (sample.x_px, sample.y_px) == pytest.approx((500, 250))
    assert math.isnan(mapping(gaze(-90, 0)).x_px)  # behind the camera


def test_homography_places_a_screen_in_the_scene() -> None:
    screen = Screen(
        width_mm=400,
        height_mm=300,
        width_px=1000,
        height_px=750,
        distance_mm=1000,
        homography=((0.5, 0, 100), (0, 0.5, 50), (0, 0, 1)),
    )
    sample = make_mapping(info("screen_px", "px"), Geometry(screen=screen), (1280, 720))(gaze(1000, 750))
    assert (sample.x_px, sample.y_px) == pytest.approx((600, 425))


@pytest.mark.parametrize(
    ("frame", "units", "geometry", "words"),
    [
        ("scene_px", "px", None, "add --set gaze.geometry=.*camera"),
        ("scene_norm", "norm", SCREEN, "add --set gaze.geometry=.*camera"),
        ("screen_px", "px", CAMERA, "add --set gaze.geometry=.*screen"),
        ("scene_px", "norm", CAMERA, "add --set gaze.units=px"),
    ],
    ids=["no geometry", "a screen, not a camera", "a camera, not a screen", "unit of another frame"],
)
def test_undeclared_geometry_is_refused_with_the_line_to_add(
    frame: str, units: str, geometry: Geometry | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make_mapping(info(frame, units), geometry)


def test_intrinsics_of_another_shape_of_picture_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"another shape.*1000x500.*640x480"):
        make_mapping(info("scene_px", "px"), CAMERA, (640, 480))


def test_geometry_from_file_and_inline(tmp_path: Path) -> None:
    file = tmp_path / "geometry.toml"
    file.write_text("[camera]\nwidth_px = 640\nheight_px = 360\nhfov_deg = 90\n")
    inline = read_geometry("camera = {width_px = 640, height_px = 360, hfov_deg = 90}")
    assert read_geometry(str(file)) == inline
    assert inline is not None and inline.camera is not None
    assert (inline.camera.fx, inline.camera.cx, inline.camera.cy) == pytest.approx((320, 320, 180))
    assert read_geometry("") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("camera = {width_px = 640, height_px = 360}", "no focal length"),
        ("camera = {width_px = 640, height_px = 360, hfov = 90}", "hfov"),
        ("screen = {width_mm = -1, height_mm = 1, width_px = 1, height_px = 1, distance_mm = 1}", "width_mm"),
        ("camera = [", "TOML"),
        ("camera = " + "[" * 5000, "TOML: is nested too deep"),
        ("x" * 300, "can't be read"),
        ("absent.toml", "no such file"),
    ],
    ids=["no focal length", "unknown key", "negative", "no TOML", "deep", "long", "no file"],
)
def test_wrong_geometry(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_geometry(text)


@pytest.mark.parametrize("direction", [(0, 0), (170, 10), (-30, -80), (90, 45)], ids=str)
def test_vectors_and_back(direction: tuple[float, float]) -> None:
    assert from_vector(*to_vector(*direction)) == pytest.approx(direction, abs=1e-9)


def test_great_circle_angles() -> None:
    assert angle_deg(179, 0, -179, 0) == pytest.approx(2)
    assert angle_deg(0, 89, 180, 89) == pytest.approx(2)  # over the pole
    assert angle_deg(0, 60, 1, 60) == pytest.approx(0.5, abs=1e-4)
    assert math.isnan(angle_deg(NAN, 0, 0, 0))
