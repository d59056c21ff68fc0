"""`python -m models sign`: vouch for an artefact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("sign")(sign)


def sign(
    folders: Annotated[list[Path], typer.Argument(help="Artefact folders.")],
    key: Annotated[Path, typer.Option(help="Private key of the publisher; `emogaze keys operator -o` makes a pair.")],
) -> None:
    """Sign artefacts. A device that trusts a publisher (`emogaze keys trust models NAME FILE.pub`) runs no others."""
    from edge.keys import read_private
    from edge.manifest import load_manifest
    from edge.signatures import sign_artefact

    private = read_private(key)
    for folder in folders:
        manifest = load_manifest(folder)
        print(f"{manifest.name}: {sign_artefact(folder, private)}")
