"""Cameras of this machine through V4L2: an index (``0``) or a path (``/dev/video0``, ``/dev/v4l/by-id/...``).

Near-infrared and deep formats (GREY, Y10, Y12, Y16) become 8-bit BGR. What the driver makes of the wishes for size,
rate and format is read back, and a wish that it ignores stands in the source's note.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import cv2

from edge.capture._live import LiveSource, read_deadline_s
from edge.capture._pixels import to_bgr
from edge.capture.base import FrameInfo, FrameSource, Reader
from edge.clock import monotonic_ns
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError, StalledError
from edge.records import Image, Role

_DEPTH_BITS = {"Y10 ": 10, "Y12 ": 12, "Y16 ": 16}


def matches(source: str) -> bool:
    return source.isdigit() or source.startswith(("/dev/video", "/dev/v4l/"))


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return LiveSource("camera", scene, role)


def open_reader(scene: SceneConfig) -> Reader:
    return CameraReader(scene)


def device_path(source: str) -> Path:
    return Path(f"/dev/video{source}" if source.isdigit() else source)


def check_device(path: Path) -> None:
    """Raise what hinders opening the device, in words: absent, taken, forbidden or no camera."""
    try:
        mode = path.stat().st_mode
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except FileNotFoundError:
        raise AbsentError(str(path), "no such camera is plugged in") from None
    except PermissionError:
        raise SourceError(str(path), "may not be read by this user", fix="add the user to the group `video`") from None
    except OSError as error:
        kind = AbsentError if error.errno in (errno.EBUSY, errno.ENODEV, errno.ENXIO) else SourceError
        busy = "is in use by another program" if error.errno == errno.EBUSY else f"can't be opened: {error.strerror}"
        raise kind(str(path), busy) from None
    os.close(fd)
    if not stat.S_ISCHR(mode):
        raise SourceError(str(path), "is no camera")


class CameraReader(Reader):
    """One opened V4L2 camera; errors as Reader says."""

    def __init__(self, scene: SceneConfig) -> None:
        path = device_path(scene.source)
        self._name = str(path)
        check_device(path)
        wanted = _wishes(scene)
        # V4L2's own read timeout, or a dead camera blocks the read for ten seconds
        os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(max(1, round(read_deadline_s(scene)))))
        self._capture = cv2.VideoCapture(self._name, cv2.CAP_V4L2, [v for pair in wanted.items() for v in pair])
        if not self._capture.isOpened():
            raise AbsentError(self._name, "can't be opened: in use, or it gives no pictures")
        self._bits = _DEPTH_BITS.get(_padded(scene.pixel_format), 0)
        get = self._capture.get
        ignored = [name for prop, name in _NAMES.items() if prop in wanted and int(get(prop)) != int(wanted[prop])]
        note = f"the driver ignores the wish for {', '.join(ignored)}" if ignored else ""
        size = int(get(cv2.CAP_PROP_FRAME_WIDTH)), int(get(cv2.CAP_PROP_FRAME_HEIGHT))
        self.info = FrameInfo(self._name, *size, get(cv2.CAP_PROP_FPS), live=True, note=note)

    def read(self) -> tuple[int, Image]:
        ok, image = self._capture.read()
        t_ns = monotonic_ns()
        if not ok or image is None:
            check_device(Path(self._name))
            raise StalledError(self._name, "delivers no picture")
        return t_ns, to_bgr(image, self._name, self._bits)

    def close(self) -> None:
        self._capture.release()


_NAMES = {
    cv2.CAP_PROP_FOURCC: "format",
    cv2.CAP_PROP_FRAME_WIDTH: "width",
    cv2.CAP_PROP_FRAME_HEIGHT: "height",
    cv2.CAP_PROP_FPS: "rate",
    cv2.CAP_PROP_BUFFERSIZE: "a buffer of one picture",
}


def _padded(pixel_format: str) -> str:
    return pixel_format.ljust(4) if pixel_format else ""


def _wishes(scene: SceneConfig) -> dict[int, int]:
    """Return the properties to ask the driver for; the format comes first, since it decides which sizes exist."""
    wanted: dict[int, int] = {}
    if scene.pixel_format:
        wanted[cv2.CAP_PROP_FOURCC] = cv2.VideoWriter.fourcc(*_padded(scene.pixel_format))
    for prop, value in (
        (cv2.CAP_PROP_FRAME_WIDTH, scene.width_px),
        (cv2.CAP_PROP_FRAME_HEIGHT, scene.height_px),
        (cv2.CAP_PROP_FPS, round(scene.rate_hz)),
    ):
        if value:
            wanted[prop] = value
    wanted[cv2.CAP_PROP_BUFFERSIZE] = 1
    return wanted
