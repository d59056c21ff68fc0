"""The declared geometry of a gaze source: what turns its numbers into angles.

A TOML file (or the same text in the setting itself), with at least one of

    [camera]                       # the scene camera
    width_px = 1600
    height_px = 1200
    fx = 892.0                     # focal lengths and principal point in pixels of that size,
    fy = 892.0                     # or hfov_deg, the horizontal field of view of a lens without distortion
    cx = 800.0
    cy = 600.0
    distortion = [k1, k2, p1, p2]  # optional, OpenCV's order, 4, 5 or 8 numbers
    rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]   # optional: from the gaze source's axes to the camera's

    [screen]                       # the screen, seen from straight in front of its centre
    width_mm = 533.0
    height_mm = 301.0
    width_px = 1920
    height_px = 1080
    distance_mm = 565.0
    homography = [[..], [..], [..]]  # optional: screen pixels to scene pixels; without, the screen shows the scene full

All axes are the camera's: x to the right, y down, z forward.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import msgspec

from edge.config_files import decode_toml, parse_toml
from edge.errors import ConfigError

Matrix = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]
#: The setting that declares a geometry, by the section that a frame needs; of no frame yet, either.
GEOMETRY_HINTS = {
    "camera": "gaze.geometry=FILE.toml with a [camera] section (width_px, height_px, and fx, fy or hfov_deg)",
    "screen": "gaze.geometry=FILE.toml with a [screen] section (width_mm, height_mm, width_px, height_px, distance_mm)",
    "": "gaze.geometry=FILE.toml with a [camera] or a [screen] section",
}
_Length = Annotated[float, msgspec.Meta(gt=0)]
_Pixels = Annotated[int, msgspec.Meta(gt=0)]


class Camera(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Intrinsics of the scene camera, in pixels of `width_px` x `height_px`. `nominal`: those of its make."""

    width_px: _Pixels
    height_px: _Pixels
    fx: float = 0.0
    fy: float = 0.0
    cx: float = math.nan
    cy: float = math.nan
    hfov_deg: Annotated[float, msgspec.Meta(ge=0, lt=180)] = 0.0
    distortion: tuple[float, ...] = ()
    rotation: Matrix | None = None
    nominal: bool = False

    def complete(self) -> Camera:
        """Return the camera with `fx`, `fy`, `cx`, `cy` filled in from the field of view where they are absent."""
        fx = self.fx or (self.width_px / 2 / math.tan(math.radians(self.hfov_deg) / 2) if self.hfov_deg else 0.0)
        if fx <= 0 or (self.fy or fx) <= 0:
            raise ConfigError("geometry [camera]", "has no focal length", fix="add fx and fy (pixels), or hfov_deg")
        if len(self.distortion) not in (0, 4, 5, 8):
            raise ConfigError(
                "geometry [camera] distortion", f"has {len(self.distortion)} numbers", expected="4, 5 or 8"
            )
        cx = self.width_px / 2 if math.isnan(self.cx) else self.cx
        cy = self.height_px / 2 if math.isnan(self.cy) else self.cy
        distortion = self.distortion if any(self.distortion) else ()
        return msgspec.structs.replace(self, fx=fx, fy=self.fy or fx, cx=cx, cy=cy, distortion=distortion)

    def scaled(self, size: tuple[int, int]) -> Camera:
        """Return the intrinsics for pictures of another size (width, height) that show the same field of view."""
        sx, sy = size[0] / self.width_px, size[1] / self.height_px
        return msgspec.structs.replace(
            self,
            width_px=size[0],
            height_px=size[1],
            fx=self.fx * sx,
            fy=self.fy * sy,
            cx=self.cx * sx,
            cy=self.cy * sy,
        )


class Screen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A screen and the distance from which it is seen."""

    width_mm: _Length
    height_mm: _Length
    width_px: _Pixels
    height_px: _Pixels
    distance_mm: _Length
    homography: Matrix | None = None


class Geometry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is declared of the camera or the screen."""

    camera: Camera | None = None
    screen: Screen | None = None

    @property
    def nominal(self) -> bool:
        """Whether the intrinsics are those of the make, not of this device."""
        return self.camera is not None and self.camera.nominal


def read_geometry(text: str) -> Geometry | None:
    """Read the geometry that a setting names.

    Parameters
    ----------
    text : str
        A TOML file's path, or TOML itself (``screen = {width_mm = 533, ...}``); empty: None.

    Raises
    ------
    ConfigError
        A file that can't be read, an unknown key, a value out of bounds, neither camera nor screen.
    """
    if not text:
        return None
    if "=" in text and not os.path.exists(text):  # pathlib's `exists` raises for a text longer than a name may be
        try:
            values, thing = decode_toml(text), "geometry"
        except ValueError as error:
            raise ConfigError("geometry", f"can't be read as TOML: {error}") from None
    else:
        values, thing = parse_toml(Path(text)), text
    return geometry_from(values, thing=thing)


def geometry_from(values: dict[str, Any], *, thing: str) -> Geometry:
    """Check `values` (sections as in this module's head) and return the Geometry; `thing` names them in errors."""
    try:
        geometry = msgspec.convert(values, Geometry, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(thing, str(error).replace("`$.", "`"), fix="see edge/gaze/geometry.py for the keys") from None
    if geometry.camera is None and geometry.screen is None:
        raise ConfigError(thing, "declares nothing", fix="add a [camera] or a [screen] section")
    camera = geometry.camera.complete() if geometry.camera else None
    return msgspec.structs.replace(geometry, camera=camera)


def inline_toml(geometry: Geometry) -> str:
    """Return a geometry as TOML that `read_geometry` takes, a line for the camera and one for the screen."""

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(text, value))}]"
        return str(value).lower() if isinstance(value, bool) else repr(value)

    lines = []
    for name in ("camera", "screen"):
        section = getattr(geometry, name)
        if section is not None:
            fields = {
                key: value for key, value in msgspec.structs.asdict(section).items() if value not in (None, (), 0.0)
            }
            lines.append(f"{name} = {{{', '.join(f'{key} = {text(value)}' for key, value in fields.items())}}}")
    return "\n".join(lines)
