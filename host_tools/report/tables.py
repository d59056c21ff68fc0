"""A table of results in every form it is wanted in: part of a page, JSON, CSV and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.files import write_atomic
from host_tools.report.page import Section, cell
from host_tools.tables import write_csv

_LATEX_ESCAPES = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "→": r"$\rightarrow$",
        "–": "--",
    }
)


@dataclass(frozen=True)
class ReportTable:
    """Named columns and rows. `best` maps a column to the row whose cell stands out."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    best: Mapping[int, int] = field(default_factory=dict)

    def add_to(self, section: Section) -> None:
        """Append the table to a page's section."""
        section.table(self.columns, self.rows, caption=self.caption, best=self.best)

    def as_dict(self) -> dict[str, Any]:
        """Return the table as it goes into JSON: one object per row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        best = {self.columns[column]: row for column, row in self.best.items()}
        return {"name": self.name, "caption": self.caption, "rows": rows, "best": best}

    def latex(self) -> str:
        """Return a LaTeX ``table`` with a ``tabular`` in it; it needs no package."""
        numeric = [all(isinstance(row[i], int | float) or row[i] is None for row in self.rows) for i in self._indices]
        lines = [_latex_row(self.columns)]
        for number, row in enumerate(self.rows):
            texts = [cell(value) for value in row]
            lines.append(_latex_row(texts, bold={c for c, r in self.best.items() if r == number}))
        return (
            "\\begin{table}\n\\centering\n"
            f"\\caption{{{_latex(self.caption)}}}\n\\label{{tab:{self.name}}}\n"
            f"\\begin{{tabular}}{{{''.join('r' if n else 'l' for n in numeric)}}}\n\\hline\n"
            f"{lines[0]}\n\\hline\n" + "\n".join(lines[1:]) + "\n\\hline\n\\end{tabular}\n\\end{table}\n"
        )

    def write(self, folder: Path) -> None:
        """Write ``NAME.csv`` (every digit) and ``NAME.tex`` (four significant digits) into `folder`."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        write_csv(folder / f"{self.name}.csv", rows, self.columns)
        write_atomic(folder / f"{self.name}.tex", self.latex())

    @property
    def _indices(self) -> range:
        return range(len(self.columns))


def best_rows(
    rows: Sequence[Sequence[Any]], columns: Mapping[int, bool], among: Sequence[int] | None = None
) -> dict[int, int]:
    """Return column -> row of the best defined value.

    Parameters
    ----------
    columns : mapping
        Column -> True if the highest is best, False if the lowest is.
    among : sequence of int, optional
        Rows that compete; default all.
    """
    best = {}
    for column, highest in columns.items():
        defined = [
            (row[column], i)
            for i, row in enumerate(rows)
            if (among is None or i in among) and isinstance(row[column], int | float) and not math.isnan(row[column])
        ]
        if defined:
            best[column] = max(defined, key=lambda v: v[0] if highest else -v[0])[1]
    return best


def _latex(text: str) -> str:
    return text.translate(_LATEX_ESCAPES)


def _latex_row(texts: Sequence[str], bold: set[int] | None = None) -> str:
    cells = [f"\\textbf{{{_latex(t)}}}" if i in (bold or set()) else _latex(t) for i, t in enumerate(texts)]
    return " & ".join(cells) + " \\\\"
