"""The contract of an importer.

A plug-in module in this folder defines ``ABOUT`` (one line), ``OPTIONS`` (name -> what it is) and
``convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported``. It writes the layout of
`host_tools.datasets.layout` into `out`, links the pictures instead of copying them, and says in `findings` everything
that isn't as the data set's description has it. What can't be found is named in the data set's `lacks`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from edge import plugins
from edge.errors import DataError
from host_tools.datasets import layout
from host_tools.tables import Table

PACKAGE = "host_tools.datasets.importers"
PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an importer wrote, and what it found wanting."""

    info: layout.DatasetInfo
    samples: Sequence[layout.Sample]
    findings: list[str] = field(default_factory=list)

    def write(self, out: Path) -> None:
        """Write the tables of the data set, and check them by reading them back."""
        if not self.samples:
            raise DataError(str(out), "no sample was found", fix="is this the folder that the importer expects?")
        layout.write(out, self.info, self.samples)
        layout.load(out)


def importer(name: str) -> ModuleType:
    """Return the importer `name`. Raises ConfigError with the names that there are."""
    return plugins.load(PACKAGE, name, setting="format")


def check_options(given: Mapping[str, str], known: Mapping[str, str], name: str) -> None:
    """Raise DataError for an option that importer `name` doesn't know."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise DataError(f"importer {name}", "doesn't know " + ", ".join(unknown), expected=", ".join(known) or "none")


def link(source: Path, out: Path, name: str) -> str:
    """Make folder `source` reachable as `out/name` and return `name`; nothing is copied."""
    target = out / name
    out.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    if target.exists():
        raise DataError(str(target), "is in the way", fix="choose an empty folder")
    target.symlink_to(source.resolve(), target_is_directory=True)
    return name


def pictures(folder: Path) -> list[Path]:
    """Return the pictures below a folder, in order of their path."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and p.is_file())


def need(path: Path, what: str) -> Path:
    """Return `path` if it is there, or raise DataError saying what it should be."""
    if not path.exists():
        raise DataError(str(path), "is missing", expected=what)
    return path


def column(table: Table, option: str, options: Mapping[str, str], *, required: bool = True) -> list[str]:
    """Return a column of an index table by its meaning; `options` may give it another name."""
    name = options.get(option, option)
    if name in table:
        return table.text(name)
    if not required and option not in options:
        return [""] * len(table)
    raise DataError(
        table.path, f"has no column {name!r} for {option}", got=", ".join(table.columns), fix=f"--set {option}=COLUMN"
    )


def count_findings(found: Iterable[str], expected: int, what: str) -> list[str]:
    """Return a finding if the number of different names isn't the expected one."""
    n = len(set(found))
    return [] if n == expected else [f"{n} {what}; its description says {expected}"]


def left_out(counts: Counter[str]) -> list[str]:
    """Return a finding for each reason why something was left out."""
    return [f"{n} left out: {why}" for why, n in sorted(counts.items()) if n]
