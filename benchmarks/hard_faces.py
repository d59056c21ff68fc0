"""Faces that are hard to find: the same pictures mirrored, turned, shrunk, shown on a screen, hidden in part or cut.

Each variant is made from pictures with drawn faces, so that where the faces are is known exactly. A face counts as
covered if at least 95 % of its box's pixels inside the picture changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge.audit import COVERED_SHARE, changed_share, read_boxes
from edge.capture.images import read_picture
from edge.config import ModelsConfig, RedactConfig
from edge.faces import turn_back
from edge.privacy import Redactor
from edge.records import Box, Frame, Image
from edge.redaction import Detectors

SCREEN_SHARE = 0.6  #: of the picture's width that a screen in it takes
CUT_SHARE = 0.5  #: of a face's width that the picture's edge cuts off


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and the faces in it."""

    image: Image
    boxes: tuple[Box, ...]


Variant = Callable[[Scene], Iterator[Scene]]


def upright(scene: Scene) -> Iterator[Scene]:
    yield scene


def mirrored(scene: Scene) -> Iterator[Scene]:
    width = scene.image.shape[1]
    flipped = np.ascontiguousarray(scene.image[:, ::-1])
    yield Scene(flipped, tuple((width - x - w, y, w, h) for x, y, w, h in scene.boxes))


def turned(quarters: int) -> Variant:
    def variant(scene: Scene) -> Iterator[Scene]:
        image = np.ascontiguousarray(np.rot90(scene.image, quarters))
        size = (image.shape[1], image.shape[0])
        yield Scene(image, tuple(turn_back(box, (4 - quarters) % 4, size) for box in scene.boxes))

    return variant


def shrunk(share: float) -> Variant:
    def variant(scene: Scene) -> Iterator[Scene]:
        image = cv2.resize(scene.image, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
        yield Scene(
            np.asarray(image, np.uint8),
            tuple((x * share, y * share, w * share, h * share) for x, y, w, h in scene.boxes),
        )

    return variant


def on_a_screen(scene: Scene) -> Iterator[Scene]:
    """Seen at an angle on a dim screen with visible lines, in front of a gray wall."""
    height, width = scene.image.shape[:2]
    margin = (1 - SCREEN_SHARE) / 2
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    seen = np.array(
        [[margin, margin], [1 - margin, 1.3 * margin], [1 - margin, 1 - 1.3 * margin], [margin, 1 - margin]], np.float32
    )
    matrix = cv2.getPerspectiveTransform(corners, seen * np.array([width, height], np.float32))
    lines = scene.image.copy()
    lines[::3] = lines[::3] // 2
    dim = (lines * 0.8 + 12).astype(np.uint8)
    image = cv2.warpPerspective(dim, matrix, (width, height), flags=cv2.INTER_AREA, borderValue=(110, 112, 115))
    boxes = []
    for x, y, w, h in scene.boxes:
        points = np.array([[[x, y], [x + w, y], [x + w, y + h], [x, y + h]]], np.float32)
        placed = cv2.perspectiveTransform(points, matrix)[0]
        (left, top), (right, bottom) = placed.min(axis=0), placed.max(axis=0)
        boxes.append((float(left), float(top), float(right - left), float(bottom - top)))
    yield Scene(np.asarray(image, np.uint8), tuple(boxes))


def masked(scene: Scene) -> Iterator[Scene]:
    """The lower 45 % of every face hidden, as by a mask or a hand."""
    image = scene.image.copy()
    for x, y, w, h in scene.boxes:
        rows = slice(max(0, round(y + 0.55 * h)), max(0, round(y + h)))
        image[rows, max(0, round(x)) : max(0, round(x + w))] = (190, 170, 150)
    yield Scene(image, scene.boxes)


def cut(scene: Scene) -> Iterator[Scene]:
    """Each face in turn cut in half by the picture's left edge."""
    for x, y, w, h in scene.boxes:
        left = max(0, round(x + CUT_SHARE * w))
        yield Scene(np.ascontiguousarray(scene.image[:, left:]), ((x - left, y, w, h),))


VARIANTS: dict[str, Variant] = {
    "upright": upright,
    "mirrored": mirrored,
    "on its side": turned(1),
    "upside down": turned(2),
    "half size": shrunk(0.5),
    "a third of its size": shrunk(1 / 3),
    "on a screen": on_a_screen,
    "lower half hidden": masked,
    "cut in half": cut,
}


def measure(pictures: Path, boxes: Path, models: ModelsConfig, settings: RedactConfig) -> Iterator[dict[str, Any]]:
    """Redact every variant of every picture that has boxes.

    Yields
    ------
    dict
        `variant`, `n` faces, `covered`.
    """
    detectors = Detectors.open(models)
    scenes = [Scene(read_picture(pictures / name).image, tuple(drawn)) for name, drawn in read_boxes(boxes).items()]
    for name, variant in VARIANTS.items():
        counted = [redact(one, detectors, settings) for scene in scenes for one in variant(scene)]
        yield {"variant": name, "n": sum(n for n, _ in counted), "covered": sum(covered for _, covered in counted)}


def redact(scene: Scene, detectors: Detectors, settings: RedactConfig) -> tuple[int, int]:
    """Return how many faces a scene has, and how many of them are covered."""
    frame = Frame(0, 0, scene.image, "variant")
    (picture,) = Redactor(settings).push(frame, [], detectors.on_still(scene.image, settings), None)
    shares: Sequence[float] = [changed_share(scene.image, picture.image, box) for box in scene.boxes]
    return len(shares), sum(share >= COVERED_SHARE for share in shares)
