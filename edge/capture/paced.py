"""A clip played as if it were a camera (``paced:CLIP``): each picture leaves at its time, stamped by the host's clock.

``paced:CLIP?loop`` begins again at the end, for long trials. A clip has an end: it isn't opened again.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2

from edge.capture._live import LiveSource
from edge.capture._pixels import to_bgr
from edge.capture.base import FrameInfo, FrameSource, Reader
from edge.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.records import Image, Role

PREFIX = "paced:"


def matches(source: str) -> bool:
    return source.startswith(PREFIX)


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    path = _path(scene.source)[0]
    if not path.is_file():
        raise SourceError(str(path), "no such clip")
    return LiveSource("paced", scene, role, reopen=False)


def open_reader(scene: SceneConfig) -> Reader:
    return PacedReader(scene)


def _path(source: str) -> tuple[Path, bool]:
    text = source.removeprefix(PREFIX)
    return Path(text.removesuffix("?loop")), text.endswith("?loop")


class PacedReader(Reader):
    """Decodes a clip and holds each picture back until it is due."""

    def __init__(self, scene: SceneConfig) -> None:
        self._path, self._loop = _path(scene.source)
        self._skip_ns = int(scene.start_s * NS_PER_S)
        self._capture = self._open()
        get = self._capture.get
        size = int(get(cv2.CAP_PROP_FRAME_WIDTH)), int(get(cv2.CAP_PROP_FRAME_HEIGHT))
        self.info = FrameInfo(str(self._path), *size, get(cv2.CAP_PROP_FPS), live=True)
        self._start_ns: int | None = None
        self._end_ns = int(scene.end_s * NS_PER_S)

    def read(self) -> tuple[int, Image] | None:
        ok, image = self._capture.read()
        pts_ns = int(self._capture.get(cv2.CAP_PROP_POS_MSEC) * NS_PER_MS)
        if not ok or (self._end_ns and pts_ns >= self._end_ns):
            if not self._loop or self._start_ns is None:
                return None
            self._capture.release()
            self._capture, self._start_ns = self._open(), None
            return self.read()
        if self._start_ns is None:
            self._start_ns = monotonic_ns() - pts_ns
        time.sleep(max(0, self._start_ns + pts_ns - monotonic_ns()) / NS_PER_S)
        return monotonic_ns(), to_bgr(image, str(self._path))

    def close(self) -> None:
        self._capture.release()

    def _open(self) -> cv2.VideoCapture:
        capture = cv2.VideoCapture(str(self._path))
        if not capture.isOpened():
            raise SourceError(str(self._path), "can't be read as a clip")
        if self._skip_ns:
            capture.set(cv2.CAP_PROP_POS_MSEC, self._skip_ns / NS_PER_MS)
        return capture
