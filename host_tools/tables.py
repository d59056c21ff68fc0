"""Tables of text and numbers: Parquet, and CSV as people save it (byte-order mark, semicolons, decimal commas)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from edge.files import write_atomic

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})
DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, as text. `path` names the table in errors."""

    path: str
    columns: dict[str, list[str]]
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def text(self, name: str) -> list[str]:
        """Return a column, stripped. Raises DataError with the columns that are there if it is not."""
        if name not in self.columns:
            raise DataError(
                self.path, f"has no column {name!r}", got=", ".join(self.columns), fix="name it, or map the columns"
            )
        return self.columns[name]

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column as float64 (n,); an empty cell, NaN, NA or null is `nan`.

        Raises
        ------
        DataError
            If a cell is no number; row and content are named.
        """
        values = np.empty(len(self), dtype=np.float64)
        for i, cell in enumerate(self.text(name)):
            if cell.lower() in MISSING:
                values[i] = np.nan
                continue
            try:
                values[i] = float(cell.replace(",", ".") if self.decimal_comma else cell)
            except ValueError:
                raise DataError(f"{self.path}, row {i + 1}, column {name!r}", "is no number", got=repr(cell)) from None
        return values


def read_table(path: Path) -> Table:
    """Read a CSV (comma, semicolon or tab; UTF-8 with or without a byte-order mark) or a Parquet file.

    In a file separated by semicolons a decimal comma is read as a point.

    Raises
    ------
    DataError
        If the file is missing, empty, not text, has a column twice or a row of another length (line named).
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), f"can't be read: {error.strerror}") from error
    if path.suffix == ".parquet":
        return _read_parquet(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            str(path), f"is not UTF-8: {error.reason} at byte {error.start}", fix="save it as UTF-8"
        ) from None
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = next(filter(None, lines), None)
    if names is None:
        raise DataError(str(path), "is empty", expected="a row of column names")
    header, cells = _header(path, names), []
    for row in filter(None, lines):
        if len(row) != len(header):
            expected = f"{len(header)}, as the first line"
            raise DataError(f"{path}, line {lines.line_num}", f"has {len(row)} cells", expected=expected)
        cells += row
    cells = list(map(str.strip, cells))  # one flat list: a list per row would cost most of the time
    columns = {name: cells[i :: len(header)] for i, name in enumerate(header)}
    return Table(str(path), columns, decimal_comma=delimiter == ";")


def _header(path: Path, names: Sequence[str]) -> list[str]:
    header = [name.strip() for name in names]
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(str(path), "a column stands twice: " + ", ".join(repr(t) for t in twice))
    return header


def _read_parquet(path: Path) -> Table:
    from pyarrow import ArrowInvalid, parquet

    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise DataError(str(path), f"can't be read as Parquet: {error}") from None
    columns = {
        name: ["" if v is None else str(v) for v in table.column(name).to_pylist()] for name in table.column_names
    }
    return Table(str(path), columns)


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], header: Sequence[str]) -> None:
    """Write `rows` as CSV in one step. `nan` and None become empty cells; floats keep every digit that they have."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(_cell(row.get(name)) for name in header)
    write_atomic(path, buffer.getvalue())


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return value.item() if hasattr(value, "item") else value
