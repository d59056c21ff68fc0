"""Check redaction with a detector that it doesn't use, and with boxes where someone drew them.

Each picture is searched before and after covering, at long sides of 640 and 960 px and at full size, in overlapping
windows of the auditor's own input size. A face counts as covered if at least 95 % of its pixels inside the picture
changed. What the auditor still finds in the covered picture is either a covered face that still looks like one, or a
face that was left uncovered.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge.backends.base import open_model
from edge.config import ModelsConfig
from edge.errors import DataError
from edge.faces import FaceDetector
from edge.records import Box, Face, Image, RedactedFrame
from edge.tracking import distinct, iou

MODEL = "face_ssd-fp32"
SIDES_PX = (640, 960)  #: and full size
WINDOW_PX = 512
OVERLAP_PX = 128
MIN_SCORE = 0.5
COVERED_SHARE = 0.95
CHECK_NS = 1_000_000_000
SIZES_PX = (16, 32, 64, 128)
#: the nose's distance from the middle between the eyes, in halves of the eyes' distance
HALF_PROFILE, PROFILE = 0.45, 1.1
TILTED_DEG, TURNED_DEG = 30.0, 120.0


@dataclass(slots=True)
class Tally:
    """How many faces of a kind there were, and how many of them were covered."""

    n: int = 0
    covered: int = 0


@dataclass(slots=True)
class Count:
    """Faces counted as a whole, by height in the picture and by pose; `missed` lists those left uncovered."""

    total: Tally = field(default_factory=Tally)
    by_size: dict[str, Tally] = field(default_factory=dict)
    by_pose: dict[str, Tally] = field(default_factory=dict)
    missed: list[dict[str, Any]] = field(default_factory=list)

    def add(self, picture: str, frame_id: int, box: Box, pose: str, covered: bool) -> None:
        size = size_class(box[3])
        for tally in (
            self.total,
            self.by_size.setdefault(size, Tally()),
            self.by_pose.setdefault(pose, Tally()),
        ):
            tally.n += 1
            tally.covered += covered
        if not covered:
            place = [round(v, 1) for v in box]
            self.missed.append({"picture": picture, "frame_id": frame_id, "box": place, "size": size, "pose": pose})


class Auditor:
    """Compare pictures before and after redaction.

    Parameters
    ----------
    models : ModelsConfig
        Where the auditor's artefact and the recall detector (its landmarks tell the pose) are.
    boxes : dict of str to list of Box, optional
        Faces that someone drew, by the picture's file name; see `read_boxes`.
    """

    def __init__(self, models: ModelsConfig, boxes: dict[str, list[Box]] | None = None) -> None:
        self._detector = FaceDetector(open_model(MODEL, models), "fast")
        self._landmarks = FaceDetector(open_model(models.face_recall, models)) if models.face_recall else None
        self._boxes = boxes
        self.detected, self.drawn = Count(), Count()
        self.pictures = self.clear_by_gaze = 0
        self._checked_ns: int | None = None
        self.still_found = {"covered": 0, "uncovered": 0}

    def is_due(self, t_ns: int) -> bool:
        """Tell whether a clip's picture at `t_ns` is one to check: one a second, since a check takes seconds."""
        if self._checked_ns is not None and 0 <= t_ns - self._checked_ns < CHECK_NS:
            return False
        self._checked_ns = t_ns
        return True

    def compare(self, name: str, before: Image, picture: RedactedFrame) -> None:
        """Take a picture as it was, and as it left."""
        self.pictures += 1
        after = picture.image
        clear = [face.box for face in picture.faces if not face.covered]
        for face in self.search(before):
            if any(iou(face.box, box) > 0.3 for box in clear):
                self.clear_by_gaze += 1
            else:
                self._count(self.detected, name, picture.frame_id, face.box, before, after)
        for box in (self._boxes or {}).get(name, ()):
            self._count(self.drawn, name, picture.frame_id, box, before, after)
        for face in self.search(after):
            if not any(iou(face.box, box) > 0.3 for box in clear):
                covered = changed_share(before, after, face.box) >= COVERED_SHARE
                self.still_found["covered" if covered else "uncovered"] += 1

    def search(self, image: Image) -> list[Face]:
        """Find faces at every audit size, in windows."""
        full = max(image.shape[:2])
        found = []
        for side in sorted({*(s for s in SIDES_PX if s < full), full}):
            scale = side / full
            scaled = (
                image if side == full else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            )
            for x, y in windows(scaled.shape[1], scaled.shape[0]):
                part = scaled[y : y + WINDOW_PX, x : x + WINDOW_PX]
                for face in self._detector.detect(np.ascontiguousarray(part), MIN_SCORE):
                    if not _cut(face.box, (x, y), part, scaled):
                        bx, by, bw, bh = face.box
                        box = ((bx + x) / scale, (by + y) / scale, bw / scale, bh / scale)
                        found.append(Face(box, face.score))
        return distinct([*found, *self._detector.detect(image, MIN_SCORE)])

    def result(self) -> dict[str, Any]:
        """Return the figures as they stand in JSON."""
        return {
            "detector": self._detector.model.manifest.model_id,
            "long_sides_px": [*SIDES_PX, "full"],
            "min_score": MIN_SCORE,
            "covered_share": COVERED_SHARE,
            "pictures": self.pictures,
            "detected": _plain(self.detected),
            "drawn": _plain(self.drawn) if self._boxes is not None else None,
            "clear_by_gaze": self.clear_by_gaze,
            "still_found": self.still_found,
        }

    def _count(self, count: Count, name: str, frame_id: int, box: Box, before: Image, after: Image) -> None:
        pose = self.pose(before, box)
        count.add(name, frame_id, box, pose, changed_share(before, after, box) >= COVERED_SHARE)

    def pose(self, image: Image, box: Box) -> str:
        """Tell a face's pose from its landmarks; `unknown` where none are found."""
        if self._landmarks is None:
            return "unknown"
        x, y, w, h = box
        left, top = max(0, int(x - w / 2)), max(0, int(y - h / 2))
        part = np.ascontiguousarray(image[top : int(y + 1.5 * h), left : int(x + 1.5 * w)])
        points = self._landmarks.landmarks(part, (x - left + w / 2, y - top + h / 2), long_side_px=192)
        return "unknown" if points is None else pose_of(points)


def pose_of(points: np.ndarray) -> str:
    """Name the pose of five landmarks, float (5, 2) in pixels: eyes, nose, corners of the mouth, from left to right."""
    left, right, nose = points[0], points[1], points[2]
    across = right - left
    distance = float(np.hypot(*across))
    if distance == 0:
        return "profile"
    roll = abs(math.degrees(math.atan2(across[1], across[0])))
    if roll > TURNED_DEG:
        return "upside-down"
    if roll > TILTED_DEG:
        return "tilted"
    yaw = abs(float(np.dot(nose - (left + right) / 2, across / distance))) / (distance / 2)
    return "frontal" if yaw < HALF_PROFILE else "half-profile" if yaw < PROFILE else "profile"


def size_class(height_px: float) -> str:
    """Name the class of a face's height in pixels."""
    bounds = (0, *SIZES_PX, 0)
    i = sum(height_px >= bound for bound in SIZES_PX)
    return f">={bounds[i]}" if i == len(SIZES_PX) else f"{bounds[i]}-{bounds[i + 1] - 1}"


def changed_share(before: Image, after: Image, box: Box) -> float:
    """Return the share of a box's pixels inside the picture that changed; 1 where none is inside."""
    x, y, w, h = box
    rows = slice(max(0, round(y)), max(0, round(y + h)))
    columns = slice(max(0, round(x)), max(0, round(x + w)))
    different = (before[rows, columns] != after[rows, columns]).any(axis=2)
    return float(different.mean()) if different.size else 1.0


def windows(width: int, height: int) -> list[tuple[int, int]]:
    """Return the corners of windows of 512 px that overlap by at least 128 px and cover a picture."""

    def starts(length: int) -> list[int]:
        if length <= WINDOW_PX:
            return [0]
        n = math.ceil((length - OVERLAP_PX) / (WINDOW_PX - OVERLAP_PX))
        return [round(i * (length - WINDOW_PX) / (n - 1)) for i in range(n)]

    return [(x, y) for y in starts(height) for x in starts(width)]


def read_boxes(path: Path) -> dict[str, list[Box]]:
    """Read drawn faces: a CSV with the columns image, x, y, w, h, and optionally `use` (only `required` ones count).

    Raises
    ------
    DataError
        The file can't be read, or lacks a column.
    """
    boxes: dict[str, list[Box]] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("use", "required") == "required":
                    box = (float(row["x"]), float(row["y"]), float(row["w"]), float(row["h"]))
                    boxes.setdefault(row["image"], []).append(box)
    except (OSError, KeyError, ValueError) as error:
        raise DataError(str(path), f"can't be read as boxes: {error}", expected="image,x,y,w,h[,use]") from error
    return boxes


def _cut(box: Box, corner: tuple[int, int], part: npt.NDArray, whole: npt.NDArray) -> bool:
    """Tell whether a window's edge cuts a face, so that its neighbour shows it whole."""
    x, y, w, h = box
    height, width = part.shape[:2]
    return bool(
        (x <= 0 and corner[0] > 0)
        or (y <= 0 and corner[1] > 0)
        or (x + w >= width and corner[0] + width < whole.shape[1])
        or (y + h >= height and corner[1] + height < whole.shape[0])
    )


def _plain(count: Count) -> dict[str, Any]:
    def tallies(kinds: Iterable[tuple[str, Tally]]) -> dict[str, Any]:
        return {name: {"n": t.n, "covered": t.covered} for name, t in kinds}

    poses = sorted(count.by_pose.items())
    sizes = sorted(count.by_size.items(), key=lambda item: int(item[0].strip(">=").split("-")[0]))
    return {
        "n": count.total.n,
        "covered": count.total.covered,
        "by_size": tallies(sizes),
        "by_pose": tallies(poses),
        "missed": count.missed,
    }
