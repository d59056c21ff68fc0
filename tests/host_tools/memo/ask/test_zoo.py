from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.errors import ModelError
from host_tools.engine import Engine
from host_tools.labels import SETS
from host_tools.memo.ask import zoo
from host_tools.memo.ask.survey import Subject


def test_the_largest_face_is_classified_and_no_face_has_no_label(data: Path, artefacts: Path, tmp_path: Path) -> None:
    blank = tmp_path / "blank.png"
    cv2.imwrite(str(blank), np.full((120, 120, 3), 90, np.uint8))
    portrait = data / "faces" / "portrait_exif_pexels3763152.jpg"
    subjects = [Subject("portrait", portrait, 0), Subject("blank", blank, 0)]
    engine = Engine(done_dir=tmp_path / "done")
    answers = zoo.classify("mini_xception-fp32", subjects, engine)
    assert answers["portrait"][0] in SETS["fer7"]
    assert answers["blank"] == ("", "")
    assert list((tmp_path / "done").rglob("*.msgpack"))
    assert zoo.classify("mini_xception-fp32", subjects, engine) == answers


def test_an_artefact_that_is_not_there(artefacts: Path) -> None:
    with pytest.raises(ModelError):
        zoo.classify("none-fp32", [], Engine())
