"""The search of what changed: nothing is searched twice, nothing that changed is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.backends.base import open_model
from edge.capture.images import read_picture
from edge.config import ModelsConfig
from edge.faces import FaceDetector
from edge.recall import RecallSearch
from edge.records import Face, Frame, Image
from edge.tracking import iou

MS = 1_000_000


class Counted(FaceDetector):
    """The real detector, noting the sizes of what it was given."""

    def __init__(self, detector: FaceDetector) -> None:
        super().__init__(detector.model)
        self.seen: list[tuple[int, int]] = []

    def detect(self, image: Image, min_score: float, long_side_px: int | None = None) -> list[Face]:
        self.seen.append((image.shape[1], image.shape[0]))
        return super().detect(image, min_score, long_side_px)


@pytest.fixture(scope="module")
def detector(artefacts: Path) -> FaceDetector:
    models = ModelsConfig(dir=str(artefacts))
    return FaceDetector(open_model(models.face_recall, models))


@pytest.fixture
def search(detector: FaceDetector) -> tuple[RecallSearch, Counted]:
    counted = Counted(detector)
    return RecallSearch(counted, 0.3, 960), counted


@pytest.fixture(scope="module")
def street(data: Path) -> Image:
    return read_picture(data / "faces" / "city_pexels109919.jpg").image  # 800 x 564


def frame(t_ms: int, image: Image) -> Frame:
    return Frame(0, t_ms * MS, image.copy(), "story")


LAST = (762.9, 113.8, 30.1, 43.4)  # the rightmost face of the street


def without_last(street: Image) -> Image:
    hidden = street.copy()
    hidden[80:200, 740:800] = street[400:520, 600:660]
    return hidden


def shows_last(faces: list[Face]) -> bool:
    return any(iou(face.box, LAST) > 0.5 for face in faces)


def test_a_still_picture_is_searched_once_a_second(search: tuple[RecallSearch, Counted], street: Image) -> None:
    find, counted = search
    found = [find(frame(t, street)) for t in (0, 100, 500, 999, 1000)]
    assert counted.seen == [(800, 564)] * 2
    assert all(faces == found[0] for faces in found)


def test_a_face_that_appears_is_found_in_what_changed(search: tuple[RecallSearch, Counted], street: Image) -> None:
    find, counted = search
    before = find(frame(0, without_last(street)))
    after = find(frame(100, street))
    assert counted.seen[1][0] * counted.seen[1][1] < 0.3 * 800 * 564
    assert (shows_last(before), shows_last(after)) == (False, True)
    assert len(after) >= 15


def test_a_face_that_leaves_is_no_longer_found(search: tuple[RecallSearch, Counted], street: Image) -> None:
    find, _ = search
    before = find(frame(0, street))
    after = find(frame(100, without_last(street)))
    assert (shows_last(before), shows_last(after)) == (True, False)


def test_a_slow_change_adds_up_until_it_is_searched(search: tuple[RecallSearch, Counted], street: Image) -> None:
    find, counted = search
    fade = street.astype(np.int16)
    for step in range(6):
        dimmed = fade.copy()
        dimmed[:100, :100] -= step  # one level a picture: none of the steps alone counts
        find(frame(100 * step, np.clip(dimmed, 0, 255).astype(np.uint8)))
    assert len(counted.seen) > 1


def test_a_new_size_or_an_older_time_starts_afresh(search: tuple[RecallSearch, Counted], street: Image) -> None:
    find, counted = search
    for picture in (frame(500, street), frame(600, street[:, :400]), frame(400, street[:, :400])):
        find(picture)
    assert counted.seen == [(800, 564), (400, 564), (400, 564)]
