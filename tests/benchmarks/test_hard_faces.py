"""The variants put the faces where they say: a coloured patch stands for a face."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.hard_faces import VARIANTS, Scene
from edge.records import Box

BOX: Box = (120.0, 40.0, 60.0, 80.0)


def scene() -> Scene:
    image = np.full((300, 400, 3), 60, np.uint8)
    image[40:120, 120:180] = (0, 0, 255)
    return Scene(image, (BOX,))


def red(image: np.ndarray) -> Box:
    """The box of what is red."""
    found = (image[:, :, 2].astype(int) - image[:, :, 0]) > 60
    rows, columns = np.nonzero(found)
    left, top = columns.min(), rows.min()
    return float(left), float(top), float(columns.max() + 1 - left), float(rows.max() + 1 - top)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in {"lower half hidden", "cut in half"}])
def test_the_box_follows_the_face(name: str) -> None:
    for variant in VARIANTS[name](scene()):
        assert variant.boxes[0] == pytest.approx(red(variant.image), abs=3)


def test_a_mask_hides_the_lower_part() -> None:
    (variant,) = VARIANTS["lower half hidden"](scene())
    assert variant.boxes == (BOX,)
    assert red(variant.image) == (120, 40, 60, 44)  # 55 % of 80 px


def test_a_face_is_cut_by_the_left_edge() -> None:
    (variant,) = VARIANTS["cut in half"](scene())
    assert variant.boxes == ((-30.0, 40.0, 60.0, 80.0),)
    assert red(variant.image) == (0, 40, 30, 80)
