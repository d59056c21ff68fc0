"""Redaction against the `deface` package: CPU time per frame, and faces missed, on the same clips.

Each program runs as its users run it, at its defaults, as a process of its own; the CPU time of the process and its
children (user and system) is what the operating system counted for it, its start included. CPU time too grows on a busy
machine, whose cores share caches and execution units: the two run in turn, first one first and then the other, each
pair gives a ratio, and the median of the ratios is what is quoted. A first pair warms the file cache and isn't counted.
`deface` must be installed in an environment of its own, since its OpenCV overwrites ours:
``python -m venv D && D/bin/pip install deface onnx onnxruntime``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge.capture.file import ClipSource, import_av
from edge.capture.images import read_picture
from edge.errors import SourceError
from edge.records import Box, Image

STILL_S, STILL_HZ = 5, 25
CHANGE = 3.0  #: of 255


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip to redact, with the faces that must be covered in each of its frames, where they are known."""

    path: Path
    frames: int
    required: tuple[Box, ...] = ()


def still_as_clip(picture: Path, folder: Path, required: Sequence[Box]) -> Clip:
    """Show a still for five seconds."""
    image = read_picture(picture).image
    path = folder / f"{picture.stem}.mp4"
    av = import_av()
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=STILL_HZ, options={"crf": "12"})
        height, width = (side - side % 2 for side in image.shape[:2])
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image[:height, :width]), format="bgr24")
        for i in range(STILL_S * STILL_HZ):
            frame.pts, frame.time_base = i, Fraction(1, STILL_HZ)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return Clip(path, STILL_S * STILL_HZ, tuple(required))


def clip(path: Path) -> Clip:
    """Count a clip's frames."""
    with closing(ClipSource(path, "scene")) as source:
        return Clip(path, sum(1 for _ in iter(source.read, None)))


def compare(clips: Sequence[Clip], deface: Path, folder: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """Redact each clip with both programs in turn.

    Yields
    ------
    dict
        `clip`, `frames`; per program `cpu_ms` (one value a run, per frame), their `median_ms`, and `missed` required
        boxes of how many; `ratios`: deface's over ours, pair by pair, and `ratio`: their median.

    Raises
    ------
    SourceError
        `deface` can't be run.
    """
    for one in clips:
        programs = {
            "emogaze": [sys.executable, "-m", "edge.cli", "redact", str(one.path), "-o"],
            "deface": [str(deface), str(one.path), "-o"],
        }
        outputs = {name: folder / f"{one.path.stem}.{name}.mp4" for name in programs}
        spent: dict[str, list[float]] = {name: [] for name in programs}
        for turn in range(repeats + 1):
            for name in sorted(programs, reverse=turn % 2 == 1):
                seconds = cpu_s([*programs[name], str(outputs[name])])
                if turn > 0:
                    spent[name].append(seconds / one.frames * 1e3)
        ratios = [theirs / ours for theirs, ours in zip(spent["deface"], spent["emogaze"], strict=True)]
        yield {
            "clip": one.path.name,
            "frames": one.frames,
            "ratios": ratios,
            "ratio": statistics.median(ratios),
            **{
                name: {
                    "cpu_ms": spent[name],
                    "median_ms": statistics.median(spent[name]),
                    "missed": missed(one, outputs[name]),
                    "required": len(one.required) * one.frames,
                }
                for name in programs
            },
        }


def cpu_s(command: Sequence[str]) -> float:
    """Run a command and return the CPU seconds, user and system, of it and of the children that it waited for."""
    with tempfile.TemporaryFile("w+") as said:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        except OSError as error:
            raise SourceError(command[0], f"can't be run: {error.strerror}") from error
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SourceError(command[0], "failed: " + (said.read().strip().splitlines() or ["no message"])[-1])
    return usage.ru_utime + usage.ru_stime


def missed(one: Clip, output: Path) -> int:
    """Count the required boxes, over all frames, that were not covered."""
    if not one.required:
        return 0
    with closing(ClipSource(one.path, "scene")) as before, closing(ClipSource(output, "scene")) as after:
        pairs = zip(iter(before.read, None), iter(after.read, None), strict=False)
        changes = (change(a.image, b.image) for a, b in pairs)
        return sum(not is_covered(change, box) for change in changes for box in one.required)


def change(before: Image, after: Image) -> npt.NDArray[np.float64]:
    """Return by how much each pixel changed, in grey levels; a copy of another size is brought to that of its source.

    `deface` scales clips to sides that are multiples of 16.
    """
    height, width = before.shape[:2]
    if after.shape != before.shape:
        after = np.asarray(cv2.resize(after, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    return np.asarray(np.abs(before.astype(np.int16) - after).mean(axis=2))


def is_covered(change: npt.NDArray, box: Box) -> bool:
    """Tell whether a face was covered, from how much each pixel changed.

    Encoding changes every pixel a little. Of the box's 3 x 3 parts at least 8 must have changed by `CHANGE` more than
    half of the picture did; the ninth leaves room for a round cover.
    """
    x, y, w, h = box
    floor = float(np.median(change)) + CHANGE
    parts = [
        change[round(y + i * h / 3) : round(y + (i + 1) * h / 3), round(x + j * w / 3) : round(x + (j + 1) * w / 3)]
        for i in range(3)
        for j in range(3)
    ]
    return sum(bool(part.size == 0 or part.mean() > floor) for part in parts) >= 8
