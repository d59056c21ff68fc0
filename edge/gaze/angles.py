"""Angles between directions of gaze: azimuth (to the right) and elevation (up), in degrees."""

from __future__ import annotations

import math


def wrap_deg(angle: float) -> float:
    """Return `angle` brought into [-180, 180); a difference of azimuths across the seam becomes the short one."""
    return angle if -180.0 <= angle < 180.0 else (angle + 180.0) % 360.0 - 180.0


def angle_deg(azimuth_1: float, elevation_1: float, azimuth_2: float, elevation_2: float) -> float:
    """Return the great-circle angle (deg) between two directions, by the haversine formula; nan stays nan."""
    e1, e2 = math.radians(elevation_1), math.radians(elevation_2)
    half_az, half_el = math.radians(azimuth_2 - azimuth_1) / 2, (e2 - e1) / 2
    h = math.sin(half_el) ** 2 + math.cos(e1) * math.cos(e2) * math.sin(half_az) ** 2
    return math.degrees(2 * math.asin(math.sqrt(min(h, 1.0))))


def to_vector(azimuth: float, elevation: float) -> tuple[float, float, float]:
    """Return the unit vector (x right, y down, z forward) of a direction in degrees."""
    az, el = math.radians(azimuth), math.radians(elevation)
    return math.sin(az) * math.cos(el), -math.sin(el), math.cos(az) * math.cos(el)


def from_vector(x: float, y: float, z: float) -> tuple[float, float]:
    """Return azimuth and elevation (deg) of a vector (x right, y down, z forward) of any length."""
    return math.degrees(math.atan2(x, z)), math.degrees(math.atan2(-y, math.hypot(x, z)))
