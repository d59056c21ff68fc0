"""Nine-point calibration: fit a correction of gaze directions on some targets, validate it on others."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from edge.clock import session_epoch
from edge.errors import DataError
from edge.gaze.calibration import TERMS, GazeCalibration, Model, monomials
from edge.gaze.validation import Quality, Target, TargetGaze, accuracy_deg, measure, quality
from edge.records import GazeSample


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A fitted calibration with the gaze on its validation targets, before and after."""

    calibration: GazeCalibration
    fitted: list[TargetGaze]
    before: Quality
    after: Quality
    validated: list[TargetGaze]


def read_targets(path: Path, to_degrees: Callable[[float, float], tuple[float, float]]) -> list[Target]:
    """Read targets from a CSV with the columns start_s, end_s, x, y and, optionally, use (`fit` or `validate`).

    Parameters
    ----------
    path : Path
        The table; x and y are in the frame of the gaze source.
    to_degrees : callable
        Turns such a place into azimuth and elevation.

    Raises
    ------
    DataError
        The table can't be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        targets = []
        for row in rows:
            use = (row.get("use") or "fit").strip()
            if use not in ("fit", "validate"):
                raise ValueError(f"use is {use!r}")
            span = [round(float(row[key]) * 1e9) for key in ("start_s", "end_s")]
            place = to_degrees(float(row["x"]), float(row["y"]))
            targets.append(Target(span[0], span[1], *place, validates=use == "validate"))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            str(path),
            f"can't be read as targets: {error}",
            expected="columns start_s,end_s,x,y and use (fit, validate)",
        ) from error
    return targets


def fit(measured: Sequence[TargetGaze], model: Model) -> GazeCalibration:
    """Fit the correction of measured directions by least squares.

    Parameters
    ----------
    measured : sequence of TargetGaze
        Gaze on the fitting targets; those without gaze are left out.
    model : {'offset', 'affine', 'quadratic'}
        A shift; with scale and shear; with second-order terms.

    Raises
    ------
    DataError
        Fewer targets with gaze than the model has terms, or targets on a line.
    """
    seen = [m for m in measured if m.n_samples]
    n_terms = TERMS[model]
    gaze = np.array([(m.x_deg, m.y_deg) for m in seen]).reshape(-1, 2)
    true = np.array([(m.target.x_deg, m.target.y_deg) for m in seen]).reshape(-1, 2)
    design = np.array([monomials(x, y)[:n_terms] for x, y in gaze]).reshape(-1, n_terms)
    if len(seen) < n_terms or np.linalg.matrix_rank(design) < n_terms:
        raise DataError(
            "calibration targets",
            f"{len(seen)} with gaze don't determine a {model} correction",
            expected=f"at least {n_terms}, not on one line",
            fix="show nine points, or choose a simpler --model",
        )
    coefficients = np.linalg.lstsq(design, true - gaze, rcond=None)[0].T
    low, high = gaze.min(axis=0), gaze.max(axis=0)
    calibration = GazeCalibration(
        model=model,
        x_coefficients=tuple(coefficients[0].tolist()),
        y_coefficients=tuple(coefficients[1].tolist()),
        range_deg=(float(low[0]), float(high[0]), float(low[1]), float(high[1])),
        n_points=len(seen),
    )
    left = np.array([calibration.correct(x, y) for x, y in gaze.tolist()]) - true
    return msgspec.structs.replace(calibration, fit_error_deg=accuracy_deg(left[:, 0], left[:, 1]))


def calibrate(
    samples: Sequence[GazeSample], targets: Sequence[Target], model: Model, *, device: str = ""
) -> CalibrationReport:
    """Fit on the targets marked `fit` and validate on those marked `validate`; without any, accuracy is unknown."""
    fitted = measure(samples, [t for t in targets if not t.validates])
    calibration = fit(fitted, model)
    validation = [t for t in targets if t.validates]
    before = quality(measure(samples, validation))
    validated = measure([_corrected(s, calibration) for s in samples], validation)
    after = quality(validated)
    known = after.n_targets > after.n_lost
    calibration = msgspec.structs.replace(
        calibration,
        device=device,
        created_unix_s=session_epoch()[1] / 1e9,
        n_validation=after.n_targets - after.n_lost,
        accuracy_deg=after.accuracy_deg if known else None,
        worst_deg=after.worst_deg if known else None,
        rms_s2s_deg=after.rms_s2s_deg if known else None,
        std_deg=after.std_deg if known else None,
    )
    return CalibrationReport(calibration, fitted, before, after, validated)


def _corrected(sample: GazeSample, calibration: GazeCalibration) -> GazeSample:
    x, y = calibration.correct(sample.x_deg, sample.y_deg)
    return GazeSample(
        sample.seq,
        sample.t_ns,
        sample.x_px,
        sample.y_px,
        x,
        y,
        sample.confidence,
        sample.valid,
        openness=sample.openness,
    )
