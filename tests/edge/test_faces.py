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
from edge.faces import FaceDetector, decode_blazeface, decode_centerface, suppress
from edge.records import Box
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


def test_boxes_are_not_clipped_to_the_picture(data: Path, detectors: dict[str, FaceDetector]) -> None:
    image = read_picture(data / "faces" / "obama_partial_face.jpg").image
    assert detectors["recall"].detect(image, 0.5)[0].box[0] < 0


def test_an_empty_picture_has_no_faces(detectors: dict[str, FaceDetector]) -> None:
    assert all(d.detect(np.zeros((0, 0, 3), np.uint8), 0.3) == [] for d in detectors.values())


def test_a_model_that_is_no_face_detector_is_refused(artefacts: Path) -> None:
    models = ModelsConfig(dir=str(artefacts))
    with pytest.raises(ModelError, match="no face decoder"):
        FaceDetector(open_model(models.emotion, models))
