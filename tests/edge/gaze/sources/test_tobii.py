"""Tobii exports: validity decides which eye counts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from edge.config import FixationConfig, GazeConfig
from edge.errors import SourceError
from edge.gaze.fixations import detect
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import open_gaze
from edge.gaze.sources.tobii import find_layout, open_source

SCREEN = "screen = {width_mm = 510, height_mm = 287, width_px = 1920, height_px = 1080, distance_mm = 650}"
PRO_LAB = (
    "Recording timestamp [{unit}]\tSensor\tGaze point left X [DACS px]\tGaze point left Y [DACS px]\t"
    "Gaze point right X [DACS px]\tGaze point right Y [DACS px]\tPupil diameter left [mm]\tPupil diameter right [mm]\t"
    "Validity left\tValidity right\n"
    "10\tEye Tracker\t100\t200\t110\t220\t3,0\t4,0\tValid\tValid\n"
    "12\tMouse\t\t\t\t\t\t\t\t\n"
    "20\tEye Tracker\t100\t200\t\t\t3,0\t\tValid\tInvalid\n"
    "30\tEye Tracker\t\t\t\t\t\t\tInvalid\tInvalid\n"
)


@pytest.mark.parametrize("name", ["participant1_1", "participant2_3"])
def test_validity_4_is_never_a_fixation(data: Path, name: str) -> None:
    file = data / "gaze" / "tobii_tx300_300hz" / f"{name}.tsv"
    config = GazeConfig(source=str(file), geometry=SCREEN)
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        read = list(source)
    with file.open() as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    both_lost = [row["LValidity"] == row["RValidity"] == "4" for row in rows]
    assert len(read) == len(rows)
    assert [not raw.valid for raw in read] == both_lost
    result = detect(map(mapping, read), FixationConfig(), source.info.hz_declared)
    assert result.hz_measured == pytest.approx(300, rel=0.01)
    assert result.n_invalid == sum(both_lost)
    assert len(result.fixations) >= 5
    lost_ns = [raw.t_ns for raw, lost in zip(read, both_lost, strict=True) if lost]
    inside = [t for t in lost_ns if any(f.start_ns <= t <= f.end_ns for f in result.fixations)]
    # A loss of up to 75 ms may be bridged, but no longer one.
    assert len(inside) < 0.1 * len(lost_ns) + 25


def test_one_good_eye_is_enough(data: Path) -> None:
    file = data / "gaze" / "tobii_tx300_300hz" / "participant2_3.tsv"
    with file.open() as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    with open_source(GazeConfig(source=str(file), geometry=SCREEN)) as source:
        read = list(source)
    one_eyed = [i for i, row in enumerate(rows) if (row["LValidity"], row["RValidity"]) == ("4", "0")]
    assert len(one_eyed) == 3
    for i in one_eyed:
        assert (read[i].x, read[i].y) == (float(rows[i]["RGazePos2dx"]), float(rows[i]["RGazePos2dy"]))
        assert read[i].pupil_mm == float(rows[i]["RPupilDm"])


@pytest.mark.parametrize(("unit", "ns"), [("ms", 1_000_000), ("μs", 1_000)], ids=["ms", "us"])
def test_pro_lab(tmp_path: Path, unit: str, ns: int) -> None:
    file = tmp_path / "export.tsv"
    file.write_text(PRO_LAB.format(unit=unit), encoding="utf-8-sig")
    config = GazeConfig(source=str(file), geometry=SCREEN)
    with open_gaze(config) as source:
        read = list(source)
    assert source.info.frame == "screen_px"
    assert [raw.t_ns for raw in read] == [0, 10 * ns, 20 * ns]
    assert [(raw.x, raw.y, raw.pupil_mm) for raw in read[:2]] == [(105, 210, 3.5), (100, 200, 3.0)]
    assert [raw.valid for raw in read] == [True, True, False]


def test_other_tables_are_none_of_its_business(tmp_path: Path) -> None:
    assert find_layout(["t", "x", "y"]) is None
    file = tmp_path / "gaze.tsv"
    file.write_text("t\tx\ty\n0\t1\t2\n")
    with pytest.raises(SourceError, match=r"no known Tobii export.*t, x, y"):
        open_source(GazeConfig(source=str(file)))
