"""`python -m models verify`: do the artefacts here do what they say?"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from edge.commands.base import Json, ModelsDir, emit_json, progress


def add(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Artefacts; default: all that are here.")] = None,
    directory: ModelsDir = "",
    json: Json = False,
) -> None:
    """Check hash, canary and outputs of artefacts on every runtime here; exit 1 if one fails."""
    from edge.config import ModelsConfig
    from edge.errors import ModelError
    from edge.manifest import MODEL_FILE, load_manifest, models_dir
    from edge.model_check import verify as try_artefact

    folder = models_dir(directory)
    wanted = names or sorted(file.parent.name for file in folder.glob(f"[!.]*/{MODEL_FILE}"))
    rows: list[dict[str, Any]] = []
    for name in progress(wanted, "Verifying"):
        try:
            runs = try_artefact(load_manifest(folder / name), ModelsConfig(dir=directory, force=(name,)))
            rows.append(
                {"name": name, "ok": True, "problem": "", "backends": [r["backend"] for r in runs if r["runs"]]}
            )
        except ModelError as error:
            rows.append({"name": name, "ok": False, "problem": str(error), "backends": []})
    if json:
        emit_json("models-verify", {"dir": str(folder), "names": names or []}, {"artefacts": rows})
    else:
        for row in rows:
            print(f"{row['name']:34} {'ok: ' + ', '.join(row['backends']) if row['ok'] else row['problem']}")
    if not all(row["ok"] for row in rows):
        sys.exit(1)
