"""The contract of a frame source.

A plug-in module in this folder defines ``open_source(scene: SceneConfig, role: Role) -> FrameSource`` and
``matches(source: str) -> bool`` (does this source text belong to me?). A live one returns
`edge.capture._live.LiveSource` and defines ``open_reader(scene: SceneConfig) -> Reader``, run in the child process.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from edge.errors import SourceError
from edge.records import Frame, Image


@dataclass(frozen=True, slots=True)
class FrameInfo:
    """What a source says of itself once it is open. `live` sources are on the host's clock and may be reopened.

    `zero_s` is when the first picture of a clip comes in its container's time, which the sound beside it is on.
    """

    source: str
    width: int
    height: int
    declared_hz: float
    live: bool
    n_frames: int | None = None
    rotation_deg: int = 0
    note: str = ""
    zero_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How a live source is doing. Times are host-monotonic ns, 0 where there is none yet.

    `absent` is tried again for ever, `stalled` (opens or opened, and delivers nothing) too; `refused` is final. A
    `same_fault` of 2 or more says that reopening ended twice in the same fault without a picture in between.
    """

    state: Literal["opening", "delivering", "stalled", "absent", "refused", "ended"]
    reason: str = ""
    same_fault: int = 0
    captured: int = 0
    dropped: int = 0
    restarts: int = 0
    newest_ns: int = 0
    changed_ns: int = 0


class FrameSource(ABC):
    """Pictures of one camera, in order of time. Use as a context manager."""

    info: FrameInfo

    @property
    def status(self) -> SourceStatus | None:
        """How a live source is doing; None for files."""
        return None

    def count_from_here(self) -> None:  # noqa: B027 - files drop nothing
        """Count what a live source drops from the next picture on: before, nobody was there to take any."""

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


class Reader(ABC):
    """The inside of a live source, run in its child process: opened by construction, read until it fails.

    Raises
    ------
    AbsentError, StalledError
        From the constructor or `read`: worth trying again.
    SourceError
        Not worth trying again.
    """

    info: FrameInfo
    skipped: int = 0  #: pictures that had arrived, and that `read` passed over since a newer one was there

    @abstractmethod
    def read(self) -> tuple[int, Image] | None:
        """Return (host-monotonic ns at which the picture had arrived, BGR picture), or None at the end of a file."""

    @abstractmethod
    def close(self) -> None:
        """Free the source."""


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CREDENTIALS = re.compile(r"://[^/\s@]*@")


def public_name(source: str) -> str:
    """Return a source's name as it may be shown: without user and password, nor the query, of a URL.

    A pipeline text keeps all but the user and password of the URLs in it.

    >>> public_name("rtsp://admin:secret@10.0.0.7:554/ch1?token=1")
    'rtsp://10.0.0.7:554/ch1'

    Raises
    ------
    SourceError
        It begins like a URL and is none.
    """
    source = _CREDENTIALS.sub("://", source)
    if not _URL.match(source):
        return source
    try:
        parts = urlsplit(source)
    except ValueError as error:
        problem = f"is no address: {error}"
        raise SourceError(source, problem, expected="such as http://HOST:PORT/PATH") from None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
