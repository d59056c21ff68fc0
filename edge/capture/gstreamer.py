"""GStreamer pipelines (``gst:videotestsrc ! ...``) and Jetson cameras (``csi://0``), run by ``gst-launch-1.0``.

OpenCV's wheels have no GStreamer, so the pipeline runs as a program and its raw pictures come through a pipe; their
size is read from what ``gst-launch-1.0 -v`` says. GStreamer converts whatever the camera gives (gray, 10 bits, NV12 in
device memory) to 8-bit BGR on the way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import subprocess

import numpy as np

from edge.capture._live import LiveSource, read_deadline_s
from edge.capture.base import FrameInfo, FrameSource, Reader
from edge.clock import NS_PER_S, monotonic_ns
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError, StalledError
from edge.records import Image, Role

_TAIL = (
    "videoconvert ! video/x-raw,format=BGR,interlace-mode=progressive "
    "! queue leaky=downstream max-size-buffers=1 max-size-bytes=0 max-size-time=0 "
    "! fdsink name=emogaze sync=false fd={fd}"
)
_CAPS = re.compile(r"emogaze\.GstPad:sink: caps = video/x-raw.*")
_FINAL = re.compile(
    r"no element|no property|syntax error|could not link|could not set property|not-negotiated", re.IGNORECASE
)
_PIPE_BYTES = 1 << 20


def matches(source: str) -> bool:
    return source.startswith(("gst:", "csi://")) or " ! " in source


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return LiveSource("gstreamer", scene, role)


def open_reader(scene: SceneConfig) -> Reader:
    return GstReader(scene)


def pipeline(scene: SceneConfig) -> str:
    """Return the pipeline that `scene.source` stands for, without the part that hands pictures over."""
    if not scene.source.startswith("csi://"):
        return scene.source.removeprefix("gst:").strip()
    sensor = scene.source.removeprefix("csi://") or "0"
    if not sensor.isdigit():
        raise SourceError(scene.source, "names no sensor", expected="csi://0, csi://1, ...")
    wanted = [f"width={scene.width_px}"] if scene.width_px else []
    wanted += [f"height={scene.height_px}"] if scene.height_px else []
    wanted += [f"framerate={round(scene.rate_hz)}/1"] if scene.rate_hz else []
    caps = ",".join(["video/x-raw(memory:NVMM)", *wanted])
    return f"nvarguscamerasrc sensor-id={sensor} ! {caps} ! nvvidconv ! video/x-raw,format=BGRx"


class GstReader(Reader):
    """One run of a pipeline; errors as Reader says."""

    def __init__(self, scene: SceneConfig) -> None:
        self._name = scene.source
        self._deadline_s = scene.open_ms / 1000
        program = shutil.which("gst-launch-1.0")
        if program is None:
            raise SourceError(self._name, "needs gst-launch-1.0", fix="install gstreamer1.0-tools and -plugins-base")
        self._pictures, into = os.pipe()
        with contextlib.suppress(OSError):  # a larger pipe is only quicker
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        command = [program, "-v", *shlex.split(f"{pipeline(scene)} ! {_TAIL.format(fd=into)}")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(into,)
        )
        os.close(into)
        assert self._process.stdout is not None
        self._console = self._process.stdout.fileno()
        os.set_blocking(self._console, False)
        self._said = ""
        try:
            first = self._read(bytearray(1))  # once pictures flow, their size has been said
            width, height, rate_hz = self._size()
            self._row_bytes = -(-width * 3 // 4) * 4
            self._buffer = bytearray(self._row_bytes * height)
            self._buffer[:1] = first
        except SourceError:
            self.close()
            raise
        self._filled = 1
        self.info = FrameInfo(self._name, width, height, rate_hz, live=True)
        self._read_deadline_s = read_deadline_s(scene)

    def read(self) -> tuple[int, Image]:
        self._read(memoryview(self._buffer)[self._filled :])
        t_ns = monotonic_ns()
        self._filled, self._deadline_s = 0, self._read_deadline_s
        self._listen()
        size = self.info.width, self.info.height
        if self._size()[:2] != size:
            raise StalledError(self._name, "changed its picture size")
        rows = np.frombuffer(self._buffer, np.uint8).reshape(size[1], self._row_bytes)
        return t_ns, rows[:, : size[0] * 3].reshape(size[1], size[0], 3)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._pictures >= 0:
            os.close(self._pictures)
            self._pictures = -1

    def _size(self) -> tuple[int, int, float]:
        """Return width, height and rate of the newest caps on the console."""
        give_up_ns = monotonic_ns() + NS_PER_S
        while not (said := _CAPS.findall(self._said)):
            if monotonic_ns() > give_up_ns:
                raise SourceError(self._name, "gst-launch-1.0 doesn't say the size of its pictures")
            select.select([self._console], [], [], 0.1)
            self._listen()
        fields = dict(re.findall(r"(\w+)=\(\w+\)([\w/]+)", said[-1]))
        numerator, _, denominator = fields.get("framerate", "0/1").partition("/")
        return int(fields["width"]), int(fields["height"]), int(numerator) / max(1, int(denominator))

    def _read(self, buffer: bytearray | memoryview) -> bytearray | memoryview:
        """Fill `buffer` from the pipe; a pause beyond the deadline or the pipeline's end is an error."""
        view = memoryview(buffer)
        give_up_ns = monotonic_ns() + int(self._deadline_s * NS_PER_S)
        while view:
            left_s = max(0.0, (give_up_ns - monotonic_ns()) / NS_PER_S)
            if not select.select([self._pictures], [], [], left_s)[0]:
                self._listen()
                raise StalledError(self._name, "delivers no picture" + self._complaint())
            n = os.readv(self._pictures, [view])
            if n == 0:
                self._process.wait()
                self._listen()
                final = _FINAL.search(self._said)
                raise (SourceError if final else AbsentError)(self._name, "the pipeline ended" + self._complaint())
            view = view[n:]
        return buffer

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while said := os.read(self._console, 4096):
                self._said = (self._said + said.decode(errors="replace"))[-16384:]

    def _complaint(self) -> str:
        """Return what gst-launch complained of first, as the end of a sentence."""
        errors = re.findall(r"^(?:ERROR|WARNING): (.*)$", self._said, re.MULTILINE)
        return f": {errors[0].strip()}" if errors else ""
