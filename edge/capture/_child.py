"""The child process of a live source: opens the camera, hands pictures over, opens it again when it fails.

Started by `edge.capture._live` with what to read in an environment variable. It reports on a pipe, one JSON object a
line (``opened``, ``fault``, ``ended``), rings an eventfd for each picture, and ends when its standard input closes,
that is when the parent has gone, whatever it was doing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType
from typing import Any

from edge import plugins
from edge.capture._ring import Ring
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError, StalledError
from edge.keys import harden_process
from edge.records import Image

SPEC = "EMOGAZE_CAMERA"  #: holds the specification as JSON
FIRST_DELAY_S, LAST_DELAY_S = 0.1, 0.5
_SAMPLED_ROWS = 8  #: every eighth row tells whether a picture changed; sensor noise alone changes it
Report = Callable[[dict[str, Any]], None]


def back_off_s(failures: int) -> float:
    """Return how long to wait after that many failures in a row: 0.1, 0.2, 0.4, then 0.5 s."""
    return float(min(FIRST_DELAY_S * 2 ** max(0, failures - 1), LAST_DELAY_S))


def fault_kind(error: SourceError) -> str:
    """Return what an error means for a live source: `absent`, `stalled` or `refused`."""
    if isinstance(error, AbsentError):
        return "absent"
    return "stalled" if isinstance(error, StalledError) else "refused"


class Publisher:
    """Writes pictures into the ring, numbers them, and notes when their content last changed."""

    def __init__(self, ring: Ring, doorbell: int, first_id: int) -> None:
        self._ring, self._doorbell = ring, doorbell
        self._next_id = first_id
        self._checksum: int | None = None
        self._changed_ns = 0

    def publish(self, t_ns: int, image: Image, skipped: int = 0) -> None:
        """Publish a picture; the `skipped` ones before it get numbers too, so that they count as dropped."""
        self._next_id += skipped
        checksum = zlib.crc32(image[::_SAMPLED_ROWS].tobytes())
        if checksum != self._checksum:
            self._checksum, self._changed_ns = checksum, t_ns
        if not self._ring.allocated:
            self._ring.allocate(image.nbytes)
        if not self._ring.write(image, self._next_id, t_ns, self._changed_ns):
            raise StalledError("camera", f"changed its picture size to {image.shape[1]}x{image.shape[0]}")
        self._next_id += 1
        os.eventfd_write(self._doorbell, 1)


def serve(plugin: ModuleType, scene: SceneConfig, publisher: Publisher, report: Report) -> None:
    """Open, read, and on a fault open again with a growing pause; returns at the end of a file."""
    failures = 0
    while True:
        try:
            with contextlib.closing(plugin.open_reader(scene)) as reader:
                report({"opened": asdict(reader.info)})
                skipped = 0
                while (item := reader.read()) is not None:
                    t_ns, image = item
                    publisher.publish(t_ns, image, reader.skipped - skipped)
                    skipped, failures = reader.skipped, 0
            report({"ended": True})
            return
        except SourceError as error:
            failures += 1
            report({"fault": fault_kind(error), "text": str(error)})
            time.sleep(back_off_s(failures))


def _reporter(fd: int) -> Report:
    os.set_blocking(fd, False)

    def report(message: dict[str, Any]) -> None:
        with contextlib.suppress(BlockingIOError):  # a parent that doesn't read loses reports, not pictures
            os.write(fd, json.dumps(message).encode()[:4000] + b"\n")

    return report


def _end_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 1):
            pass
    os.killpg(0, signal.SIGKILL)  # own session: takes a gst-launch along


def main() -> None:
    """Run the child process of one live source."""
    harden_process()  # its memory holds pictures in which nothing is covered yet
    spec = json.loads(os.environ.pop(SPEC))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    publisher = Publisher(Ring(spec["ring"]), spec["doorbell"], spec["first_id"])
    scene = SceneConfig(**spec["scene"])
    serve(
        plugins.load("edge.capture", spec["plugin"], setting="scene.source"),
        scene,
        publisher,
        _reporter(spec["report"]),
    )


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
