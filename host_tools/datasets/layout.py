"""The layout of a data set on disk.

A folder with

``dataset.toml``
    What it is (`DatasetInfo`): name, licence, projection of the pictures, label set, how gaze is declared, what is
    known about annotators' agreement and synchronisation, what it lacks.
``samples.csv`` (or ``.parquet``)
    One line per sample: `COLUMNS`. Paths are relative to the folder; an empty cell is "there is none".
``fixations.csv`` (or ``.parquet``), optional
    Recorded fixations, where they are given rather than found in gaze: `FIXATION_COLUMNS`.
``annotations.csv``, optional
    What several annotators call places of the pictures: sample_id, annotator, x_px, y_px, label.
``predictions/``
    One table per system: sample_id, pred, optional p_<label>, att_<modality>, bf1; see `host_tools.evaluate.systems`.

Whatever an importer can't find is left out and named in `lacks`: a metric that needs it is undefined, not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from edge.config import FixationConfig, GazeConfig
from edge.config_files import parse_toml
from edge.errors import DataError
from edge.files import write_atomic
from host_tools import labels as lb
from host_tools.samples import check_ids, named
from host_tools.tables import Table, read_table, write_csv

Projection = Literal["picture", "panorama", "face"]
INFO_FILE = "dataset.toml"
FIXATION_COLUMNS = ("sample_id", "x_px", "y_px", "start_ms", "duration_ms")


class DatasetInfo(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`dataset.toml`. `projection` is `panorama` for equirectangular pictures, `face` where there is a face alone."""

    name: str
    description: str = ""
    licence: str = ""
    source: str = ""
    simulated: bool = False
    projection: Projection = "picture"
    labels: str = ""
    maps: tuple[str, ...] = ()
    gaze: GazeConfig = GazeConfig()
    fixations: FixationConfig = FixationConfig()
    kappa: Annotated[float, msgspec.Meta(ge=-1, le=1)] | None = None
    kappa_kind: str = ""
    sync_ms: float | None = None
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled item. `media` is the scene picture, `face` the person's, `gaze` its gaze file.

    `t_s` is when it was seen, in seconds of its participant's session, for scores over time.
    """

    sample_id: str
    participant: str
    label: str
    label_source: str = ""
    scene_type: str = ""
    split: str = ""
    media: str = ""
    face: str = ""
    gaze: str = ""
    t_s: str = ""


COLUMNS = tuple(field.name for field in fields(Sample))
_NEEDED = ("sample_id", "participant", "label")


@dataclass(frozen=True)
class Dataset:
    """A data set that was read and checked. Labels are canonical; `known` are the ids of all samples on disk."""

    folder: Path
    info: DatasetInfo
    label_set: lb.LabelSet
    samples: tuple[Sample, ...]
    known: frozenset[str]

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def row(self) -> dict[str, int]:
        """Sample id -> its place."""
        return {sample.sample_id: i for i, sample in enumerate(self.samples)}

    def path(self, relative: str) -> Path:
        """Return where a file of the data set lies."""
        return self.folder / relative

    def only(self, split: str) -> Dataset:
        """Return the samples of one split; all if `split` is empty.

        Raises
        ------
        DataError
            If there is none.
        """
        if not split:
            return self
        chosen = tuple(sample for sample in self.samples if sample.split == split)
        if not chosen:
            got = ", ".join(sorted({s.split or "(none)" for s in self.samples}))
            raise DataError(str(self.folder), f"has no sample of split {split!r}", got=got)
        return replace(self, samples=chosen)

    @cached_property
    def given_fixations(self) -> dict[str, dict[str, npt.NDArray[np.float64]]] | None:
        """Sample id -> columns of the recorded fixations, or None if they are to be found in gaze."""
        path = table_path(self.folder, "fixations")
        return read_fixation_table(path, self.known) if path else None


def load(folder: Path, *, labels: str = "") -> Dataset:
    """Read a data set and check it.

    Parameters
    ----------
    folder : Path
        The data set.
    labels : str
        Label set; default: what `dataset.toml` says, else what the labels tell.

    Raises
    ------
    DataError
        A table or file is missing, a column unknown, a sample id stands twice, a label is outside the set, or a path
        leads out of the folder. The offenders are named.
    """
    info = read_info(folder / INFO_FILE)
    path = table_path(folder, "samples")
    if path is None:
        raise DataError(str(folder), "has no samples.csv or samples.parquet", fix="see host_tools/datasets/layout.py")
    table = read_table(path)
    for name in _NEEDED:
        table.text(name)
    unknown = sorted(set(table.columns) - set(COLUMNS))
    if unknown:
        raise DataError(table.path, "has unknown columns: " + ", ".join(unknown), expected=", ".join(COLUMNS))
    check_ids(table.text("sample_id"), table.path)
    maps = lb.meaning_maps(info.maps)
    true = [lb.canonical(text, maps) for text in table.text("label")]
    chosen = lb.choose(labels or info.labels, true)
    lb.encode_true(true, chosen)
    columns = [table.columns.get(name, [""] * len(table)) for name in COLUMNS]
    columns[COLUMNS.index("label")] = true
    samples = tuple(Sample(*row) for row in zip(*columns, strict=True))
    _check_files(folder, table, samples)
    return Dataset(folder, info, chosen, samples, frozenset(table.text("sample_id")))


def read_info(path: Path) -> DatasetInfo:
    """Read `dataset.toml`. Raises DataError with the key that is wrong."""
    try:
        return msgspec.convert(parse_toml(path), DatasetInfo)
    except msgspec.ValidationError as error:
        raise DataError(str(path), str(error).replace("`$.", "`")) from None


def table_path(folder: Path, name: str) -> Path | None:
    """Return the path of table `name` (CSV or Parquet) in a folder, or None."""
    for suffix in (".parquet", ".csv"):
        path = (folder / name).with_suffix(suffix)
        if path.is_file():
            return path
    return None


def read_fixation_table(path: Path, known: Iterable[str]) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
    """Read a table of fixations (`sample_id`, x, y in pixels, optional start_ms and duration_ms), in its order.

    Raises
    ------
    DataError
        If a sample is not `known`; it is named.
    """
    table = read_table(path)
    ids = np.array(table.text("sample_id"))
    strangers = sorted(set(ids.tolist()) - set(known))
    if strangers:
        raise DataError(str(path), "has fixations of unknown samples: " + named(strangers))
    x, y = ("x_px", "y_px") if "x_px" in table else ("x", "y")
    nan = np.full(len(table), np.nan)
    values = {
        "x_px": table.numbers(x),
        "y_px": table.numbers(y),
        "start_ms": table.numbers("start_ms") if "start_ms" in table else nan,
        "duration_ms": table.numbers("duration_ms") if "duration_ms" in table else nan,
    }
    order = np.argsort(ids, kind="stable")
    names, starts = np.unique(ids[order], return_index=True)
    parts = np.split(order, starts[1:])
    return {str(n): {k: v[part] for k, v in values.items()} for n, part in zip(names, parts, strict=True)}


def write(folder: Path, info: DatasetInfo, samples: Sequence[Sample]) -> None:
    """Write `dataset.toml` and `samples.csv` of a data set."""
    write_csv(folder / "samples.csv", ({n: getattr(s, n) for n in COLUMNS} for s in samples), COLUMNS)
    write_atomic(folder / INFO_FILE, to_toml(info))


def to_toml(info: DatasetInfo) -> str:
    """Return `info` as TOML, without what is at its default."""
    given = {k: v for k, v in msgspec.to_builtins(info).items() if v not in (None, "", (), [], False)}
    defaults: dict[str, Any] = {
        "gaze": msgspec.to_builtins(GazeConfig()),
        "fixations": msgspec.to_builtins(FixationConfig()),
    }
    lines, sections = [], []
    for key, value in given.items():
        if key not in defaults:
            lines.append(f"{key} = {toml_value(value)}")
            continue
        changed = {k: v for k, v in value.items() if v != defaults[key][k]}
        if changed:
            sections += ["", f"[{key}]", *(f"{k} = {toml_value(v)}" for k, v in changed.items())]
    return "\n".join([*lines, *sections]) + "\n"


def toml_value(value: Any) -> str:
    """Return a plain value as TOML."""
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _check_files(folder: Path, table: Table, samples: Sequence[Sample]) -> None:
    for kind in ("media", "face", "gaze"):
        if kind not in table:
            continue
        named_files = sorted({getattr(sample, kind) for sample in samples} - {""})
        # By its name alone: what was linked into the folder on purpose may lie elsewhere.
        outside = [name for name in named_files if Path(name).is_absolute() or ".." in Path(name).parts]
        if outside:
            raise DataError(table.path, f"{kind} paths lead out of the folder: " + named(outside))
        absent = [name for name in named_files if not (folder / name).is_file()]
        if absent:
            raise DataError(table.path, f"{len(absent)} {kind} files are missing: " + named(absent))
