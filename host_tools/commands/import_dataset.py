"""`python -m host_tools import-dataset`: bring a data set into the layout that the evaluation reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, emit_json


def add(app: typer.Typer) -> None:
    app.command("import-dataset")(import_dataset)


def import_dataset(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="An importer; `list` shows all.")],
    source: Annotated[Path | None, typer.Argument(help="Where the data set lies.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder to write.")] = None,
    options: Annotated[list[str], typer.Option("--set", help="name=value of the importer")] = [],
    as_json: Json = False,
) -> None:
    """Write a data set's layout; pictures are linked, and what isn't as its description says is listed."""
    from edge import plugins
    from edge.errors import DataError
    from host_tools.datasets.importers.base import PACKAGE, importer

    if format_ == "list":
        for name in plugins.names(PACKAGE):
            module = importer(name)
            print(f"{name}: {module.ABOUT}")
            print("".join(f"    --set {key}=...  {text}\n" for key, text in module.OPTIONS.items()), end="")
        return
    if source is None or out is None:
        raise DataError("import-dataset", "needs a source and a folder to write", fix="FORMAT SOURCE -o OUT")
    given = dict(text.partition("=")[::2] for text in options)
    done = importer(format_).convert(source, out, given)
    done.write(out)
    if as_json:
        body = {"n_samples": len(done.samples), "findings": done.findings, "lacks": list(done.info.lacks)}
        emit_json("import-dataset", {"format": format_, "source": str(source), "out": str(out), **given}, body)
        return
    print(f"{out}: {len(done.samples)} samples")
    print("".join(f"found: {text}\n" for text in done.findings), end="")
    print("".join(f"lacks: {text}\n" for text in done.info.lacks), end="")
