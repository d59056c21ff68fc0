"""The pictures that quantisation is calibrated on, and those that it is judged on; never the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.answers import Answers
from edge.capture.images import SUFFIXES, list_pictures, read_picture
from edge.errors import DataError
from edge.features import window_px
from edge.records import Image

MIN_PICTURES = 4
N_CALIBRATION = 128  # percentile calibration needs more than about 30 varied crops
_SCENES = 0.25  # the share of whole scenes among them


@dataclass(frozen=True)
class Pictures:
    """Pictures by name, split: every third one is held out. `answers`: labels of some of them."""

    calibration: dict[str, Image]
    held: dict[str, Image]
    answers: Answers | None = None


def load(folder: Path, held: Path | None = None, answers: Answers | None = None) -> Pictures:
    """Read a folder of pictures; `held`: a second folder for the judgement, else a third of the first.

    Raises
    ------
    DataError
        There are too few pictures: INT8 without real pictures is never made.
    """
    found = _read(folder)
    if held:
        return Pictures(found, _read(held), answers)
    if len(found) < MIN_PICTURES:
        raise DataError(
            str(folder),
            "too few pictures to calibrate on and to judge on others",
            expected=f"at least {MIN_PICTURES}, and better dozens ({', '.join(SUFFIXES)})",
            got=str(len(found)),
        )
    names = sorted(found)
    split = ({n: found[n] for n in names if n not in names[2::3]}, {n: found[n] for n in names[2::3]})
    return Pictures(*split, answers)


def _read(folder: Path) -> dict[str, Image]:
    if not folder.is_dir():
        raise DataError(str(folder), "no such folder", fix="--images takes a folder of pictures")
    return {file.name: read_picture(file).image for file in list_pictures(folder)}


def crops(pictures: dict[str, Image], n: int = N_CALIBRATION, *, seed: int = 0) -> list[Image]:
    """Draw what the runtime will embed: windows at random places, and whole scenes, evenly over the pictures."""
    rng = np.random.default_rng(seed)
    images = list(pictures.values())
    result = []
    for i in range(n):
        image = images[i % len(images)]
        height, width = image.shape[:2]
        if rng.random() < _SCENES:
            result.append(image)
            continue
        side = window_px(width, height, "auto")
        left, top = rng.integers(0, width - side + 1), rng.integers(0, height - side + 1)
        result.append(image[top : top + side, left : left + side])
    return result
