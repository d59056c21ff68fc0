"""Clips: decoded pictures with their real presentation times, turned as the container says.

Read with PyAV (extra `video`): it hands out each picture's presentation time, where OpenCV invents a steady rate for
some containers. The clock of a clip is its presentation time from 0, the first picture.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from edge.capture.base import FrameInfo, FrameSource
from edge.clock import NS_PER_S
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.records import Frame, Image, Role

SUFFIXES = {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".ogv", ".wmv", ".mjpeg", ".gif"}
IRREGULAR = 0.25  #: a step that differs from the median step by more than this share makes a rate irregular

SHORT_S, SHORT_SHARE = 0.5, 0.02  #: a clip that lacks more of its declared time than both of these was cut


def matches(source: str) -> bool:
    """Clips are told by their suffix."""
    return "://" not in source and Path(source).suffix.lower() in SUFFIXES


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return ClipSource(Path(scene.source), role, start_s=scene.start_s, end_s=scene.end_s)


def import_av() -> Any:
    """Import PyAV, or raise SourceError with how to get it."""
    try:
        import av
    except ImportError as error:
        raise SourceError("video", f"PyAV can't be used: {error}", fix="pip install 'emogaze-edge[video]'") from error
    return av


class ClipSource(FrameSource):
    """A clip's pictures. `frame_id` counts from the clip's first picture, also where `start_s` skips some.

    `info.note` says what is odd about the clip: an irregular rate, pictures that are declared but not there. It is
    written when the clip ends or is closed.

    Raises
    ------
    SourceError
        The file is missing, no clip, holds no picture, or nothing lies between `start_s` and `end_s`.
    """

    def __init__(self, path: Path, role: Role, *, start_s: float = 0.0, end_s: float = 0.0) -> None:
        self._av = import_av()
        self._path, self._role = path, role
        self._start_ns, self._end_ns = round(start_s * 1e9), round(end_s * 1e9)
        self._times_ns: list[int] = []
        self._damaged = 0
        self._closed = self._ended = False
        self._container, stream = self._open()
        self._declared_s = _declared_s(self._container, stream)
        self.info = FrameInfo(
            str(path), 0, 0, float(stream.average_rate or 0), live=False, n_frames=stream.frames or None
        )
        self._frames = self._decode(stream)
        self._waiting = next(self._frames, None)
        if self._waiting is None:
            self.close()
            problem = "no picture lies between start_s and end_s" if self._times_ns else "holds no picture that decodes"
            raise SourceError(str(path), problem)
        self.info = replace(self.info, width=self._waiting.width, height=self._waiting.height)

    def _open(self) -> tuple[Any, Any]:
        if not self._path.is_file():
            raise SourceError(str(self._path), "no such file")
        if not self._path.stat().st_size:
            raise SourceError(str(self._path), "is empty")
        try:
            container = self._av.open(str(self._path))
        except self._av.error.FFmpegError as error:
            raise SourceError(str(self._path), f"can't be read as a clip: {error.strerror}") from error
        if not container.streams.video:
            container.close()
            raise SourceError(str(self._path), "holds no video stream")
        return container, container.streams.video[0]

    def read(self, timeout_s: float = 1.0) -> Frame | None:
        frame, self._waiting = self._waiting, None
        if frame is None and not self._ended:
            # Not decoded ahead: a picture is worked on while it is still in the processor's cache.
            frame = next(self._frames, None)
            self._ended = frame is None
        return frame

    @property
    def ended(self) -> bool:
        return self._ended

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting, self._ended = None, True
            self._frames.close()
            self._container.close()

    def _decode(self, stream: Any) -> Generator[Frame, None, None]:
        step = Fraction(1) / (stream.guessed_rate or 25)
        ended = False
        try:
            for index, picture in enumerate(self._pictures(stream)):
                t_ns = self._time(picture, index, step)
                if self._times_ns and t_ns <= self._times_ns[-1]:
                    self._damaged += 1
                    continue
                self._times_ns.append(t_ns)
                if self._end_ns and t_ns >= self._end_ns:
                    return
                if t_ns >= self._start_ns:
                    turn = int(picture.rotation)
                    if turn % 360 != self.info.rotation_deg:
                        self.info = replace(self.info, rotation_deg=turn % 360)
                    image = upright(picture.to_ndarray(format="bgr24"), turn)
                    yield Frame(index, t_ns, image, str(self._path), self._role)
            ended = True
        finally:
            self.info = replace(self.info, note=self._note(ended=ended))

    def _pictures(self, stream: Any) -> Iterator[Any]:
        """Decode packet by packet, so that a damaged one costs its own pictures and not the rest."""
        for packet in self._container.demux(stream):
            try:
                yield from packet.decode()
            except self._av.error.FFmpegError:
                self._damaged += 1

    def _time(self, picture: Any, index: int, step: Fraction) -> int:
        if picture.pts is None:
            return round(index * step * 10**9)
        if not self._times_ns:
            self._first = picture.pts
            self.info = replace(self.info, zero_s=float(picture.pts * picture.time_base))
        return round((picture.pts - self._first) * picture.time_base * 10**9)

    def _note(self, *, ended: bool) -> str:
        notes = []
        steps = np.diff(self._times_ns)
        if len(steps) and np.abs(steps / np.median(steps) - 1).max() > IRREGULAR:
            notes.append(f"irregular rate: steps of {steps.min() / 1e6:.1f} to {steps.max() / 1e6:.1f} ms")
        declared, decoded = self.info.n_frames, len(self._times_ns)
        decoded_s = (self._times_ns[-1] + (np.median(steps) if len(steps) else 0)) / NS_PER_S if decoded else 0.0
        if ended and declared and declared != decoded:
            notes.append(f"{declared} pictures declared, {decoded} decoded")
        elif ended and self._declared_s - decoded_s > max(SHORT_S, SHORT_SHARE * self._declared_s):
            notes.append(f"{self._declared_s:.1f} s declared, {decoded_s:.1f} s decoded")
        if self._damaged:
            notes.append(f"{self._damaged} damaged or out of order")
        return "; ".join(notes)


def _declared_s(container: Any, stream: Any) -> float:
    """Return how long the pictures should last (s), or 0; a container's time is theirs if nothing else is in it."""
    if stream.duration:
        return float(stream.duration * stream.time_base)
    return container.duration / 1e6 if container.duration and len(container.streams) == 1 else 0.0


def upright(image: Image, rotation_deg: int) -> Image:
    """Turn a picture as its container says: `rotation_deg` counter-clockwise, in steps of 90; others are refused."""
    if rotation_deg % 90:
        raise SourceError("clip", f"is turned by {rotation_deg} degrees", expected="a multiple of 90")
    return np.ascontiguousarray(np.rot90(image, rotation_deg // 90)) if rotation_deg % 360 else image
