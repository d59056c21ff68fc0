from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.config import GazeConfig
from edge.errors import DataError
from host_tools.datasets import layout

HEAD = "sample_id,participant,label,media"


def write(folder: Path, *rows: str, head: str = HEAD, info: str = 'name = "x"\nlabels = "happy,sad"\n') -> Path:
    (folder / "samples.csv").write_text("\n".join([head, *rows]) + "\n")
    (folder / "dataset.toml").write_text(info)
    return folder


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    info = layout.DatasetInfo(name='a "b"', labels="ekman6", kappa=0.8, lacks=("EEG",), gaze=GazeConfig(units="px"))
    samples = [layout.Sample("1", "P1", "happy", media="a.jpg"), layout.Sample("2", "P1", "sad", split="test")]
    layout.write(tmp_path, info, samples)
    dataset = layout.load(tmp_path)
    assert (dataset.info, list(dataset.samples)) == (info, samples)
    assert [s.sample_id for s in dataset.only("test").samples] == ["2"]
    assert dataset.only("test").known == {"1", "2"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1,a,happy,", "1,a,sad,"], "1 sample ids stand more than once; got 1"),
        (["1,a,bored,"], "outside the set custom: bored"),
        (["1,a,happy,gone.jpg"], "1 media files are missing: gone.jpg"),
        (["1,a,happy,../../etc/passwd"], "media paths lead out of the folder: ../../etc/passwd"),
    ],
    ids=["double", "label", "missing-file", "path-out"],
)
def test_bad_tables_are_told_in_one_line(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        layout.load(write(tmp_path, *rows))


def test_unknown_column_and_key_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown columns: lable"):
        layout.load(write(tmp_path, "1,a,happy,", head="sample_id,participant,label,lable"))
    with pytest.raises(DataError, match="unknown field `nam`"):
        layout.load(write(tmp_path, "1,a,happy,", info='name = "x"\nnam = 1\n'))


def test_no_such_split(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no sample of split 'test'; got \(none\)"):
        layout.load(write(tmp_path, "1,a,happy,")).only("test")


def test_given_fixations_are_grouped_and_strangers_named(tmp_path: Path) -> None:
    write(tmp_path, "1,a,happy,", "2,a,sad,")
    (tmp_path / "fixations.csv").write_text("sample_id,x_px,y_px,duration_ms\n2,5,6,100\n1,1,2,200\n2,7,8,300\n")
    found = layout.load(tmp_path).given_fixations
    assert found is not None
    np.testing.assert_equal(found["2"]["x_px"], [5, 7])
    np.testing.assert_equal(found["1"]["start_ms"], [np.nan])
    (tmp_path / "fixations.csv").write_text("sample_id,x_px,y_px\n9,5,6\n")
    with pytest.raises(DataError, match="unknown samples: 9"):
        _ = layout.load(tmp_path).given_fixations
