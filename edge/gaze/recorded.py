"""Gaze from a file: whole columns in memory, handed out sample by sample on the file's own clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.clock import NS_PER_S
from edge.config import GazeConfig
from edge.errors import ConfigError, EmptyError, SourceError
from edge.gaze.geometry import GEOMETRY_HINTS, Geometry
from edge.gaze.sources.base import GazeFrame, GazeInfo, GazeSource, GazeUnits
from edge.records import RawGaze

Floats = npt.NDArray[np.float64]
MAX_HZ, MAX_STEP_S = 10_000.0, 1.0  #: beyond which no eye tracker samples
CHUNK = 8192  #: samples that an iteration makes at a time


@dataclass(slots=True)
class GazeTable:
    """Columns of a recording, each (n,): times in int64 nanoseconds; what the file lacks is left None."""

    t_ns: npt.NDArray[np.int64]
    x: Floats
    y: Floats
    valid: npt.NDArray[np.bool_] | None = None
    confidence: Floats | None = None
    pupil_mm: Floats | None = None
    openness: Floats | None = None

    @classmethod
    def of_columns(cls, t_ns: npt.NDArray[np.int64], column: Mapping[str, Floats]) -> GazeTable:
        """Return a table of columns by their meaning: x, y, and any of the others; `valid` counts as true above 0."""
        others = {name: column.get(name) for name in ("confidence", "pupil_mm", "openness")}
        return cls(t_ns, column["x"], column["y"], valid=column["valid"] > 0 if "valid" in column else None, **others)

    def __len__(self) -> int:
        return len(self.t_ns)


@dataclass(slots=True)
class Declared:
    """What a file says of itself; the configuration wins over it."""

    time_unit: str = ""
    units: str = ""
    frame: str = ""
    origin: str = ""
    geometry: Geometry | None = None
    hz: float = 0.0
    simulated: bool = False
    device: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Something that a recording leaves open, and the setting that declares it."""

    what: str
    setting: str


class RecordedGaze(GazeSource):
    """A recording behind the contract of a gaze source. Its order is kept, even where its clock runs backwards."""

    def __init__(
        self, info: GazeInfo, table: GazeTable, *, geometry: Geometry | None = None, offset_ms: float = 0.0
    ) -> None:
        if not len(table):
            raise EmptyError(info.source, "holds no gaze sample")
        self.info, self.geometry = info, geometry
        self._next = 0
        n = len(table)
        finite = np.isfinite(table.x) & np.isfinite(table.y)
        self._t_ns = table.t_ns + round(offset_ms * 1e6)
        self._due_ns = np.maximum.accumulate(self._t_ns)  # in order, even where the clock runs backwards
        self._rest = (
            table.x,
            table.y,
            _filled(table.confidence, 1.0, n),
            finite if table.valid is None else finite & table.valid,
            _filled(table.pupil_mm, np.nan, n),
            _filled(table.openness, np.nan, n),
        )
        if n > 1 and self._due_ns[-1] == self._due_ns[0]:
            raise SourceError(info.source, f"its times don't increase: none of {n} samples is later than the first")
        self.doubt = _doubt(self._rest[3], self._t_ns)

    @property
    def span_ns(self) -> tuple[int, int]:
        """First and last time of the recording."""
        return int(self._t_ns.min()), int(self._t_ns.max())

    def read_until(self, t_ns: int) -> list[RawGaze]:
        return self._take(int(np.searchsorted(self._due_ns, t_ns, side="right")))

    def __iter__(self) -> Iterator[RawGaze]:
        """Give the samples that are left, in bounded memory however long the recording is."""
        while not self.ended:
            yield from self._take(min(self._next + CHUNK, len(self._t_ns)))

    def __length_hint__(self) -> int:
        """Return how many samples are left, for who shows progress."""
        return len(self._t_ns) - self._next

    @property
    def ended(self) -> bool:
        return self._next >= len(self._t_ns)

    def close(self) -> None:
        self._next = len(self._t_ns)

    def _take(self, end: int) -> list[RawGaze]:
        start, self._next = self._next, max(self._next, end)
        columns = (column[start : self._next].tolist() for column in (self._t_ns, *self._rest))
        return [RawGaze(*row) for row in zip(range(start, self._next), *columns, strict=True)]


def _doubt(valid: npt.NDArray[np.bool_], t_ns: npt.NDArray[np.int64]) -> str:
    if not valid.any():
        return f"none of its {len(valid)} samples is valid: no fixation and no score can come of it"
    if len(valid) == 1:
        return "holds one sample: no rate, no fixation and no score can come of it"
    # By the whole time and by the median step: neither bursts nor pauses nor a clock that starts anew raise a doubt.
    span_s, step_s = float(np.ptp(t_ns)) / NS_PER_S, float(np.median(np.abs(np.diff(t_ns)))) / NS_PER_S
    if len(valid) > MAX_HZ * span_s:
        return f"holds {len(valid)} samples in {span_s:g} s, as no eye tracker does: check gaze.time_unit"
    if step_s > MAX_STEP_S:
        return f"holds samples {step_s:g} s apart, as no eye tracker does: check gaze.time_unit"
    return ""


def _filled(column: Floats | None, default: float, n: int) -> Floats:
    return np.broadcast_to(np.float64(default), n) if column is None else column


def gaze_info(
    config: GazeConfig, declared: Declared, geometry: Geometry | None, *, also: Sequence[Undeclared] = ()
) -> GazeInfo:
    """Return what a recording declares, by the configuration first, then by the file itself.

    A unit follows from a frame, and a frame from a unit where the geometry leaves one choice.

    Raises
    ------
    ConfigError
        Frame or unit is undeclared, or there is something in `also`: what else of the recording is. All are named.
    """
    units, frame = config.units or declared.units, config.frame or declared.frame
    frame = frame or _frame_of(units, geometry)
    units = units or ("" if frame in ("", "direction") else frame.rpartition("_")[2])
    lacking = list(also)
    if not frame:
        choices = "gaze.frame=scene_px (or scene_norm, screen_px, screen_norm, direction)"
        lacking.append(Undeclared("the frame of x and y", choices))
    elif not units:
        lacking.append(Undeclared("the unit of the direction", "gaze.units=deg (or vector)"))
    if lacking:
        raise _undeclared(config.source, lacking, frame, geometry)
    origin = declared.origin if declared.origin and config.origin == "top-left" else config.origin
    return GazeInfo(
        source=config.source,
        frame=_frame(frame, config.source),
        units=_units(units, config.source),
        origin="bottom-left" if origin == "bottom-left" else "top-left",
        live=False,
        hz_declared=declared.hz,
        simulated=declared.simulated,
        device=declared.device,
        note=declared.note,
    )


def _frame_of(units: str, geometry: Geometry | None) -> str:
    if units in ("deg", "vector"):
        return "direction"
    if units in ("px", "norm") and geometry and (geometry.camera is None) != (geometry.screen is None):
        return f"{'screen' if geometry.screen else 'scene'}_{units}"
    return ""


def _undeclared(source: str, lacking: list[Undeclared], frame: str, geometry: Geometry | None) -> ConfigError:
    """Name all that is lacking in one line; the geometry too, where the frame needs one."""
    part = "screen" if frame.startswith("screen") else "camera"
    if frame != "direction" and getattr(geometry, part, None) is None:
        lacking = [*lacking, Undeclared("the geometry", GEOMETRY_HINTS[part if frame else ""])]
    whats = [one.what for one in lacking]
    listed = " and ".join(filter(None, (", ".join(whats[:-1]), whats[-1])))
    problem = f"{listed} {'is' if len(whats) == 1 else 'are'} undeclared"
    return ConfigError(source, problem, fix="add " + " ".join(f"--set {one.setting}" for one in lacking))


def _frame(text: str, source: str) -> GazeFrame:
    for frame in ("scene_px", "scene_norm", "screen_px", "screen_norm", "direction"):
        if text == frame:
            return frame
    raise ConfigError(source, f"declares an unknown frame {text!r}")


def _units(text: str, source: str) -> GazeUnits:
    for units in ("px", "norm", "deg", "vector"):
        if text == units:
            return units
    raise ConfigError(source, f"declares unknown units {text!r}")
