from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.errors import DataError
from host_tools.tables import read_table, write_csv
from tests.conftest import need


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,0.5\n2,\n", b"\xef\xbb\xbfa;b\r\n1;0,5\r\n2;NaN\r\n", b"a\tb\n1\t.5\n2\tn/a\n"],
    ids=["comma", "bom-semicolon-decimal-comma", "tab"],
)
def test_dialects_read_alike(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    table = read_table(path)
    assert table.text("a") == ["1", "2"]
    np.testing.assert_equal(table.numbers("b"), [0.5, np.nan])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,a\n1,2\n", "a column stands twice: 'a'"),
        (b"a,b\n1,2\n3\n", "line 3: has 1 cells"),
        (b"a,b\n\xff,2\n", "is not UTF-8"),
    ],
    ids=["empty", "column-twice", "short-row", "latin-1"],
)
def test_bad_files_are_told_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_text_in_a_number_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("fcc\n0.5\nhigh\n")
    with pytest.raises(DataError, match=r"row 2, column 'fcc': is no number; got 'high'"):
        read_table(path).numbers("fcc")


def test_missing_column_lists_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="has no column 'c'; got a, b"):
        read_table(path).text("c")


def test_parquet_reads_like_csv(tmp_path: Path) -> None:
    pyarrow = need("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": ["x", "y"], "b": [0.5, None]}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.text("a") == ["x", "y"]
    np.testing.assert_equal(table.numbers("b"), [0.5, np.nan])


def test_written_numbers_keep_every_digit(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [{"a": np.float64(0.1) + 0.2, "b": float("nan")}], ["a", "b"])
    assert (tmp_path / "t.csv").read_text() == "a,b\n0.30000000000000004,\n"
