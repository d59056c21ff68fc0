"""Network cameras over RTSP, through OpenCV's FFmpeg.

After a pause such a stream hands out what it has buffered as fast as it can be decoded. The stream's own presentation
times tell: a picture that is late against the earliest ones is left out, or an old picture would carry a fresh stamp.
"""

from __future__ import annotations

import os
from collections import deque

import cv2

from edge.capture._live import LiveSource, read_deadline_s
from edge.capture._pixels import to_bgr
from edge.capture.base import FrameInfo, FrameSource, Reader, public_name
from edge.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError, StalledError
from edge.records import Image, Role

MAX_LATE_NS = 150 * NS_PER_MS
_WINDOW_NS = 30 * NS_PER_S
#: TCP: no torn pictures on a lossy link, and one port; no input buffer; give up on a dead socket.
_OPTIONS = "rtsp_transport;tcp|fflags;nobuffer|flags;low_delay"


def matches(source: str) -> bool:
    return source.startswith(("rtsp://", "rtsps://"))


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return LiveSource("rtsp", scene, role)


def open_reader(scene: SceneConfig) -> Reader:
    return RtspReader(scene)


class Lateness:
    """How late a picture arrives against the quickest one of the last 30 s, by the stream's own presentation times."""

    def __init__(self) -> None:
        self._offsets: deque[tuple[int, int]] = deque()  # (arrival, arrival - pts), offsets rising: the first is least

    def add(self, pts_ns: int, arrival_ns: int) -> int:
        """Return the lateness (ns, >= 0) of a picture with presentation time `pts_ns` that arrived at `arrival_ns`."""
        offset = arrival_ns - pts_ns
        while self._offsets and self._offsets[-1][1] >= offset:
            self._offsets.pop()
        self._offsets.append((arrival_ns, offset))
        while self._offsets[0][0] < arrival_ns - _WINDOW_NS:
            self._offsets.popleft()
        return offset - self._offsets[0][1]


class RtspReader(Reader):
    """One RTSP session; errors as Reader says."""

    def __init__(self, scene: SceneConfig) -> None:
        self._name = public_name(scene.source)
        os.environ.setdefault("OPENCV_FFMPEG_CAPTURE_OPTIONS", _OPTIONS)
        started_ns = monotonic_ns()
        limits = [
            *(cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, scene.open_ms),
            *(cv2.CAP_PROP_READ_TIMEOUT_MSEC, int(read_deadline_s(scene) * 1000)),
            *(cv2.CAP_PROP_N_THREADS, 1),  # a decoder with threads holds one picture back per thread
        ]
        self._capture = cv2.VideoCapture(scene.source, cv2.CAP_FFMPEG, limits)
        if not self._capture.isOpened():
            slow = monotonic_ns() - started_ns >= scene.open_ms * NS_PER_MS * 0.9
            kind = StalledError if slow else AbsentError
            raise kind(
                self._name, "doesn't answer" if slow else "can't be opened: no such camera or stream, or access denied"
            )
        self._lateness = Lateness()
        width = int(self._capture.get(cv2.CAP_PROP_FRAME_WIDTH))
        height = int(self._capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
        self.info = FrameInfo(self._name, width, height, self._capture.get(cv2.CAP_PROP_FPS), live=True)

    def read(self) -> tuple[int, Image]:
        while True:
            if not self._capture.grab():
                raise StalledError(self._name, "delivers no picture any more")
            t_ns = monotonic_ns()
            pts_ns = int(self._capture.get(cv2.CAP_PROP_POS_MSEC) * NS_PER_MS)
            if self._lateness.add(pts_ns, t_ns) > MAX_LATE_NS:
                continue
            ok, image = self._capture.retrieve()
            if not ok:
                raise SourceError(self._name, "gives pictures that can't be decoded")
            return t_ns, to_bgr(image, self._name)

    def close(self) -> None:
        self._capture.release()
