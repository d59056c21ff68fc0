"""Whether the streams of a recording (face, gaze, EEG, ...) lie on one time base, within 50 ms.

Two things are measured. Of each stream alone: how far its stamps lie from an even rate, where it stops, where its clock
breaks. Of two streams: the lag at which events that both show agree best, by cross-correlation (a blink in the eyes'
openness and in frontal EEG, a flash in a photodiode and in a picture). Only the second sees a constant delay between
devices; without such events the check says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.gaze.sources.xdf import XdfStream
from host_tools.metrics import checks as ck

Floats = npt.NDArray[np.float64]
GRID_HZ = 250.0
MAX_LAG_MS = 500.0
CLEAR_CORRELATION = 0.3  #: below this no lag is claimed
BREAK_PERIODS = 5.0  #: a step of more periods is a break


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """How even a stream's stamps are. `jitter_ms` is the 95th percentile of their distance from an even rate."""

    name: str
    type: str
    n: int
    hz_declared: float
    hz_measured: float
    start_s: float
    end_s: float
    jitter_ms: float
    n_breaks: int
    longest_break_s: float
    n_backward: int


@dataclass(frozen=True, slots=True)
class Lag:
    """`lag_ms` is what to add to the second stream's times; `clear` says whether the peak can be trusted."""

    first: str
    second: str
    lag_ms: float
    correlation: float
    clear: bool


def timing(stream: XdfStream) -> StreamTiming:
    """Measure one stream; rates and jitter are `nan` for markers and for fewer than three samples."""
    t = stream.t_ns / 1e9
    steps = np.diff(t)
    regular = not stream.is_text and len(t) > 2
    period = float(np.median(steps)) if regular else float("nan")
    breaks = steps > BREAK_PERIODS * period if regular else np.zeros(len(steps), dtype=bool)
    return StreamTiming(
        name=stream.name,
        type=stream.type,
        n=len(t),
        hz_declared=stream.hz,
        hz_measured=1 / period if regular and period > 0 else float("nan"),
        start_s=float(t[0]) if len(t) else float("nan"),
        end_s=float(t[-1]) if len(t) else float("nan"),
        jitter_ms=_jitter_ms(t, breaks) if regular else float("nan"),
        n_breaks=int(breaks.sum()),
        longest_break_s=float(steps[breaks].max()) if breaks.any() else 0.0,
        n_backward=int(np.sum(steps < 0)),
    )


def lag(first: tuple[str, Floats, Floats], second: tuple[str, Floats, Floats]) -> Lag:
    """Return the lag between two signals, each (name, t (n,) in seconds, value (n,)).

    Both are brought to a grid of 250 Hz where they overlap, high-passed by subtracting a running mean of two seconds,
    and compared at lags up to half a second; the peak is refined by a parabola.
    """
    (name_a, t_a, v_a), (name_b, t_b, v_b) = first, second
    reach = MAX_LAG_MS / 1000
    start, end = max(t_a[0], t_b[0]) + reach, min(t_a[-1], t_b[-1]) - reach
    if end - start < 4 * reach:
        return Lag(name_a, name_b, float("nan"), float("nan"), clear=False)
    grid = np.arange(start, end, 1 / GRID_HZ)
    n_lags = round(reach * GRID_HZ)
    wide = np.arange(-n_lags, len(grid) + n_lags) / GRID_HZ + grid[0]
    a, b = _quick(np.interp(grid, t_a, v_a)), _quick(np.interp(wide, t_b, v_b))
    scores = np.array([_correlation(a, b[n_lags - k : n_lags - k + len(grid)]) for k in range(-n_lags, n_lags + 1)])
    best = int(np.argmax(np.abs(scores)))
    inside = 0 < best < len(scores) - 1
    shift = _peak(np.abs(scores[best - 1 : best + 2])) if inside else 0.0
    clear = bool(inside and abs(scores[best]) >= CLEAR_CORRELATION)
    return Lag(name_a, name_b, 1000 * (best - n_lags + shift) / GRID_HZ, float(scores[best]), clear)


def check(timings: Sequence[StreamTiming], lags: Sequence[Lag]) -> ck.Check:
    """Return the check: the largest clear lag is below 50 ms.

    Without one it is unknown: jitter as received is taken out by de-jittering, and a constant delay doesn't show in it.
    """
    clear = [abs(one.lag_ms) for one in lags if one.clear]
    if clear:
        return ck.synchronisation(max(clear))
    found = ck.synchronisation(None)
    worst = max((one.jitter_ms for one in timings if np.isfinite(one.jitter_ms)), default=float("nan"))
    text = f"no event shared by two streams tells the delay between them; stamps as received jitter by {worst:.1f} ms"
    return ck.Check(found.name, "unknown", None, found.bound, text)


def _jitter_ms(t: Floats, breaks: npt.NDArray[np.bool_]) -> float:
    """Distance of stamps from a straight line through each unbroken stretch."""
    distances = []
    for part in np.split(t, np.flatnonzero(breaks) + 1):
        if len(part) > 2:
            n = np.arange(len(part))
            distances.append(np.abs(part - np.polyval(np.polyfit(n, part, 1), n)))
    return 1000 * float(np.quantile(np.concatenate(distances), 0.95)) if distances else float("nan")


def _quick(values: Floats) -> Floats:
    """Subtract a running mean of two seconds."""
    size = round(2 * GRID_HZ) | 1
    padded = np.pad(values, size // 2, mode="edge")
    total = np.cumsum(np.concatenate([[0.0], padded]))
    return np.asarray(values - (total[size:] - total[:-size]) / size)


def _correlation(a: Floats, b: Floats) -> float:
    spread = float(a.std() * b.std())
    return float(np.mean((a - a.mean()) * (b - b.mean()))) / spread if spread > 0 else 0.0


def _peak(three: Floats) -> float:
    """Return where the parabola through three points has its top, relative to the middle one."""
    bend = three[0] - 2 * three[1] + three[2]
    return float(0.5 * (three[0] - three[2]) / bend) if bend < 0 else 0.0
