"""Raters' votes as arrays, pictures x raters: read from a matrix of one dimension, or from votes one a line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools.labels import SETS, canonical, choose
from host_tools.memo.remarks import Remarks
from host_tools.tables import DELIMITERS, MISSING, Table, read_table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Key = str | int  #: an identifier as the file gives it; a matrix without a header numbers its rows and columns from 0

#: What a column may be called in a file, by what it holds.
COLUMN_NAMES = {
    "image": ("image", "picture", "stimulus", "image_id", "img", "file", "filename", "image_name", "name", "id"),
    "rater": ("rater", "observer", "annotator", "participant", "subject", "rater_id", "user", "worker"),
    "category": ("category", "emotion", "type", "emotion_type", "class", "label"),
    "degree": ("degree", "intensity", "emotion_degree", "emotional_degree"),
    "quality": ("quality", "quality_score"),
    "score": ("score", "rating", "value", "vote"),
    "prompt": ("prompt_emotion", "prompt_class", "prompt"),
}
DIMENSIONS = ("degree", "quality", "score")
SCALE = (0.0, 5.0)
DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d+),(\d+\s*)$")  #: of a score in a file separated by semicolons


@dataclass(frozen=True)
class Ratings:
    """All votes of one study.

    Attributes
    ----------
    images, raters : list
        Identifiers, in the order in which the file names them.
    scores : dict
        Dimension -> float64 (images, raters); nan where there is no score.
    votes : int64 (images, raters) or None
        Index into `labels`, -1 where there is no vote.
    prompts : int64 (images,) or None
        Class that the picture was made for, -1 where it isn't known.
    """

    images: list[Key]
    raters: list[Key]
    scores: dict[str, Floats]
    labels: list[str] = field(default_factory=list)
    votes: Ints | None = None
    prompts: Ints | None = None
    remarks: Remarks = field(default_factory=Remarks)

    def given(self) -> npt.NDArray[np.bool_]:
        """Return where a rater said anything about a picture (images, raters)."""
        said = np.zeros((len(self.images), len(self.raters)), bool) if self.votes is None else self.votes >= 0
        for values in self.scores.values():
            said = said | np.isfinite(values)
        return said

    def without(self, raters: Sequence[Key]) -> Ratings:
        """Return the ratings less those of `raters`."""
        keep = [i for i, rater in enumerate(self.raters) if rater not in raters]
        return replace(
            self,
            raters=[self.raters[i] for i in keep],
            scores={name: values[:, keep] for name, values in self.scores.items()},
            votes=None if self.votes is None else self.votes[:, keep],
        )


@dataclass(frozen=True)
class VoteTable:
    """Votes one a line: who gave what to which picture. `columns` maps ``category`` and dimensions to their texts."""

    images: Sequence[Key]
    raters: Sequence[Key]
    columns: Mapping[str, Sequence[str]]


def read_ratings(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    labels: str = "",
) -> Ratings:
    """Read a file of votes, wide or long.

    A long file has a header with a picture and a rater column and at least one of category, degree, quality or score.
    Any other file is a matrix of one dimension, a row per picture and a column per rater, with or without a header.

    Parameters
    ----------
    path : Path
        CSV; comma, semicolon or tab; a byte-order mark is taken off.
    columns : mapping, optional
        What a column holds -> its name in the file, for names that aren't in `COLUMN_NAMES`.
    scale : (float, float), optional
        Lowest and highest score allowed; scores outside are left out and counted. Default: 0 to 5 in a long file,
        unchecked in a matrix.
    labels : str
        Label set of the categories, as in `assemble`.

    Raises
    ------
    DataError
        If the file can't be read, holds no scores, or has a mapped column missing.
    """
    if path.suffix == ".parquet" or {"image", "rater"} <= set(find_columns(_first_row(path), columns or {})):
        return _read_long(read_table(path), columns or {}, scale or SCALE, labels)
    if columns:
        raise DataError(str(path), "has no such picture and rater column", got=", ".join(_first_row(path)))
    return _read_matrix(_rows(path), scale, thing=str(path))


def find_columns(header: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return what each column holds -> its name in the file, by `mapping` first and by `COLUMN_NAMES` else."""
    by_lower = {name.strip().lower(): name.strip() for name in reversed(header)}
    found = {}
    for role, known in COLUMN_NAMES.items():
        wanted = (mapping[role].lower(),) if role in mapping else known
        match = next((by_lower[name] for name in wanted if name in by_lower), None)
        if match is not None:
            found[role] = match
    return found


def assemble(
    tables: Sequence[VoteTable],
    *,
    scale: tuple[float, float] = SCALE,
    labels: str = "",
    prompts: Mapping[Key, str] | None = None,
) -> Ratings:
    """Put tables of votes together into arrays over the union of their pictures and raters.

    Parameters
    ----------
    tables : sequence of VoteTable
        Each dimension stands in one of them.
    scale : (float, float)
        Lowest and highest score allowed; scores outside are left out and counted.
    labels : str
        Label set of the categories (see `host_tools.labels`), or ``any``; default ``memo6`` if it holds any vote.
    prompts : mapping, optional
        Picture -> class that it was made for.
    """
    images, raters, remarks, classes = _Index(), _Index(), Remarks(), _Labels(labels)
    places = [(images.encode(table.images), raters.encode(table.raters)) for table in tables]
    shape = (len(images.codes), len(raters.codes))
    scores: dict[str, Floats] = {}
    votes: Ints | None = None
    for table, (row, col) in zip(tables, places, strict=True):
        _count_duplicates(table, row * shape[1] + col, remarks)
        for name, values in table.columns.items():
            if name == "category":
                votes = np.full(shape, -1, np.int64)
                votes[row, col] = classes.encode(values, remarks)
            else:
                scores[name] = np.full(shape, np.nan)
                scores[name][row, col] = _numbers(values, name, scale, remarks)
    wanted = None
    if prompts is not None:
        wanted = classes.encode([prompts.get(image, "") for image in images.codes], remarks, what="prompt classes")
    return Ratings(list(images.codes), list(raters.codes), scores, classes.names, votes, wanted, remarks)


def _count_duplicates(table: VoteTable, cells: Ints, remarks: Remarks) -> None:
    """Count the votes whose picture and rater have another one further down."""
    order = np.argsort(cells, kind="stable")
    doubled = order[:-1][cells[order][1:] == cells[order][:-1]]
    if len(doubled):
        first = int(doubled.min())
        what = f"duplicate votes of {' and '.join(table.columns)}; the last one counts"
        remarks.add(what, len(doubled), f"{table.images[first]} by {table.raters[first]}")


class _Index:
    """Numbers names in the order in which they are met."""

    def __init__(self) -> None:
        self.codes: dict[Key, int] = {}

    def encode(self, names: Sequence[Key]) -> Ints:
        for name in dict.fromkeys(names):
            self.codes.setdefault(name, len(self.codes))
        return np.fromiter(map(self.codes.__getitem__, names), np.int64, len(names))


class _Labels:
    """Class names in the order in which they are met, each spelt as the file first spells it."""

    def __init__(self, option: str) -> None:
        self.names: list[str] = []
        self._option = option
        self._allowed: frozenset[str] | None = None
        self._code: dict[str, int] = {"": -1}
        self._by_class: dict[str, int] = {}

    def encode(self, values: Sequence[str], remarks: Remarks, *, what: str = "category votes") -> Ints:
        """Return the code of each value; those outside the label set are left out and counted."""
        texts = list(map(str.strip, values))
        known = {text: canonical(text) for text in dict.fromkeys(texts) if text not in self._code}
        if self._allowed is None:
            self._allowed = self._choose(set(known.values()))
        for text, label in known.items():
            self._code[text] = self._add(text, label) if not self._allowed or label in self._allowed else -1
        unknown = [text for text in texts if self._code[text] < 0 and text]
        remarks.add(f"{what} with an unknown emotion code, left out", len(unknown), next(iter(unknown), ""))
        return np.fromiter(map(self._code.__getitem__, texts), np.int64, len(texts))

    def _choose(self, found: set[str]) -> frozenset[str]:
        """Return the labels that count; none means that all do."""
        if not self._option:
            return frozenset(SETS["memo6"]) if found & set(SETS["memo6"]) else frozenset()
        return frozenset() if self._option == "any" else frozenset(choose(self._option, ()).labels)

    def _add(self, text: str, name: str) -> int:
        if name not in self._by_class:
            self._by_class[name] = len(self.names)
            self.names.append(text)
        return self._by_class[name]


def _numbers(values: Sequence[str], name: str, scale: tuple[float, float] | None, remarks: Remarks) -> Floats:
    """Parse scores; what isn't a number or lies outside the scale becomes nan and is counted."""
    known = {text: _number(text) for text in dict.fromkeys(values)}  # few distinct texts stand in many cells
    numbers = np.fromiter(map(known.__getitem__, values), np.float64, len(values))
    if words := {text for text, number in known.items() if math.isnan(number) and text.strip().lower() not in MISSING}:
        bad = [text for text in values if text in words]
        remarks.add(f"{_scores_of(name)} that are no number, left out", len(bad), bad[0].strip())
    if scale:
        outside = (numbers < scale[0]) | (numbers > scale[1])
        remarks.add(
            f"{_scores_of(name)} outside {scale[0]:g} to {scale[1]:g}, left out",
            int(outside.sum()),
            "".join(f"{v:g}" for v in numbers[outside][:1]),
        )
        numbers[outside] = np.nan
    return numbers


def _scores_of(name: str) -> str:
    return "scores" if name == "score" else f"{name} scores"


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _read_long(table: Table, mapping: Mapping[str, str], scale: tuple[float, float], labels: str) -> Ratings:
    for role, name in mapping.items():
        if role not in COLUMN_NAMES:
            raise DataError("--columns", f"there is no {role!r}", expected="one of " + ", ".join(COLUMN_NAMES))
        if name.lower() not in (column.lower() for column in table.columns):
            raise DataError(table.path, f"has no column {name!r} for {role}", got=", ".join(table.columns))
    where = find_columns(list(table.columns), mapping)
    held = [role for role in ("category", *DIMENSIONS) if role in where]
    if not held:
        expected = "one of category, degree, quality or score"
        raise DataError(table.path, "has no column of votes", expected=expected, got=", ".join(table.columns))
    if not len(table):
        raise DataError(table.path, "has a header and no votes")
    images, raters = table.text(where["image"]), table.text(where["rater"])
    prompts: dict[Key, str] | None = None
    if "prompt" in where:
        prompts = dict(zip(images, table.text(where["prompt"]), strict=True))
    votes = VoteTable(images, raters, {role: votes_of(table, where[role]) for role in held})
    return assemble([votes], scale=scale, labels=labels, prompts=prompts)


def votes_of(table: Table, name: str) -> list[str]:
    """Return a column's texts, with a decimal comma read as a point where the file uses it."""
    texts = table.text(name)
    return [text.replace(",", ".") for text in texts] if table.decimal_comma else texts


def _rows(path: Path, limit: int | None = None) -> list[list[str]]:
    """Read the first `limit` rows (default: all) of a CSV without a header's rules; blank lines go."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            delimiter = max(DELIMITERS, key=first.count)
            rows = list(islice(filter(any, csv.reader(chain([first], file), delimiter=delimiter)), limit))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise DataError(str(path), f"can't be read: {problem}", fix="give a CSV file in UTF-8, or Parquet") from error
    if not rows:
        raise DataError(str(path), "is empty", expected="votes, one a line, or a matrix")
    return [[DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row] for row in rows] if delimiter == ";" else rows


def _first_row(path: Path) -> list[str]:
    return _rows(path, 1)[0]


def _read_matrix(rows: list[list[str]], scale: tuple[float, float] | None, *, thing: str) -> Ratings:
    header, body = (rows[0], rows[1:]) if _is_header(rows[0]) else (None, rows)
    if not body:
        raise DataError(thing, "has a header and no scores")
    named = header is not None or any(not _is_score(row[0]) for row in body)
    first = 1 if named else 0
    width = max(len(row) for row in rows)
    images: list[Key] = [row[0].strip() for row in body] if named else list(range(len(body)))
    raters: list[Key] = [c.strip() for c in header[1:]] if header else list(range(width - first))
    if any(len(row) != width for row in rows):
        lengths = sorted({len(row) for row in rows})
        raise DataError(thing, "is no matrix: its lines differ in length", got=f"{lengths} cells")
    if repeated := [x for x in (images, raters) if len(set(x)) < len(x)]:
        name = next(x for x in repeated[0] if repeated[0].count(x) > 1)
        raise DataError(thing, f"{name!r} occurs twice", expected="each picture and each rater once in a matrix")
    remarks = Remarks()
    flat = _numbers([cell for row in body for cell in row[first:]], "score", scale, remarks)
    grid = flat.reshape(len(body), width - first)
    if not np.isfinite(grid).any():
        raise DataError(thing, "holds no score", expected="a matrix of pictures x raters, or long votes with a header")
    return Ratings(images, raters, {"score": grid}, remarks=remarks)


def _is_score(cell: str) -> bool:
    return cell.strip().lower() in MISSING or not math.isnan(_number(cell))


def _is_header(row: list[str]) -> bool:
    """A first line is a header if it names raters by words, or its first cell names the pictures' column."""
    corner, rest = row[0].strip().lower(), [cell.strip() for cell in row[1:]]
    distinct = len(rest) > 1 and len(set(rest)) == len(rest) and all(rest)
    return corner in COLUMN_NAMES["image"] or not all(map(_is_score, rest)) or (not corner and distinct)
