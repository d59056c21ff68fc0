"""From runs of slow gaze samples to fixations: merging, discarding, numbering."""

from __future__ import annotations

import math

from edge.config import FixationConfig
from edge.gaze.angles import angle_deg, wrap_deg
from edge.records import Fixation, GazeSample


class Run:
    """Samples of one candidate: moments about its first sample, so that its length costs nothing."""

    __slots__ = ("end_ns", "fixation_id", "n", "start_ns", "sums", "sums_px", "x0", "y0")

    def __init__(self, sample: GazeSample) -> None:
        self.x0, self.y0 = sample.x_deg, sample.y_deg
        self.start_ns = self.end_ns = sample.t_ns
        self.n = 0
        self.sums = (0.0, 0.0, 0.0, 0.0)  # of x, y, x*x, y*y in degrees from (x0, y0)
        self.sums_px = (0.0, 0.0)
        self.fixation_id = -1
        self.add(sample)

    def add(self, sample: GazeSample) -> None:
        x, y = wrap_deg(sample.x_deg - self.x0), sample.y_deg - self.y0
        sx, sy, sxx, syy = self.sums
        self.sums = (sx + x, sy + y, sxx + x * x, syy + y * y)
        self.sums_px = (self.sums_px[0] + sample.x_px, self.sums_px[1] + sample.y_px)
        self.n += 1
        self.end_ns = sample.t_ns

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def centre(self) -> tuple[float, float]:
        return wrap_deg(self.x0 + self.sums[0] / self.n), self.y0 + self.sums[1] / self.n

    @property
    def dispersion_deg(self) -> float:
        """RMS angle from the centroid (deg)."""
        sx, sy, sxx, syy = self.sums
        narrow = math.cos(math.radians(self.centre[1])) ** 2
        return math.sqrt(max(0.0, narrow * (sxx / self.n - (sx / self.n) ** 2) + syy / self.n - (sy / self.n) ** 2))

    def joined(self, later: Run) -> Run:
        """Return this run with the samples of `later` added; the number stays this one's."""
        run = Run.__new__(Run)
        run.x0, run.y0, run.start_ns, run.end_ns = self.x0, self.y0, self.start_ns, later.end_ns
        dx, dy, n = wrap_deg(later.x0 - self.x0), later.y0 - self.y0, later.n
        sx, sy, sxx, syy = later.sums
        run.sums = (
            self.sums[0] + sx + n * dx,
            self.sums[1] + sy + n * dy,
            self.sums[2] + sxx + 2 * dx * sx + n * dx * dx,
            self.sums[3] + syy + 2 * dy * sy + n * dy * dy,
        )
        run.sums_px = (self.sums_px[0] + later.sums_px[0], self.sums_px[1] + later.sums_px[1])
        run.n = self.n + n
        run.fixation_id = self.fixation_id
        return run

    def fixation(self, *, ended: bool) -> Fixation:
        x_deg, y_deg = self.centre
        return Fixation(
            self.fixation_id,
            self.start_ns,
            self.end_ns,
            self.sums_px[0] / self.n,
            self.sums_px[1] / self.n,
            x_deg,
            y_deg,
            self.dispersion_deg,
            self.n,
            "ended" if ended else "ongoing",
        )


class Joiner:
    """Candidates in, fixations out: merging, discarding and numbering (steps 4 and 5)."""

    def __init__(self, settings: FixationConfig) -> None:
        self._merge, self._merge_deg = settings.merge, settings.merge_deg
        self._merge_ns, self._min_ns = settings.merge_ms * 1e6, settings.min_ms * 1e6
        self._run: Run | None = None  # the candidate that grows
        self._pending: Run | None = None  # the one before it, while it may still be merged
        self._next_id = 0

    @property
    def current(self) -> Fixation | None:
        run = self._run
        if run and self._pending and self._near(self._pending, run):
            run = self._pending.joined(run)
        return run.fixation(ended=False) if run and run.fixation_id >= 0 else None

    def slow(self, sample: GazeSample) -> list[Fixation]:
        """Take a sample of low velocity."""
        done: list[Fixation] = []
        if self._run is None:
            done = self.wait(sample.t_ns)
            self._run = Run(sample)
        else:
            self._run.add(sample)
        if self._run.fixation_id < 0 and self._run.duration_ns >= self._min_ns:
            done += self._settle(self._run)
        return done

    def fast(self, t_ns: int) -> list[Fixation]:
        """Take a point of high velocity, or the start of a loss, at `t_ns`."""
        if self._run is None:
            return self.wait(t_ns)
        done = self._settle(self._run)
        self._pending, self._run = self._run, None
        return done if self._merge else done + self._release()

    def wait(self, t_ns: int) -> list[Fixation]:
        """Let go of the pending candidate if a run that starts at `t_ns` would come too late for it."""
        late = self._pending and t_ns - self._pending.end_ns > self._merge_ns
        return self._release() if late else []

    def end(self) -> list[Fixation]:
        """End everything."""
        done = self.fast(self._run.end_ns) if self._run else []
        return done + self._release()

    def _settle(self, run: Run) -> list[Fixation]:
        """Merge the growing candidate with the pending one, or let go of that; number what is long enough."""
        done: list[Fixation] = []
        if self._pending and self._near(self._pending, run):
            run = self._run = self._pending.joined(run)
            self._pending = None
        else:
            done = self._release()
        if run.fixation_id < 0 and run.duration_ns >= self._min_ns:
            run.fixation_id = self._next_id
            self._next_id += 1
        return done

    def _near(self, earlier: Run, later: Run) -> bool:
        apart_ns = later.start_ns - earlier.end_ns
        return apart_ns <= self._merge_ns and angle_deg(*earlier.centre, *later.centre) <= self._merge_deg

    def _release(self) -> list[Fixation]:
        run, self._pending = self._pending, None
        return [run.fixation(ended=True)] if run and run.fixation_id >= 0 else []
