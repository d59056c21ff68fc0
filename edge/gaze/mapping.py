"""From a gaze source's frame and unit to scene pixels and degrees.

Degrees are azimuth (positive to the right) and elevation (positive up) of the line of sight: from the camera's optical
axis for gaze in a scene picture, from the screen's centre for gaze on a screen, from the source's own axes for a
direction. Pixels are those of the scene picture, origin top left, never clamped: gaze off the picture stays valid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from edge.config import GazeConfig
from edge.errors import ConfigError
from edge.gaze.angles import from_vector, to_vector
from edge.gaze.calibration import GazeCalibration, read_calibration
from edge.gaze.geometry import GEOMETRY_HINTS, Camera, Geometry, Matrix, Screen, read_geometry
from edge.gaze.sources.base import GazeInfo, GazeSource
from edge.records import NAN, GazeSample, RawGaze

Size = tuple[int, int]  #: width, height


UNITS = {
    "scene_px": ("px",),
    "screen_px": ("px",),
    "scene_norm": ("norm",),
    "screen_norm": ("norm",),
    "direction": ("deg", "vector"),
}


class Plane(ABC):
    """Where pixels lie: converts between pixels of the source's plane and directions."""

    px_per_deg: float  #: of the scene picture, at its centre

    @abstractmethod
    def direction(self, x_px: float, y_px: float) -> tuple[float, float]:
        """Return azimuth and elevation (deg) of a place in the plane."""

    @abstractmethod
    def place(self, azimuth: float, elevation: float) -> tuple[float, float]:
        """Return the place of a direction in the plane; nan where it can't be seen."""

    def to_scene(self, x_px: float, y_px: float) -> tuple[float, float]:
        """Return the scene pixel that lies at a place in the plane."""
        return x_px, y_px


class CameraPlane(Plane):
    """Pixels of the scene camera."""

    def __init__(self, camera: Camera) -> None:
        self._camera = camera
        self.px_per_deg = camera.fx * math.radians(1)

    def direction(self, x_px: float, y_px: float) -> tuple[float, float]:
        c = self._camera
        x, y = (x_px - c.cx) / c.fx, (y_px - c.cy) / c.fy
        if c.distortion and math.isfinite(x_px) and math.isfinite(y_px):
            import cv2
            import numpy as np

            point = np.array([[[x, y]]])
            x, y = cv2.undistortPoints(point, np.eye(3), np.array(c.distortion))[0, 0].tolist()
        return from_vector(x, y, 1.0)

    def place(self, azimuth: float, elevation: float) -> tuple[float, float]:
        c = self._camera
        vx, vy, vz = to_vector(azimuth, elevation)
        if c.rotation:
            vx, vy, vz = (r[0] * vx + r[1] * vy + r[2] * vz for r in c.rotation)
        if not vz > 0:
            return NAN, NAN
        x, y = vx / vz, vy / vz
        if c.distortion:
            import cv2
            import numpy as np

            zero = np.zeros(3)
            points, _ = cv2.projectPoints(np.array([[[x, y, 1.0]]]), zero, zero, np.eye(3), np.array(c.distortion))
            x, y = points[0, 0].tolist()
        return c.cx + c.fx * x, c.cy + c.fy * y


class ScreenPlane(Plane):
    """Pixels of a screen; its picture is the scene, or a homography says where it lies in the scene."""

    def __init__(self, screen: Screen, frame_size: Size | None) -> None:
        self._screen, self._homography = screen, screen.homography
        self._mm = screen.width_mm / screen.width_px, screen.height_mm / screen.height_px
        width, height = frame_size or (screen.width_px, screen.height_px)
        self._scale = width / screen.width_px, height / screen.height_px
        x, y = screen.width_px / 2, screen.height_px / 2
        one_deg = screen.distance_mm * math.tan(math.radians(0.5)) / self._mm[0]
        left, right = self.to_scene(x - one_deg, y), self.to_scene(x + one_deg, y)
        self.px_per_deg = math.hypot(right[0] - left[0], right[1] - left[1])

    def direction(self, x_px: float, y_px: float) -> tuple[float, float]:
        s = self._screen
        return from_vector((x_px - s.width_px / 2) * self._mm[0], (y_px - s.height_px / 2) * self._mm[1], s.distance_mm)

    def place(self, azimuth: float, elevation: float) -> tuple[float, float]:
        s = self._screen
        x, y, z = to_vector(azimuth, elevation)
        if not z > 0:
            return NAN, NAN
        return (
            s.width_px / 2 + x / z * s.distance_mm / self._mm[0],
            s.height_px / 2 + y / z * s.distance_mm / self._mm[1],
        )

    def to_scene(self, x_px: float, y_px: float) -> tuple[float, float]:
        if self._homography is None:
            return x_px * self._scale[0], y_px * self._scale[1]
        return apply_homography(self._homography, x_px, y_px)


def apply_homography(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    """Return the image of a point under a 3x3 homography."""
    u, v, w = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return (u / w, v / w) if w else (NAN, NAN)


class Mapping(ABC):
    """Call it with a RawGaze to get the GazeSample. Made by `make_mapping`.

    Attributes
    ----------
    px_per_deg : float
        Scene pixels per degree at the centre; nan where gaze has no pixels.
    nominal : bool
        Whether degrees rest on intrinsics of the make, not of this device.
    calibration : GazeCalibration or None
        The correction that is applied, with its age and validated error.
    geometry : Geometry or None
        What it was made with, as it was declared.
    """

    geometry: Geometry | None = None

    def __init__(self, plane: Plane | None, calibration: GazeCalibration | None, *, nominal: bool) -> None:
        self._plane, self.calibration = plane, calibration
        self.px_per_deg = plane.px_per_deg if plane else NAN
        self.nominal = nominal

    @property
    def lack(self) -> str:
        """What a run lacks with this mapping, and what to add; empty where gaze has pixels."""
        if self._plane:
            return ""
        hint = f"add --set {GEOMETRY_HINTS['camera']}"
        return f"gives degrees alone: no fixation has a place in the picture, and nothing can be scored; {hint}"

    def __call__(self, raw: RawGaze) -> GazeSample:
        """Map one sample."""
        return self._map(raw, self.calibration)

    def without_calibration(self, raw: RawGaze) -> GazeSample:
        """Map a place that is no gaze, such as a target, and so needs no correction."""
        return self._map(raw, None)

    def _map(self, raw: RawGaze, calibration: GazeCalibration | None) -> GazeSample:
        azimuth, elevation, place = self._look(raw)
        if calibration:
            azimuth, elevation = calibration.correct(azimuth, elevation)
            place = None
        if self._plane:
            x_px, y_px = self._plane.to_scene(*(place or self._plane.place(azimuth, elevation)))
        else:
            x_px = y_px = NAN
        return GazeSample(
            raw.seq, raw.t_ns, x_px, y_px, azimuth, elevation, raw.confidence, raw.valid, raw.pupil_mm, raw.openness
        )

    @abstractmethod
    def _look(self, raw: RawGaze) -> tuple[float, float, tuple[float, float] | None]:
        """Return azimuth, elevation (deg) and, if the source gives a place, that place in the plane."""


class _DirectionMapping(Mapping):
    def __init__(self, plane: Plane | None, calibration: GazeCalibration | None, *, vector: bool) -> None:
        super().__init__(plane, calibration, nominal=False)
        self._vector = vector

    def _look(self, raw: RawGaze) -> tuple[float, float, None]:
        if not self._vector:
            return raw.x, raw.y, None
        rest = 1.0 - raw.x * raw.x - raw.y * raw.y
        return (*from_vector(raw.x, raw.y, math.sqrt(rest)), None) if rest >= 0 else (NAN, NAN, None)


class _PlaceMapping(Mapping):
    def __init__(
        self,
        plane: Plane,
        calibration: GazeCalibration | None,
        *,
        nominal: bool,
        unit_px: tuple[float, float],
        bottom_px: float,
    ) -> None:
        """`unit_px`: pixels of the plane per unit of the source; `bottom_px`: the plane's height if y goes up."""
        super().__init__(plane, calibration, nominal=nominal)
        self._place_plane, self._unit_px, self._bottom_px = plane, unit_px, bottom_px

    def _look(self, raw: RawGaze) -> tuple[float, float, tuple[float, float]]:
        x_px, y_px = raw.x * self._unit_px[0], raw.y * self._unit_px[1]
        if self._bottom_px:
            y_px = self._bottom_px - y_px
        return (*self._place_plane.direction(x_px, y_px), (x_px, y_px))


def make_mapping(
    info: GazeInfo,
    geometry: Geometry | None,
    frame_size: Size | None = None,
    calibration: GazeCalibration | None = None,
) -> Mapping:
    """Return the mapping of a source.

    Parameters
    ----------
    info : GazeInfo
        The frame, unit and origin that the source declares.
    geometry : Geometry or None
        Camera or screen; may be None for directions alone (fixations then have no pixels).
    frame_size : (int, int), optional
        Width and height of the scene picture; without it that of the camera's intrinsics, or the screen's.
    calibration : GazeCalibration, optional
        A correction of directions, applied before pixels are computed.

    Raises
    ------
    ConfigError
        Frame and unit contradict each other, or the geometry that the frame needs isn't declared.
    """
    mapping = _mapping_of(info, geometry, frame_size, calibration)
    mapping.geometry = geometry
    return mapping


def open_mapping(source: GazeSource, config: GazeConfig, frame_size: Size | None = None) -> Mapping:
    """Return the mapping of an open source: the configured geometry, or else what the source knows of itself."""
    geometry = read_geometry(config.geometry) or source.geometry
    return make_mapping(source.info, geometry, frame_size, read_calibration(config.calibration))


def _mapping_of(
    info: GazeInfo, geometry: Geometry | None, frame_size: Size | None, calibration: GazeCalibration | None
) -> Mapping:
    if info.units not in UNITS[info.frame]:
        raise ConfigError(
            info.source,
            f"frame {info.frame!r} doesn't go with units {info.units!r}",
            fix=f"add --set gaze.units={UNITS[info.frame][0]}",
        )
    camera = geometry.camera if geometry else None
    screen = geometry.screen if geometry else None
    if info.frame.startswith("screen"):
        if screen is None:
            raise _undeclared(info, "screen")
        plane: Plane = ScreenPlane(screen, frame_size)
        size = unit = (screen.width_px, screen.height_px)
    elif camera is not None:
        fitted = fit_camera(camera, frame_size, info.source)
        plane = CameraPlane(fitted)
        size, unit = (fitted.width_px, fitted.height_px), (camera.width_px, camera.height_px)
        if info.frame == "direction":
            return _DirectionMapping(plane, calibration, vector=info.units == "vector")
    elif info.frame == "direction":
        return _DirectionMapping(None, calibration, vector=info.units == "vector")
    else:
        raise _undeclared(info, "camera")
    scale = (float(size[0]), float(size[1])) if info.units == "norm" else (size[0] / unit[0], size[1] / unit[1])
    return _PlaceMapping(
        plane,
        calibration,
        nominal=geometry is not None and geometry.nominal,
        unit_px=scale,
        bottom_px=float(size[1]) if info.origin == "bottom-left" else 0.0,
    )


def fit_camera(camera: Camera, frame_size: Size | None, source: str) -> Camera:
    """Return the intrinsics for pictures of `frame_size`; a picture of another shape is refused."""
    if frame_size is None:
        return camera
    shape, wanted = frame_size[0] / frame_size[1], camera.width_px / camera.height_px
    if abs(shape / wanted - 1) > 0.02:
        raise ConfigError(
            f"geometry of {source}",
            "the intrinsics are those of a picture of another shape",
            expected=f"{camera.width_px}x{camera.height_px} or a scaled copy",
            got=f"{frame_size[0]}x{frame_size[1]}",
            fix="declare the intrinsics of this picture",
        )
    return camera.scaled(frame_size)


def _undeclared(info: GazeInfo, section: str) -> ConfigError:
    fix = f"add --set {GEOMETRY_HINTS[section]}"
    return ConfigError(info.source, f"frame {info.frame!r} gives no degrees without its geometry", fix=fix)
