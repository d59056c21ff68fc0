"""The contract of a frame source.

A plug-in module in this folder defines ``open_source(scene: SceneConfig, role: Role) -> FrameSource`` and
``matches(source: str) -> bool`` (does this source text belong to me?).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from edge.records import Frame


@dataclass(frozen=True, slots=True)
class FrameInfo:
    """What a source says of itself once it is open. `live` sources are on the host's clock and may be reopened."""

    source: str
    width: int
    height: int
    declared_hz: float
    live: bool
    n_frames: int | None = None
    rotation_deg: int = 0
    note: str = ""


class FrameSource(ABC):
    """Pictures of one camera, in order of time. Use as a context manager."""

    info: FrameInfo

    @abstractmethod
    def read(self, timeout_s: float = 1.0) -> Frame | None:
        """Return the next frame (a live source: the newest), or None at the end of a file or after `timeout_s`.

        Raises
        ------
        SourceError
            The source can't be read.
        """

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether no frame will come any more."""

    @abstractmethod
    def close(self) -> None:
        """Free the source. May be called twice."""

    def __enter__(self) -> FrameSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
