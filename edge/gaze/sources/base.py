"""The contract of a gaze source.

A plug-in module in this folder defines ``open_source(gaze: GazeConfig) -> GazeSource`` and
``matches(source: str) -> bool`` (does this source text belong to me?). A source declares its frame and unit;
`edge.gaze.mapping` turns its samples into scene pixels and degrees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from edge.gaze.geometry import Geometry
from edge.records import RawGaze

GazeFrame = Literal["scene_px", "scene_norm", "screen_px", "screen_norm", "direction"]
GazeUnits = Literal["px", "norm", "deg", "vector"]


@dataclass(frozen=True, slots=True)
class GazeInfo:
    """What a gaze source declares. `hz_declared` is 0 where it declares none; `simulated` rides into every output."""

    source: str
    frame: GazeFrame
    units: GazeUnits
    origin: Literal["top-left", "bottom-left"]
    live: bool
    hz_declared: float = 0.0
    simulated: bool = False
    device: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class StreamNote:
    """Something that happened to a live stream, for the event log."""

    t_ns: int
    kind: str
    detail: dict[str, Any]


class GazeSource(ABC):
    """Gaze samples in order of time. Use as a context manager."""

    info: GazeInfo
    geometry: Geometry | None = None  #: what the source itself knows of its camera or screen
    doubt: str = ""  #: why nothing can come of a recording, though it can be read

    @abstractmethod
    def read_until(self, t_ns: int) -> list[RawGaze]:
        """Return the samples not yet given whose time is at most `t_ns` (a live source: all that have arrived)."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether no sample will come any more."""

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last time of a recording; None where they aren't known."""
        return None

    def notes(self) -> list[StreamNote]:
        """Return what happened to a live stream since the last call: silence, loss, return, time correction."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Free the source. May be called twice."""

    def __iter__(self) -> Iterator[RawGaze]:
        """Give the samples that are left (a live source: those that have arrived)."""
        yield from self.read_until(2**63 - 1)

    def __enter__(self) -> GazeSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
