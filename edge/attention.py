"""Dynamics of gaze over a window: pure functions of fixations and samples.

Each value is nan where the data for it is missing; none is ever guessed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from edge.gaze.angles import angle_deg
from edge.gaze.fixations import CLOSED
from edge.records import NAN, Fixation, GazeSample

PERCLOS_WINDOW_NS = 60_000_000_000
BLINK_MARGIN_NS = 100_000_000  #: pupil samples so near a closed or lost eye are left out
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dynamics:
    """What a window of fixations shows; nan where it can't be had.

    `dispersion_deg`: RMS angle from the centroid. `stickiness`: largest share of fixation time on one region.
    `transition_entropy_bits`: of the next region given this one. `shift_rate_hz`: moves from one fixation to the next
    per second. `fixation_ms`: median duration. `saccade_deg`: median angle between successive fixations.
    """

    dispersion_deg: float
    stickiness: float
    transition_entropy_bits: float
    shift_rate_hz: float
    fixation_ms: float
    saccade_deg: float
    n_fixations: int


def dynamics(fixations: Sequence[Fixation], window_ns: int, regions: Sequence[str] | None = None) -> Dynamics:
    """Return the dynamics of the fixations of one window.

    Parameters
    ----------
    fixations : sequence of Fixation
        In order of time.
    window_ns : int
        Length of the window, for the rate.
    regions : sequence of str, optional
        The region of each fixation; an empty name is no region.

    Raises
    ------
    ValueError
        `regions` differs in length from `fixations`.
    """
    if regions is not None and len(regions) != len(fixations):
        raise ValueError(f"{len(regions)} regions for {len(fixations)} fixations")
    shifts = [angle_deg(a.x_deg, a.y_deg, b.x_deg, b.y_deg) for a, b in pairwise(fixations)]
    durations = [(f.end_ns - f.start_ns) / 1e6 for f in fixations]
    return Dynamics(
        dispersion_deg=dispersion_deg([(f.x_deg, f.y_deg) for f in fixations]),
        stickiness=stickiness(durations, regions) if regions is not None else NAN,
        transition_entropy_bits=transition_entropy_bits(regions) if regions is not None else NAN,
        shift_rate_hz=len(shifts) / (window_ns / 1e9) if fixations and window_ns > 0 else NAN,
        fixation_ms=float(np.median(durations)) if durations else NAN,
        saccade_deg=float(np.median(shifts)) if shifts else NAN,
        n_fixations=len(fixations),
    )


def dispersion_deg(directions_deg: Sequence[tuple[float, float]]) -> float:
    """Return the RMS great-circle angle (deg) of directions from their centroid on the sphere; nan without one."""
    if not directions_deg:
        return NAN
    az, el = np.radians(np.asarray(directions_deg, dtype=np.float64)).T
    x, y, z = (float(np.mean(v)) for v in (np.cos(el) * np.sin(az), np.sin(el), np.cos(el) * np.cos(az)))
    centre = math.degrees(math.atan2(x, z)), math.degrees(math.atan2(y, math.hypot(x, z)))
    angles = [angle_deg(*centre, *direction) for direction in directions_deg]
    return float(np.sqrt(np.mean(np.square(angles))))


def stickiness(durations: Sequence[float], regions: Sequence[str]) -> float:
    """Return the largest share of the time that fixations spend on one region; nan without time on any."""
    time_on: defaultdict[str, float] = defaultdict(float)
    for duration, region in zip(durations, regions, strict=True):
        if region:
            time_on[region] += duration
    total = sum(durations)
    return max(time_on.values()) / total if time_on and total > 0 else NAN


def transition_entropy_bits(regions: Sequence[str]) -> float:
    """Return the entropy (bits) of the next region given this one (Krejtz et al., 2014); nan without a transition.

    H = -sum_i p_i sum_j p_ij log2 p_ij, where p_i is the share of transitions that leave region i. Staying within a
    region (several fixations in a row) is no transition, and fixations on no region are left out.
    """
    visited = [region for region in regions if region]
    moves = Counter((a, b) for a, b in pairwise(visited) if a != b)
    total = sum(moves.values())
    if not total:
        return NAN
    leaving: Counter[str] = Counter()
    for (a, _), n in moves.items():
        leaving[a] += n
    return sum(-(n / total) * math.log2(n / leaving[a]) for (a, _), n in moves.items()) + 0.0


def perclos(samples: Sequence[GazeSample], now_ns: int, window_ns: int = PERCLOS_WINDOW_NS) -> float:
    """Return the share of the last `window_ns` with eyes at least 80 % closed; nan where openness is unknown.

    Samples count alike, so the share is one of samples whose openness is known (Wierwille et al., 1994: of time). At
    least half of the window must be covered.
    """
    known = [s for s in samples if now_ns - window_ns < s.t_ns <= now_ns and math.isfinite(s.openness)]
    if len(known) < 2 or known[-1].t_ns - known[0].t_ns < window_ns / 2:
        return NAN
    return sum(s.openness <= CLOSED for s in known) / len(known)


def pupil_change_mm(
    samples: Sequence[GazeSample], baseline_until_ns: int, luminance: Sequence[float] | None = None
) -> float:
    """Return the blink-cleaned change (mm) of pupil diameter from its baseline; nan without data on both sides.

    Parameters
    ----------
    samples : sequence of GazeSample
        With `pupil_mm`; samples within 100 ms of a closed or lost eye are left out.
    baseline_until_ns : int
        Samples before this time are the baseline, later ones are compared with it (means of each).
    luminance : sequence of float, optional
        Mean luminance of the scene picture at each sample, above 0. The part of the pupil that its logarithm predicts
        linearly, as fitted on the baseline, is taken out; the light reflex is about linear in log luminance.
    """
    t = np.array([s.t_ns for s in samples], dtype=np.int64)
    pupil = np.array([s.pupil_mm for s in samples], dtype=np.float64)
    clean = np.isfinite(pupil) & (pupil > 0) & ~_near(t, [not s.valid or s.openness <= CLOSED for s in samples])
    if luminance is not None:
        log_light = np.log(np.asarray(luminance, dtype=np.float64))
        pupil = pupil - _light_response(pupil, log_light, clean & (t < baseline_until_ns))
    before, after = pupil[clean & (t < baseline_until_ns)], pupil[clean & (t >= baseline_until_ns)]
    return float(after.mean() - before.mean()) if before.size and after.size else NAN


def _near(t: npt.NDArray[np.int64], lost: Sequence[bool]) -> npt.NDArray[np.bool_]:
    """Tell which samples lie within BLINK_MARGIN_NS of a lost one."""
    lost_t = t[np.asarray(lost, dtype=bool)]
    if not lost_t.size:
        return np.zeros(len(t), dtype=bool)
    after = np.searchsorted(lost_t, t)
    to_next = np.abs(lost_t[np.minimum(after, lost_t.size - 1)] - t)
    to_last = np.abs(t - lost_t[np.maximum(after - 1, 0)])
    return np.minimum(to_next, to_last) <= BLINK_MARGIN_NS


def _light_response(pupil: Floats, log_light: Floats, fitted_on: npt.NDArray[np.bool_]) -> Floats:
    """Return the pupil change that light predicts, relative to the baseline's mean light."""
    light, seen = log_light[fitted_on], pupil[fitted_on]
    spread = float(np.var(light)) if light.size else 0.0
    slope = float(np.mean((light - light.mean()) * (seen - seen.mean()))) / spread if spread > 0 else 0.0
    return slope * (log_light - (light.mean() if light.size else 0.0))
