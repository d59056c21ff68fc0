"""The audit: what it counts, on pictures whose faces and covers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.audit import Auditor, changed_share, pose_of, read_boxes, size_class, windows
from edge.capture.images import read_picture
from edge.config import ModelsConfig
from edge.errors import DataError, ModelError
from edge.privacy import cover_face
from edge.records import Box, Face, Image, RedactedFrame
from tests.conftest import missing


@pytest.mark.parametrize(
    ("height", "name"),
    [(15.9, "0-15"), (16, "16-31"), (40, "32-63"), (127, "64-127"), (128, ">=128"), (900, ">=128")],
)
def test_size_classes(height: float, name: str) -> None:
    assert size_class(height) == name


@pytest.mark.parametrize(
    ("points", "pose"),
    [
        pytest.param([(0, 0), (40, 0), (20, 20)], "frontal", id="nose-between"),
        pytest.param([(0, 0), (40, 0), (32, 20)], "half-profile", id="nose-towards-one-eye"),
        pytest.param([(0, 0), (20, 0), (24, 20)], "profile", id="nose-beyond-the-eye"),
        pytest.param([(0, 0), (28, 28), (0, 28)], "tilted", id="eyes-at-45-degrees"),
        pytest.param([(40, 20), (0, 20), (20, 0)], "upside-down", id="nose-above"),
    ],
)
def test_poses(points: list[tuple[float, float]], pose: str) -> None:
    assert pose_of(np.array([*points, (0, 0), (0, 0)], float)) == pose


def test_windows_overlap_and_cover_the_picture() -> None:
    assert windows(400, 300) == [(0, 0)]
    assert windows(1280, 512) == [(0, 0), (384, 0), (768, 0)]
    corners = windows(1000, 700)
    seen = np.zeros((700, 1000), bool)
    for x, y in corners:
        seen[y : y + 512, x : x + 512] = True
    assert seen.all()


def test_changed_share() -> None:
    before, after = np.zeros((20, 20, 3), np.uint8), np.zeros((20, 20, 3), np.uint8)
    after[:, 10:] = 1
    assert changed_share(before, after, (5, 0, 10, 20)) == 0.5
    assert changed_share(before, after, (15, -5, 20, 20)) == 1.0
    assert changed_share(before, after, (100, 100, 5, 5)) == 1.0  # nothing of it is in the picture


def test_boxes_are_read_and_only_required_ones_count(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("image,x,y,w,h,use\na.jpg,1,2,3,4,required\na.jpg,5,6,7,8,hard\n")
    assert read_boxes(path) == {"a.jpg": [(1, 2, 3, 4)]}
    path.write_text("image,x,y,w\na.jpg,1,2,3\n")
    with pytest.raises(DataError, match="image,x,y,w,h"):
        read_boxes(path)


@pytest.fixture(scope="module")
def models(artefacts: Path) -> ModelsConfig:
    if not (artefacts / "face_ssd-fp32").is_dir():
        missing("audit", "its detector isn't fetched: python -m models fetch face_ssd-fp32")
    return ModelsConfig(dir=str(artefacts))


FACE: Box = (763.0, 112.0, 30.0, 48.0)  # the rightmost of the street
OTHER: Box = (426.0, 138.0, 15.0, 25.0)


def covered(street: Image, boxes: list[Box], faces: tuple[Face, ...] = ()) -> RedactedFrame:
    image = street.copy()
    for box in boxes:
        cover_face(image, box, "solid", 0.25)
    return RedactedFrame(3, 0, image, "street", "scene", faces)


@pytest.fixture(scope="module")
def street(data: Path) -> Image:
    return read_picture(data / "faces" / "city_pexels109919.jpg").image[80:260, 400:800].copy()


def moved(box: Box) -> Box:
    return box[0] - 400, box[1] - 80, box[2], box[3]


def test_an_uncovered_face_is_missed_and_found_again(models: ModelsConfig, street: Image) -> None:
    auditor = Auditor(models, {"street": [moved(FACE), moved(OTHER)]})
    auditor.compare("street", street, covered(street, [moved(FACE)]))
    result = auditor.result()
    assert (result["drawn"]["n"], result["drawn"]["covered"]) == (2, 1)
    assert result["drawn"]["missed"][0]["box"] == [26.0, 58.0, 15.0, 25.0]
    assert result["drawn"]["by_size"] == {"16-31": {"n": 1, "covered": 0}, "32-63": {"n": 1, "covered": 1}}
    assert result["detected"]["n"] > result["detected"]["covered"] >= 1
    assert result["still_found"]["uncovered"] >= 1


def test_a_face_left_clear_by_gaze_is_no_miss(models: ModelsConfig, street: Image) -> None:
    looked_at = Face(moved(FACE), 0.9, covered=False, fixated=True)
    picture = covered(street, [(0, 0, 340, 180)], (looked_at,))
    auditor = Auditor(models)
    auditor.compare("street", street, picture)
    result = auditor.result()
    assert result["clear_by_gaze"] == 1
    assert result["detected"]["covered"] == result["detected"]["n"] > 0
    assert result["still_found"]["uncovered"] == 0
    assert result["drawn"] is None


def test_a_lacking_auditor_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="fetch face_ssd-fp32"):
        Auditor(ModelsConfig(dir=str(tmp_path)))


def test_one_picture_a_second_of_a_clip_is_due(models: ModelsConfig) -> None:
    auditor = Auditor(models)
    assert [auditor.is_due(t * 100_000_000) for t in range(12)] == [True, *[False] * 9, True, False]
