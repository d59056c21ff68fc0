"""The re-identification benchmark: its statistics by hand, its crops, and what it finds on real faces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.reidentification import KnownFace, find_faces, measure, render, wilson
from edge.capture.images import read_picture
from edge.config import ModelsConfig
from edge.errors import DataError
from tests.conftest import missing


@pytest.mark.parametrize(
    ("hits", "n", "expected"),
    [
        # Newcombe (1998), table I, method 3
        pytest.param(81, 263, (0.2553, 0.3662), id="newcombe-81-of-263"),
        pytest.param(15, 148, (0.0624, 0.1605), id="newcombe-15-of-148"),
        pytest.param(0, 20, (0.0, 0.1611), id="newcombe-0-of-20"),
        pytest.param(1, 29, (0.0061, 0.1718), id="newcombe-1-of-29"),
    ],
)
def test_wilson_interval(hits: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(hits, n) == pytest.approx(expected, abs=5e-5)


def test_a_solid_cover_leaves_nothing_of_the_crop(data: Path) -> None:
    image = read_picture(data / "faces" / "biden.jpg").image
    crop = render(KnownFace(image, (417, 165, 296, 394)), "solid", 0.25, np.random.default_rng(0))
    assert crop.max() <= 2


def test_two_crops_of_a_face_differ(data: Path) -> None:
    face = KnownFace(read_picture(data / "faces" / "biden.jpg").image, (417, 165, 296, 394))
    rng = np.random.default_rng(0)
    one, other = render(face, "none", 0.25, rng), render(face, "none", 0.25, rng)
    assert one.shape != other.shape or (one != other).any()


def test_too_few_faces_are_refused(data: Path, artefacts: Path) -> None:
    models = ModelsConfig(dir=str(artefacts))
    faces = find_faces([data / "faces" / "biden.jpg"], models)
    assert len(faces) == 1
    with pytest.raises(DataError, match="at least 20"):
        measure(faces, models)


@pytest.mark.long
def test_clear_faces_are_recognised_and_solid_ones_are_not(data: Path, artefacts: Path) -> None:
    if not (artefacts / "face_recognition-fp32").is_dir():
        missing("reidentification", "its recogniser isn't fetched: python -m models fetch face_recognition-fp32")
    models = ModelsConfig(dir=str(artefacts))
    # Fifteen people of a street, three portraits, and three of the street mirrored to make up the number.
    street = read_picture(data / "faces" / "city_pexels109919.jpg").image
    boxes = [tuple(map(float, line.split(",")[1:5])) for line in _required(data / "faces" / "faces_gt.csv")]
    faces = [KnownFace(street, (x, y, w, h)) for x, y, w, h in boxes]
    faces += [face for name in ("biden", "obama_partial_face", "portrait_exif_pexels3763152")
              for face in find_faces([data / "faces" / f"{name}.jpg"], models)]  # fmt: skip
    faces += [KnownFace(street[:, ::-1].copy(), (800 - x - w, y, w, h)) for x, y, w, h in boxes[:3]]
    result = measure(faces, models)
    assert result["n"] == len(faces) >= 20
    assert result["attacks"]["none"]["clear"]["rate"] > 0.7
    assert not result["attacks"]["solid"]["clear"]["above_chance"]
    assert not result["attacks"]["solid"]["alike"]["above_chance"]


def _required(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("city") and line.endswith("required")]
