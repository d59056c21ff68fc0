"""`gaze_calibration.json`: a correction of gaze directions, and what it was validated to.

What is added to azimuth and elevation are polynomials of the measured ones in the monomials 1, x, y, xy, x^2, y^2 (or
the first one or three of them). Outside the range of the targets the correction of its edge applies: a polynomial must
not be extrapolated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from edge.clock import session_epoch
from edge.errors import ConfigError
from edge.files import decode_document, write_atomic

Model = Literal["offset", "affine", "quadratic"]
TERMS = {"offset": 1, "affine": 3, "quadratic": 6}
Range = tuple[float, float, float, float]


class GazeCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A correction, in degrees. `range_deg`: least and greatest azimuth, least and greatest elevation measured."""

    schema: Literal["emogaze.gaze_calibration"] = "emogaze.gaze_calibration"
    version: Literal[1] = 1
    model: Model
    x_coefficients: tuple[float, ...]
    y_coefficients: tuple[float, ...]
    range_deg: Range
    device: str = ""
    created_unix_s: float = 0.0
    n_points: int = 0
    fit_error_deg: float | None = None
    accuracy_deg: float | None = None
    worst_deg: float | None = None
    rms_s2s_deg: float | None = None
    std_deg: float | None = None
    n_validation: int = 0

    def correct(self, azimuth: float, elevation: float) -> tuple[float, float]:
        """Return the corrected direction (deg); nan stays nan."""
        x_min, x_max, y_min, y_max = self.range_deg
        x, y = min(max(azimuth, x_min), x_max), min(max(elevation, y_min), y_max)
        terms = monomials(x, y)
        dx = sum(c * m for c, m in zip(self.x_coefficients, terms, strict=False))
        dy = sum(c * m for c, m in zip(self.y_coefficients, terms, strict=False))
        return azimuth + dx, elevation + dy

    def age_s(self) -> float:
        """Return how old (s) the calibration is by the wall clock."""
        return session_epoch()[1] / 1e9 - self.created_unix_s


def monomials(x: float, y: float) -> tuple[float, ...]:
    """Return 1, x, y, xy, x^2, y^2."""
    return 1.0, x, y, x * y, x * x, y * y


def read_calibration(path: str) -> GazeCalibration | None:
    """Read the file that a setting names; empty: None.

    Raises
    ------
    ConfigError
        It can't be read, or its coefficients don't fit its model.
    """
    if not path:
        return None
    try:
        calibration = decode_document(Path(path).read_bytes(), msgspec.json.Decoder(GazeCalibration).decode)
    except FileNotFoundError:
        raise ConfigError(path, "no such file", fix="`python -m calibration gaze` writes one") from None
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(path, f"is no gaze calibration: {error}") from error
    n = TERMS[calibration.model]
    if len(calibration.x_coefficients) != n or len(calibration.y_coefficients) != n:
        raise ConfigError(path, f"model {calibration.model} has {n} coefficients an axis", got="another number")
    return calibration


def write_calibration(path: Path, calibration: GazeCalibration) -> None:
    """Write the file in one step."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n")
