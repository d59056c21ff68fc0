"""`emogaze model`: the model artefacts of this device."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from edge.commands.base import Json, ModelsDir, emit_json


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Add, list and check model artefacts.", no_args_is_help=True)
    group.command("add")(add_model)
    group.command("list")(list_models)
    group.command("check")(check)
    app.add_typer(group, name="model")


def add_model(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Artefact folders.")],
    directory: ModelsDir = "",
) -> None:
    """Check artefact folders and copy them to where models are looked for."""
    for folder in folders:
        _add(folder, directory)


def _add(folder: Path, directory: str) -> None:
    from edge.config import ModelsConfig
    from edge.files import atomic_folder
    from edge.manifest import MODEL_FILE, load_manifest, models_dir
    from edge.model_check import verify
    from edge.signatures import check_artefact

    manifest = load_manifest(folder)
    signed_by = check_artefact(folder, ModelsConfig())
    verify(manifest, ModelsConfig(force=(manifest.name,)))
    target = models_dir(directory) / manifest.name
    if target.resolve() != folder.resolve():
        with atomic_folder(target, MODEL_FILE) as part:
            for file in folder.iterdir():
                shutil.copyfile(file, part / file.name)
        load_manifest(target)
    print(f"{manifest.name}: {target}" + (f", signed by {signed_by}" if signed_by else ""))


def list_models(
    folder: Annotated[Path | None, typer.Argument(help="Folder of artefacts; default: this device's.")] = None,
    directory: ModelsDir = "",
    json: Json = False,
) -> None:
    """List the artefacts of this device, or of a folder."""
    from edge.errors import ModelError
    from edge.manifest import models_dir, scan_artefacts

    if folder is not None and not folder.is_dir():
        raise ModelError(str(folder), "no such folder", expected="a folder of artefact folders")
    folder = folder or models_dir(directory)
    found, unreadable = scan_artefacts(folder)
    rows: list[dict[str, Any]] = [
        {
            "name": m.name,
            "role": m.role,
            "precision": m.precision,
            "weights": m.weights,
            "gate": m.gate,
            "bytes": m.path.stat().st_size if m.path.exists() else None,
            "model_id": m.model_id,
            "licence": m.licence,
            "source": m.source,
        }
        for m in found
    ]
    if json:
        emit_json("models", {"dir": str(folder)}, {"models": rows, "unreadable": [str(e) for e in unreadable]})
        return
    for row in rows:
        size = f"{row['bytes'] / 1e6:.1f} MB" if row["bytes"] is not None else "file missing"
        gate = f", gate {row['gate']}" if row["gate"] else ""
        print(f"{row['name']:34} {row['role']:14} {row['precision']:10} {row['weights']:8} {size:>10}{gate}")
    for error in unreadable:
        print(error)
    if not rows and not unreadable:
        print(f"none in {folder}; `python -m models fetch default` gets the default set")


def check(model: Annotated[str, typer.Argument(help="Artefact folder, or its name.")], json: Json = False) -> None:
    """Check an artefact: its description, hash and canary picture, and what it gives on each runtime here."""
    from edge.config import ModelsConfig
    from edge.manifest import load_manifest, models_dir
    from edge.model_check import verify

    folder = Path(model) if Path(model).is_dir() else models_dir("") / model
    manifest = load_manifest(folder)
    rows = verify(manifest, ModelsConfig(force=(manifest.name,)))
    if json:
        emit_json("model-check", {"folder": str(folder)}, {"model_id": manifest.model_id, "backends": rows})
        return
    canary = f", sees {manifest.canary.label}" if manifest.canary else ""
    print(f"{manifest.model_id}: {manifest.role}, {manifest.precision}, {manifest.weights}{canary}")
    for row in rows:
        print(f"  {row['backend']:12} {row['active'] if row['runs'] else 'no: ' + row['reason']}")
