"""Face detection: the decoders on numbers worked out by hand, and both detectors on real pictures with known faces."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from edge.backends.base import open_model
from edge.capture.images import read_picture
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.faces import FaceDetector, decode_blazeface, decode_centerface, suppress, turn_back
from edge.records import Box, Face
from edge.tracking import iou


def required_faces(data: Path, picture: str) -> list[Box]:
    with (data / "faces" / "faces_gt.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["image"] == picture and r["use"] == "required"]
    return [(float(r["x"]), float(r["y"]), float(r["w"]), float(r["h"])) for r in rows]


def test_centerface_is_read_in_cells_of_four_pixels() -> None:
    heatmap, scale, offset = np.zeros((4, 6)), np.zeros((2, 4, 6)), np.zeros((2, 4, 6))
    heatmap[2, 3] = 0.9
    scale[:, 2, 3] = math.log(3), math.log(2)  # height 12 px, width 8 px
    offset[:, 2, 3] = 0.25, -0.25
    boxes, scores = decode_centerface(heatmap, scale, offset, 0.3)
    # centre x = (3 - 0.25 + 0.5) * 4 = 13, y = (2 + 0.25 + 0.5) * 4 = 11
    assert boxes == pytest.approx(np.array([[9, 5, 8, 12]]))
    assert scores == pytest.approx([0.9])


def test_blazeface_is_read_from_its_grid_of_anchors() -> None:
    raw, logits = np.zeros((16, 16)), np.full((16, 1), -100.0)
    raw[6, :4] = 5, -3, 20, 30
    logits[6] = math.log(3)  # sigmoid = 0.75
    boxes, scores = decode_blazeface(raw, logits, 40, 0.5)
    # 4 x 4 cells of 10 px; anchor 6 is column 2, row 1: (25, 15); centre (30, 12)
    assert boxes == pytest.approx(np.array([[20, -3, 20, 30]]))
    assert scores == pytest.approx([0.75])


def test_suppression_keeps_the_best_of_overlapping_boxes() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [5, 0, 10, 10], [50, 50, 10, 10]], float)
    assert suppress(boxes, np.array([0.5, 0.9, 0.4, 0.6])) == [1, 3]
    assert suppress(np.zeros((0, 4)), np.zeros(0)) == []


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_box_of_a_turned_picture_is_turned_back(turns: int) -> None:
    picture = np.zeros((30, 50), np.uint8)
    picture[4:10, 20:23] = 1
    rows, columns = np.nonzero(np.rot90(picture, turns))
    box = (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1)
    assert turn_back(tuple(map(float, box)), turns, (50, 30)) == (20, 4, 3, 6)


@pytest.fixture(scope="module")
def detectors(artefacts: Path) -> dict[str, FaceDetector]:
    models = ModelsConfig(dir=str(artefacts))
    return {name: FaceDetector(open_model(getattr(models, f"face_{name}"), models)) for name in ("fast", "recall")}


@pytest.mark.parametrize(
    ("picture", "sides"),
    [
        pytest.param("city_pexels109919.jpg", [None], id="many-small"),
        pytest.param("biden.jpg", [None, 640, 320], id="portrait"),
        pytest.param("obama_partial_face.jpg", [None, 640, 320], id="cut-by-the-edge"),
        pytest.param("portrait_exif_pexels3763152.jpg", [640, 320], id="fills-the-picture"),
    ],
)
def test_the_recall_detector_finds_every_required_face(
    data: Path, detectors: dict[str, FaceDetector], picture: str, sides: list[int | None]
) -> None:
    image = read_picture(data / "faces" / picture).image
    for side in sides:
        found = detectors["recall"].detect(image, 0.3, side)
        missed = [box for box in required_faces(data, picture) if not any(iou(box, f.box) > 0.3 for f in found)]
        assert missed == [], f"at {side} px"
        assert all(f.origin == "recall" for f in found)


def test_the_fast_detector_finds_a_portrait(data: Path, detectors: dict[str, FaceDetector]) -> None:
    image = read_picture(data / "faces" / "biden.jpg").image
    (face,) = detectors["fast"].detect(image, 0.5)
    (box,) = required_faces(data, "biden.jpg")
    assert iou(face.box, box) > 0.6
    assert face.origin == "fast"


@pytest.mark.parametrize("name", ["fast", "recall"])
def test_the_pictures_before_leave_no_trace(
    data: Path, artefacts: Path, detectors: dict[str, FaceDetector], name: str
) -> None:
    image = read_picture(data / "faces" / "biden.jpg").image
    detectors[name].detect(np.ascontiguousarray(image[:, :200]), 0.3, 320)  # another shape: black on other sides
    models = ModelsConfig(dir=str(artefacts))
    fresh = FaceDetector(open_model(getattr(models, f"face_{name}"), models))
    assert detectors[name].detect(image, 0.3, 640) == fresh.detect(image, 0.3, 640)


def test_boxes_are_not_clipped_to_the_picture(data: Path, detectors: dict[str, FaceDetector]) -> None:
    image = read_picture(data / "faces" / "obama_partial_face.jpg").image
    assert detectors["recall"].detect(image, 0.5)[0].box[0] < 0


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_faces_that_lie_or_hang_are_found_by_turning(
    data: Path, detectors: dict[str, FaceDetector], turns: int
) -> None:
    image = read_picture(data / "faces" / "city_pexels109919.jpg").image
    turned = np.ascontiguousarray(np.rot90(image, turns))
    height, width = image.shape[:2]
    required = required_faces(data, "city_pexels109919.jpg")

    def hits(faces: list[Face]) -> int:
        boxes = [turn_back(face.box, turns, (width, height)) for face in faces]
        return sum(any(iou(box, found) > 0.3 for found in boxes) for box in required)

    assert hits(detectors["recall"].detect_turned(turned, 0.3)) == 15
    assert hits(detectors["recall"].detect(turned, 0.3)) < 10


def test_landmarks_stand_where_the_face_is(data: Path, detectors: dict[str, FaceDetector]) -> None:
    image = read_picture(data / "faces" / "biden.jpg").image
    (x, y, w, h), = required_faces(data, "biden.jpg")  # fmt: skip
    points = detectors["recall"].landmarks(image, (x + w / 2, y + h / 2), 640)
    assert points is not None
    eyes, nose, mouth = points[:2], points[2], points[3:]
    assert eyes[0, 0] < nose[0] < eyes[1, 0]
    assert eyes[:, 1].max() < nose[1] < mouth[:, 1].min()
    assert all(x < px < x + w and y < py < y + h for px, py in points)
    assert detectors["recall"].landmarks(image, (5, 5), 640) is None
    assert detectors["fast"].landmarks(image, (x + w / 2, y + h / 2), 640) is None


def test_an_empty_picture_has_no_faces(detectors: dict[str, FaceDetector]) -> None:
    assert all(d.detect(np.zeros((0, 0, 3), np.uint8), 0.3) == [] for d in detectors.values())


def test_a_model_that_is_no_face_detector_is_refused(artefacts: Path) -> None:
    models = ModelsConfig(dir=str(artefacts))
    with pytest.raises(ModelError, match="no face decoder"):
        FaceDetector(open_model(models.emotion, models))
