from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.errors import DataError
from host_tools.samples import read_samples

HEAD = "sample_id,participant,true,pred,fcc"


def write(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "samples.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1,a,happy,happy,0.5", "1,a,sad,sad,0.5"], "1 sample ids stand more than once; got 1"),
        ([",a,happy,happy,0.5"], "row 1: has no sample_id"),
        (["1,a,happy,happy,1.5"], r"row 1, column 'fcc': is outside its bounds; .*got 1.5"),
        (["1,a,happy,happy,-0.1", "2,a,sad,sad,2"], r"got -0.1 \(2 such rows\)"),
        (["1,a,happy,happy,inf"], "got inf"),
        (["1,a,bored,happy,0.5"], r"outside the set custom: bored \(1\)"),
        (["1,,happy,happy,0.5", "2,b,sad,sad,0.5"], "row 1: has no participant"),
        ([], "has no samples"),
    ],
    ids=["double", "no-id", "fcc-above", "fcc-below", "fcc-inf", "true-label", "participant", "empty"],
)
def test_bad_input_is_told_in_one_line(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_samples(write(tmp_path, *rows), labels="happy,sad")


def test_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no column 'fcc'"):
        read_samples(write(tmp_path, "1,a,happy,happy", head="sample_id,participant,true,pred"), labels="happy,sad")


def test_optional_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "1,a,happy,joy,0.5,0.7,0.3,0.9,,indoor",
        "2,b,sad,meh,,0.6,0.3,0.1,0.4,outdoor",
        head=HEAD + ",p_happy,p_sadness,att_gaze,att_voice,scene_type",
    )
    table = read_samples(path, labels="happy,sad")
    assert table.samples.pred.tolist() == [0, 2]
    assert table.other == {"meh": 1}
    np.testing.assert_equal(table.samples.p_true, [0.7, 0.3])
    np.testing.assert_equal(table.attention["voice"], [np.nan, 0.4])
    assert table.scene_types == ["indoor", "outdoor"]
    assert table.notes == ("probabilities of 1 samples don't sum to 1",)


def test_probabilities_of_some_labels_only(tmp_path: Path) -> None:
    path = write(tmp_path, "1,a,happy,happy,0.5,0.7", head=HEAD + ",p_happy")
    with pytest.raises(DataError, match="probabilities of some labels only; expected also p_sad"):
        read_samples(path, labels="happy,sad")


def test_a_map_that_changes_the_meaning_is_an_option(tmp_path: Path) -> None:
    path = write(tmp_path, "1,a,worry,fear,0.5")
    with pytest.raises(DataError, match="worried"):
        read_samples(path, labels="ekman6")
    table = read_samples(path, labels="ekman6", maps=["worry-to-fear"])
    assert table.samples.true.tolist() == table.samples.pred.tolist()


def test_no_participants_at_all_are_unknown(tmp_path: Path) -> None:
    assert read_samples(write(tmp_path, "1,,happy,happy,"), labels="happy,sad").samples.participants is None
