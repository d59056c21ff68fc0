from __future__ import annotations

import csv
from pathlib import Path

import pytest

from host_tools.report.page import Page
from host_tools.report.tables import ReportTable, best_rows

NAN = float("nan")
ROWS = [["a_1", 0.25, 3], ["b&c", 1 / 3, None], ["d", NAN, 7]]
TABLE = ReportTable("scores", "Share of 100%", ["model", "accuracy", "n"], ROWS, best={1: 1})


def test_latex_escapes_aligns_and_marks_the_best() -> None:
    lines = TABLE.latex().splitlines()
    assert r"\caption{Share of 100\%}" in lines
    assert r"\begin{tabular}{lrr}" in lines
    assert r"a\_1 & 0.25 & 3 \\" in lines
    assert r"b\&c & \textbf{0.3333} & -- \\" in lines


def test_csv_keeps_every_digit_and_leaves_the_undefined_empty(tmp_path: Path) -> None:
    TABLE.write(tmp_path)
    rows = list(csv.DictReader((tmp_path / "scores.csv").read_text().splitlines()))
    assert [row["accuracy"] for row in rows] == ["0.25", str(1 / 3), ""]
    assert (tmp_path / "scores.tex").read_text() == TABLE.latex()


def test_page_and_json() -> None:
    page = Page("t")
    TABLE.add_to(page.section("s"))
    assert '<td class="number best">0.3333</td>' in page.render()
    assert TABLE.as_dict()["rows"][0] == {"model": "a_1", "accuracy": 0.25, "n": 3}
    assert TABLE.as_dict()["best"] == {"accuracy": 1}


@pytest.mark.parametrize(
    ("columns", "among", "expected"),
    [
        ({1: True, 2: True}, None, {1: 1, 2: 2}),
        ({1: False, 2: False}, None, {1: 0, 2: 0}),
        ({1: True}, [0, 2], {1: 0}),
        ({1: True}, [2], {}),
    ],
    ids=["highest", "lowest", "among", "undefined"],
)
def test_best(columns: dict, among: list | None, expected: dict) -> None:
    assert best_rows(ROWS, columns, among) == expected
