"""The table of samples: one line per labelled sample with the answer of one system and its FCC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools import labels as lb
from host_tools.metrics.classification import Samples
from host_tools.tables import Table, read_table

REQUIRED = ("sample_id", "participant", "true", "pred", "fcc")
SHOWN = 5  # offenders that an error names


@dataclass(frozen=True, slots=True)
class SampleTable:
    """A checked table. `attention` holds the `att_<modality>` columns, `scene_types` is empty without that column."""

    path: str
    ids: list[str]
    samples: Samples
    other: dict[str, int]
    scene_types: list[str] = field(default_factory=list)
    attention: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_samples(path: Path, *, labels: str = "", maps: Sequence[str] = ()) -> SampleTable:
    """Read and check a table of samples.

    Parameters
    ----------
    path : Path
        CSV or Parquet with `REQUIRED`; optional `bf1`, `p_<label>`, `att_<modality>`, `scene_type`.
    labels : str
        Label set (see `host_tools.labels.choose`).
    maps : sequence of str
        Names of maps that change the meaning of labels.

    Raises
    ------
    DataError
        A missing column, a sample id that is empty or stands twice, a true label outside the set, a value outside
        [0, 1], or probabilities of some labels only. The offenders are named.
    """
    table = read_table(path)
    for name in REQUIRED:
        table.text(name)
    if not len(table):
        raise DataError(table.path, "has no samples")
    renamed = lb.meaning_maps(maps)
    true = [lb.canonical(text, renamed) for text in table.text("true")]
    chosen = lb.choose(labels, true)
    ids = check_ids(table.text("sample_id"), table.path)
    pred, other = lb.encode_predicted([lb.canonical(text, renamed) for text in table.text("pred")], chosen)
    codes = lb.encode_true(true, chosen)
    p_true, notes = _probability_of_true(table, chosen, codes, renamed)
    samples = Samples(
        labels=chosen,
        true=codes,
        pred=pred,
        fcc=share(table, "fcc"),
        participants=_participants(table),
        p_true=p_true,
        bf1=_given_f1(table),
    )
    modalities = [name for name in table.columns if name.startswith("att_")]
    return SampleTable(
        path=table.path,
        ids=ids,
        samples=samples,
        other=other,
        scene_types=table.text("scene_type") if "scene_type" in table else [],
        attention={name[4:]: share(table, name) for name in modalities},
        notes=notes,
    )


def check_ids(ids: list[str], path: str) -> list[str]:
    """Return `ids` if none is empty and none stands twice.

    Raises
    ------
    DataError
        Otherwise; the first few are named.
    """
    if "" in ids:
        raise DataError(f"{path}, row {ids.index('') + 1}", "has no sample_id")
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DataError(
            path, f"{len(twice)} sample ids stand more than once", got=named(twice), fix="remove the doubles"
        )
    return ids


def share(table: Table, column: str) -> npt.NDArray[np.float64]:
    """Return a column of values in [0, 1]; empty is `nan`.

    Raises
    ------
    DataError
        If a value is outside; row and value are named.
    """
    values = table.numbers(column)
    outside = np.flatnonzero(~np.isnan(values) & ~((values >= 0) & (values <= 1)))
    if len(outside):
        row = int(outside[0])
        raise DataError(
            f"{table.path}, row {row + 1}, column {column!r}",
            "is outside its bounds",
            expected="0 to 1, or empty where undefined",
            got=f"{values[row]:g}" + (f" ({len(outside)} such rows)" if len(outside) > 1 else ""),
        )
    return values


def named(things: Sequence[str]) -> str:
    """Join the first few of `things` for an error, and say how many more there are."""
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(things[:SHOWN]) + more


def _participants(table: Table) -> list[str] | None:
    people = table.text("participant")
    if not any(people):
        return None
    if "" in people:
        row = people.index("") + 1
        raise DataError(f"{table.path}, row {row}", "has no participant", fix="name all participants, or none")
    return people


def _given_f1(table: Table) -> npt.NDArray[np.float64] | None:
    if "bf1" not in table:
        return None
    values = share(table, "bf1")
    empty = np.flatnonzero(np.isnan(values))
    if len(empty):
        raise DataError(
            f"{table.path}, row {empty[0] + 1}", "has no bf1", fix="give every sample one, or drop the column"
        )
    return values


def _probability_of_true(
    table: Table, chosen: lb.LabelSet, codes: npt.NDArray[np.int64], renamed: Mapping[str, str]
) -> tuple[npt.NDArray[np.float64] | None, tuple[str, ...]]:
    columns: dict[str, list[str]] = {}
    for name in table.columns:
        if name.startswith("p_"):
            columns.setdefault(lb.canonical(name[2:], renamed), []).append(name)
    if not columns:
        return None, ()
    absent = [label for label in chosen.labels if label not in columns]
    if absent:
        raise DataError(
            table.path,
            "has probabilities of some labels only",
            expected=f"also p_{', p_'.join(absent)}",
            got=named([*columns]),
        )
    by_label = {label: np.sum([share(table, name) for name in names], axis=0) for label, names in columns.items()}
    given = np.stack([by_label[label] for label in chosen.labels], axis=1)
    notes = []
    total = np.sum(list(by_label.values()), axis=0)
    off = int(np.sum(np.abs(total - 1) > 0.01))
    if off:
        notes.append(f"probabilities of {off} samples don't sum to 1")
    without = int(np.isnan(given).any(axis=1).sum())
    if without:
        notes.append(f"{without} samples have no probabilities and are left out of cawf1_soft")
    return given[np.arange(len(codes)), codes], tuple(notes)
