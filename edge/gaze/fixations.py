"""Fixations from gaze, sample by sample: the velocity-threshold identification (I-VT).

After Salvucci and Goldberg (2000) and, for gap fill, merging and discarding, Olsen (2012), "The Tobii I-VT fixation
filter". The steps, in order:

1. A loss of up to `gap_ms` is filled by linear interpolation; filled points carry velocity but are no samples of a
   fixation. A longer loss ends the fixation and is reported: as a blink where samples came but were not valid for at
   most 500 ms, else as a gap. Fast points next to a blink (the lid on its way) belong to the blink.
2. The angular velocity of a point is the least-squares slope over the closed, centred window of max(window_ms, 3
   samples), converted to samples by the *measured* rate.
3. Points slower than `velocity_deg_s` in a row are one candidate. Below 150 Hz, where the window is three samples wide,
   its outermost samples are added if they lie still beside it.
4. Neighbours at most `merge_ms` and `merge_deg` apart are merged. This is decided once the later one is `min_ms` long.
5. What is shorter than `min_ms` is discarded.

Decisions therefore come half a window (at least two samples) late, and an *end* up to `merge_ms` later. A sample that
comes up to 100 ms late is put into its place while that is undecided; a clock that runs back further ends the fixation
and starts afresh: nothing spans it. Angles are great-circle ones, so the seam at +-180 degrees is none.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from edge.config import FixationConfig
from edge.gaze.angles import wrap_deg
from edge.gaze.candidates import Joiner
from edge.records import NAN, Fixation, GazeSample

BLINK_MAX_NS = 500_000_000  #: a longer loss is one of tracking (lids close for 100 to 400 ms in a blink)
RAMP_MAX_NS = 100_000_000  #: at most so much of the fast movement beside a blink belongs to it
CLOSED = 0.2  #: eyes at least 80 % closed see nothing (the P80 of PERCLOS)
RATE_WINDOW = 256  #: steps that the measured rate rests on
HOLE_NS = 100_000_000  #: a longer step is no sample period
LONGEST_PERIOD_NS = 20_000_000  #: taken where the rate can't be measured
LATE_NS = 100_000_000  #: a sample that is late by less is put into its place; by more, the clock has jumped
BURST_SPREAD = 0.1  #: stamps that spread by less of what even ones would (as a variance) are those of a burst
BURST_HOLE_NS = 1_000_000_000  #: and a longer step is no pause between two bursts
WARM_UP = 16  #: samples awaited before the first decision where no rate is declared


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time, from the first lost sample to the first good one."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class FixationResult:
    """What `detect` found. Rates are 0 where none was declared and nan where none could be measured."""

    fixations: list[Fixation]
    blinks: list[Interval]
    gaps: list[Interval]
    clock_jumps: list[Interval]
    n_samples: int
    n_invalid: int
    n_late: int
    hz_declared: float
    hz_measured: float


def detect(samples: Iterable[GazeSample], settings: FixationConfig, hz: float = 0.0) -> FixationResult:
    """Find the fixations of a recording with the streaming detector.

    Parameters
    ----------
    samples : iterable of GazeSample
        In order of arrival; `x_deg` and `y_deg` are needed, pixels may be nan.
    settings : FixationConfig
        Thresholds.
    hz : float
        Declared sample rate, 0 if none.
    """
    detector = FixationDetector(settings, hz)
    fixations: list[Fixation] = []
    times = array("q")
    for sample in samples:
        fixations += detector.add(sample)
        times.append(sample.t_ns)
    fixations += detector.flush()
    return FixationResult(
        fixations=fixations,
        blinks=detector.blinks,
        gaps=detector.gaps,
        clock_jumps=detector.clock_jumps,
        n_samples=detector.n_samples,
        n_invalid=detector.n_invalid,
        n_late=detector.n_late,
        hz_declared=hz,
        hz_measured=1e9 / robust_period_ns(later - earlier for earlier, later in pairwise(times)),
    )


def usable(sample: GazeSample) -> bool:
    """Whether a sample says where an open eye looks."""
    seen = sample.valid and sample.confidence > 0 and not sample.openness < CLOSED
    return seen and math.isfinite(sample.x_deg) and math.isfinite(sample.y_deg)


def robust_period_ns(steps_ns: Iterable[int]) -> float:
    """Return the sample period (ns) of a stream from its time steps; nan where it can't be told.

    The median step, which missing rows don't move. Where stamps come in bursts the median is near 0, and the mean of
    the steps up to a second is taken instead.
    """
    given = [step for step in steps_ns if 0 <= step <= BURST_HOLE_NS]
    steps = sorted(step for step in given if step <= HOLE_NS)
    if steps and (median := float(steps[len(steps) // 2])) >= 0.5 * sum(steps) / len(steps) > 0:
        return median
    return sum(given) / len(given) if any(given) else NAN


_Point = tuple[int, float, float, GazeSample | None]  # time, degrees; no sample: filled in


class FixationDetector:
    """Streaming I-VT; the steps are those of this module's head.

    Parameters
    ----------
    settings : FixationConfig
        Thresholds.
    hz : float
        Declared sample rate, used until one is measured; 0: the first samples are held back until then.

    Attributes
    ----------
    blinks, gaps : list of Interval
        Losses longer than `gap_ms`, as they ended.
    clock_jumps : list of Interval
        Where time ran backwards: the last stamp before and the first after.
    """

    def __init__(self, settings: FixationConfig, hz: float = 0.0) -> None:
        self._threshold = settings.velocity_deg_s
        self._window_ns, self._gap_ns = settings.window_ms * 1e6, settings.gap_ms * 1e6
        self._joiner = Joiner(settings)
        self.blinks: list[Interval] = []
        self.gaps: list[Interval] = []
        self.clock_jumps: list[Interval] = []
        self.n_samples = self.n_invalid = self.n_late = 0
        self._period_ns = 1e9 / hz if hz else NAN
        self._steps: deque[int] = deque(maxlen=RATE_WINDOW)
        self._held: list[GazeSample] = []
        self._newest_ns: int | None = None
        self._restart()

    @property
    def current(self) -> Fixation | None:
        """The fixation that goes on, or None. It may still be merged with the one before."""
        return self._joiner.current

    @property
    def hz_measured(self) -> float:
        """The rate (Hz) of the newest samples; nan before it could be measured."""
        return 1e9 / robust_period_ns(self._steps)

    def add(self, sample: GazeSample) -> list[Fixation]:
        """Take the next sample and return the fixations that are now known to have ended."""
        self.n_samples += 1
        late_ns = self._newest_ns - sample.t_ns if self._newest_ns is not None else 0
        if self._newest_ns is not None:
            self._steps.append(-late_ns)
        if not 0 < late_ns <= LATE_NS:
            self._newest_ns = sample.t_ns
        if self.n_samples % (RATE_WINDOW // 4) == 0:
            self._measure()
        if math.isnan(self._period_ns):
            self._held.append(sample)
            return self._begin() if len(self._held) >= WARM_UP else []
        return self._take(sample)

    def flush(self) -> list[Fixation]:
        """End the stream: return the fixations that were still open."""
        return self._begin() + self._end_clock()

    def _begin(self) -> list[Fixation]:
        """Measure the rate and take the samples that waited for it."""
        held, self._held = self._held, []
        if held:
            self._measure()
            if math.isnan(self._period_ns):
                self._period_ns = LONGEST_PERIOD_NS
        return [fixation for sample in held for fixation in self._take(sample)]

    def _measure(self) -> None:
        period_ns = robust_period_ns(self._steps)
        if not math.isnan(period_ns):
            self._period_ns = period_ns

    def _restart(self) -> None:
        self._points: list[_Point] = []  # of the segment: a stretch without a longer loss
        self._next = 0  # the first of them whose velocity is not decided
        self._last_ns: int | None = None  # of the newest sample of this clock
        self._good_ns: int | None = None  # of the newest usable one
        self._lost_since: int | None = None
        self._n_lost = 0
        self._slow = False  # the newest decided point
        self._fast_since: int | None = None
        self._blink: Interval | None = None  # whose end may still move

    def _take(self, sample: GazeSample) -> list[Fixation]:
        done: list[Fixation] = []
        t_ns = sample.t_ns
        if self._last_ns is not None and 0 < self._last_ns - t_ns <= LATE_NS:
            self._put_late(sample)
            return done
        if self._last_ns is not None and t_ns < self._last_ns:
            done = self._end_clock()
            self.clock_jumps.append(Interval(self._last_ns, t_ns))
            self._restart()
        self._last_ns = t_ns
        since_ns = t_ns - self._good_ns if self._good_ns is not None else 0
        broken = since_ns > max(self._gap_ns, 1.5 * self._period_ns)
        if broken:
            done += self._end_segment() + self._joiner.wait(t_ns)
        if not usable(sample):
            self.n_invalid += 1
            self._n_lost += 1
            self._lost_since = t_ns if self._lost_since is None else self._lost_since
            return done
        if broken or self._good_ns is None:
            self._end_loss(t_ns)
        elif since_ns > 1.5 * self._period_ns:
            self._fill(sample, since_ns)
        self._good_ns, self._n_lost, self._lost_since = t_ns, 0, None
        self._points.append((t_ns, sample.x_deg, sample.y_deg, sample))
        return done + self._decide(max(2, self._half))

    def _put_late(self, sample: GazeSample) -> None:
        """Put a sample that comes a little late where it belongs, if nothing is decided there yet."""
        self.n_late += 1
        if not usable(sample):
            self.n_invalid += 1
            return
        place = bisect_right(self._points, sample.t_ns, key=lambda point: point[0])
        if place > self._next:
            self._points.insert(place, (sample.t_ns, sample.x_deg, sample.y_deg, sample))

    @property
    def _half(self) -> int:
        """Samples on each side of the velocity window's centre."""
        return max(1, round(self._window_ns / 2 / self._period_ns))

    def _fill(self, sample: GazeSample, since_ns: int) -> None:
        """Interpolate a short loss linearly, at the measured period."""
        t0, x0, y0, _ = self._points[-1]
        n = round(since_ns / self._period_ns)
        dx, dy = wrap_deg(sample.x_deg - x0), sample.y_deg - y0
        for i in range(1, n):
            self._points.append((t0 + since_ns * i // n, x0 + dx * i / n, y0 + dy * i / n, None))

    def _decide(self, ahead: int) -> list[Fixation]:
        """Tell slow from fast for every point that has `ahead` later ones."""
        done: list[Fixation] = []
        half = self._half
        while self._next < len(self._points) - ahead:
            t_ns, _, _, sample = self._points[self._next]
            slow = self._speed(self._next, half, half) <= self._threshold
            joins = 0 if slow or half > 1 else self._edge(self._next)
            if sample and (slow or joins < 0):
                done += self._joiner.slow(sample)
            if not slow:
                done += self._joiner.fast(t_ns)
            if sample and joins > 0:
                done += self._joiner.slow(sample)
            self._note(t_ns, still=slow or joins != 0)
            self._slow, self._next = slow, self._next + 1
        if self._next > 4 * half + RATE_WINDOW:
            del self._points[: self._next - 2 * half]
            self._next = 2 * half
        return done

    def _note(self, t_ns: int, *, still: bool) -> None:
        """Keep since when the eye is fast; what is fast right after a blink is the lid."""
        if still:
            self._fast_since = None
        elif self._fast_since is None:
            self._fast_since = t_ns
        if self._blink and (still or t_ns > self._blink.end_ns + RAMP_MAX_NS):
            self._end_blink(t_ns)

    def _edge(self, i: int) -> int:
        """Tell whether a fast point is the last of the run before (-1), the first of the next (1), or neither (0).

        At low rates the window reaches a whole sample to each side, so that the sample before a saccade and the one
        after it look fast. They belong to the run whose nearest sample is slow and hasn't moved away from them.
        """
        if self._slow and i > 0 and self._speed(i, 1, 0) <= self._threshold:
            return -1
        more = i + 1 < len(self._points)
        return int(more and self._speed(i + 1, 1, 1) <= self._threshold and self._speed(i, 0, 1) <= self._threshold)

    def _speed(self, centre: int, behind: int, ahead: int) -> float:
        """Return the angular speed (deg/s) at a point: the least-squares slope over so many points around it."""
        points = self._points[max(0, centre - behind) : centre + ahead + 1]
        t0, x0, y0, _ = self._points[centre]
        n = len(points)
        st = sx = sy = stt = stx = sty = 0.0
        for t_ns, x, y, _ in points:
            t, dx, dy = (t_ns - t0) * 1e-9, x - x0, y - y0
            if not -180.0 <= dx < 180.0:
                dx = wrap_deg(dx)
            st += t
            sx += dx
            sy += dy
            stt += t * t
            stx += t * dx
            sty += t * dy
        if n < 2:
            return math.inf
        spread = n * stt - st * st
        nominal = n * n * (n * n - 1) / 12 * (self._period_ns * 1e-9) ** 2
        if spread < BURST_SPREAD * nominal:  # a burst of about equal stamps: take its samples as evenly spaced
            evenly = [(i - (n - 1) / 2) * self._period_ns * 1e-9 for i in range(n)]
            stx = sum(t * wrap_deg(x - x0) for t, (_, x, _, _) in zip(evenly, points, strict=True))
            sty = sum(t * (y - y0) for t, (_, _, y, _) in zip(evenly, points, strict=True))
            st, spread = 0.0, nominal
        scale = math.cos(math.radians(y0))
        return math.hypot(scale * (n * stx - st * sx), n * sty - st * sy) / spread

    def _end_segment(self) -> list[Fixation]:
        """A longer loss has begun: decide what waits, and end the candidate."""
        if not self._points:
            return []
        done = self._decide(0) + self._joiner.fast(self._points[-1][0])
        self._points, self._next, self._slow = [], 0, False
        if self._blink:
            self._end_blink(self._blink.end_ns)
        return done

    def _end_loss(self, t_ns: int) -> None:
        """The first usable sample after a loss, or after the start, has come at `t_ns`: say what the loss was."""
        if self._good_ns is None:
            if self._lost_since is not None and t_ns - self._lost_since > self._gap_ns:
                self.gaps.append(Interval(self._lost_since, t_ns))
            return
        start_ns, lost_ns = round(self._good_ns + self._period_ns), t_ns - self._good_ns
        eye_lost = self._n_lost >= 0.5 * (lost_ns / self._period_ns - 1)
        if eye_lost and lost_ns <= BLINK_MAX_NS:
            if self._fast_since is not None:
                start_ns = max(self._fast_since, start_ns - RAMP_MAX_NS)
            self._blink = Interval(start_ns, t_ns)
        else:
            self.gaps.append(Interval(start_ns, t_ns))
        self._fast_since = None

    def _end_blink(self, t_ns: int) -> None:
        if self._blink:
            end_ns = min(t_ns, self._blink.end_ns + RAMP_MAX_NS)
            self.blinks.append(Interval(self._blink.start_ns, end_ns))
            self._blink = None

    def _end_clock(self) -> list[Fixation]:
        """The stream or its clock ends: a loss that goes on is a gap."""
        done = self._end_segment() + self._joiner.end()
        if self._blink:
            self._end_blink(self._blink.end_ns)
        if self._lost_since is not None and self._last_ns is not None:
            if self._last_ns - self._lost_since > self._gap_ns:
                self.gaps.append(Interval(self._lost_since, self._last_ns))
            self._lost_since = None
        return done
