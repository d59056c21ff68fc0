"""The truth about a stream's time: rate, jitter, offset, drift, gaps, reordering, clock jumps.

Pure: stamps and arrival times in, figures out. All times are host-monotonic nanoseconds; the stamp is when a sample
says it was taken, the arrival is when it reached this process.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from edge.clock import NS_PER_MS, NS_PER_S
from edge.records import NAN

Verdict = Literal["ok", "duplicate", "reordered", "gap", "jump"]

JUMP_NS = NS_PER_S  #: stamps that leap back by more, or lie further in the future, are another clock, not late samples
GAP_INTERVALS = 3.0  #: a step of more than three usual intervals is a gap
BURST_INTERVALS = 2.0  #: and of more than two of the long ones, where samples come in bursts of equal stamps
_WINDOW = 1024
_DRIFT_POINTS = 600
_MIN_DRIFT_POINTS = 30


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What is known of a stream. nan where too little came to tell.

    `measured_hz` counts samples over the time that their stamps span, gaps left out. `jitter_ms` is the standard
    deviation of the interval between samples. `offset_ms` is the median of arrival minus stamp, `drift_ppm` the slope
    of its smallest values per second. `age_ms`: how long ago the newest sample arrived.
    """

    name: str
    declared_hz: float
    measured_hz: float
    jitter_ms: float
    offset_ms: float
    drift_ppm: float
    samples: int
    gaps: int
    lost_ms: float
    reordered: int
    duplicates: int
    jumps: int
    age_ms: float
    silent: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class StreamMonitor:
    """Follows one stream.

    Parameters
    ----------
    name : str
        The stream's name in events and metrics.
    declared_hz : float
        The rate that the stream declares; 0 if it declares none.
    silent_ms : int
        A stream from which nothing arrives for longer is silent.
    """

    def __init__(self, name: str, declared_hz: float, silent_ms: int) -> None:
        self.name, self.declared_hz, self.silent_ns = name, declared_hz, silent_ms * NS_PER_MS
        self._steps: deque[tuple[int, int, int]] = deque(maxlen=_WINDOW)  # step, samples that it covers, offset
        self._minute: deque[tuple[int, int]] = deque(maxlen=_DRIFT_POINTS)  # (second, least arrival - stamp in it)
        self._previous_ns: int | None = None
        self._usual_ns = self._gap_ns = NAN
        self._quickest_ns: int | None = None
        self._arrived_ns: int | None = None
        self._taken = self._samples = self._gaps = self._lost_ns = self._reordered = self._duplicates = self._jumps = 0

    def add(self, t_ns: int, arrival_ns: int, passed: int = 1) -> Verdict:
        """Take one sample; say what is odd about its stamp. A jump begins the stream's statistics anew.

        `passed`: how many samples the stream gave since the one before, where some were skipped on purpose.
        """
        self._samples += passed
        self._arrived_ns = arrival_ns
        step_ns = 0 if self._previous_ns is None else t_ns - self._previous_ns
        verdict = self._judge(step_ns, max(1, passed), arrival_ns - t_ns)
        if verdict == "jump":
            self._steps.clear()
            self._minute.clear()
            self._quickest_ns = None
        elif verdict != "gap" and self._previous_ns is not None:
            self._steps.append((max(0, step_ns), max(1, passed), arrival_ns - t_ns))
        if verdict not in ("reordered", "duplicate"):
            self._previous_ns = t_ns
            self._note_offset(arrival_ns - t_ns, arrival_ns // NS_PER_S)
        self._taken += 1
        if self._taken % 64 == 0:
            self._learn_intervals()
        return verdict

    def silent(self, now_ns: int) -> bool:
        """Whether the stream has been silent for longer than its bound; one that never spoke is silent."""
        return self._arrived_ns is None or now_ns - self._arrived_ns > self.silent_ns

    def stats(self, now_ns: int) -> StreamStats:
        """Return the stream's figures as of `now_ns`."""
        steps, passed, offsets = np.array(self._steps, dtype=np.float64).reshape(-1, 3).T
        hz = jitter_ms = offset_ms = NAN
        if len(steps) >= 2 and steps.sum() > 0:
            hz = float(passed.sum() * NS_PER_S / steps.sum())
            jitter_ms = float(np.std(steps / passed)) / NS_PER_MS
            offset_ms = float(np.median(offsets)) / NS_PER_MS
        return StreamStats(
            self.name,
            self.declared_hz,
            hz,
            jitter_ms,
            offset_ms,
            self._drift_ppm(),
            self._samples,
            self._gaps,
            self._lost_ns / NS_PER_MS,
            self._reordered,
            self._duplicates,
            self._jumps,
            NAN if self._arrived_ns is None else max(0, now_ns - self._arrived_ns) / NS_PER_MS,
            self.silent(now_ns),
        )

    def _judge(self, step_ns: int, passed: int, offset_ns: int) -> Verdict:
        if self._previous_ns is None:
            return "ok"
        from_the_future = self._quickest_ns is not None and offset_ns < self._quickest_ns - JUMP_NS
        if step_ns < -JUMP_NS or from_the_future:
            self._jumps += 1
            return "jump"
        if step_ns < 0:
            self._reordered += 1
            return "reordered"
        if step_ns == 0:
            self._duplicates += 1
            return "duplicate"
        if step_ns / passed > self._gap_ns:  # False while that is nan
            self._gaps += 1
            self._lost_ns += step_ns - int(self._usual_ns * passed)
            return "gap"
        return "ok"

    def _learn_intervals(self) -> None:
        """Learn the usual interval as a mean: with samples in bursts of equal stamps the median would be near 0."""
        if len(self._steps) < 8:
            return
        intervals = [step / passed for step, passed, _ in self._steps]
        long = float(np.percentile(intervals, 95))
        self._usual_ns = float(np.mean(intervals))
        self._gap_ns = max(GAP_INTERVALS * self._usual_ns, BURST_INTERVALS * long)

    def _note_offset(self, offset_ns: int, second: int) -> None:
        self._quickest_ns = offset_ns if self._quickest_ns is None else min(offset_ns, self._quickest_ns)
        if self._minute and self._minute[-1][0] == second:
            self._minute[-1] = (second, min(offset_ns, self._minute[-1][1]))
        else:
            self._minute.append((second, offset_ns))

    def _drift_ppm(self) -> float:
        if len(self._minute) < _MIN_DRIFT_POINTS:
            return NAN
        seconds, offsets = np.array(self._minute, dtype=np.float64).T
        slope_ns_per_s = np.polyfit(seconds - seconds[0], offsets - offsets[0], 1)[0]
        return float(slope_ns_per_s) / 1000
