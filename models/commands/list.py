"""`python -m models list`: what the zoo can make, and what is made."""

from __future__ import annotations

import typer

from edge.commands.base import Json, ModelsDir, emit_json


def add(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(
    directory: ModelsDir = "",
    json: Json = False,
) -> None:
    """List the zoo: role, where weights come from, and whether it is here (`renew`: an older or altered one is)."""
    from edge.manifest import models_dir
    from models.archives import archives
    from models.recipes import is_made, recipes

    known, folder = archives(), models_dir(directory)
    rows = [
        {
            "name": recipe.name,
            "role": recipe.role,
            "group": recipe.group,
            "weights": recipe.weights,
            "source": known[recipe.archive].requirement if recipe.archive else "built here from a seed",
            "licence": known[recipe.archive].licence if recipe.archive else "Apache-2.0",
            "here": is_made(recipe, folder),
        }
        for recipe in recipes().values()
    ]
    if json:
        emit_json("zoo", {"dir": str(folder)}, {"artefacts": rows})
        return
    for row in rows:
        here = "here" if row["here"] else "renew" if (folder / str(row["name"])).is_dir() else "-"
        print(f"{row['name']:34} {row['role']:15} {row['group']:8} {row['weights']:8} {here:5} {row['source']}")
