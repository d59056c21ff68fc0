"""How an artefact is made: a recipe per artefact, and the folder that it becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge import plugins
from edge.errors import ModelError
from edge.files import atomic_folder, sha256_file
from edge.manifest import MODEL_FILE, Manifest, encode, load_manifest
from models.archives import Store

PACKAGE = "models.zoo"


@dataclass(frozen=True)
class Built:
    """What a recipe makes: the weights file's content, and what stands in `model.json` besides name and source."""

    content: bytes
    suffix: str
    fields: dict[str, Any]
    extra: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """One artefact of the zoo. `version` changes whenever what is written changes.

    `group`: what it is fetched with: ``default``, ``npm`` (from that registry), ``seeded`` (no trained weights), or
    ``more``.
    """

    name: str
    role: str
    archive: str
    version: str
    build: Callable[[Store], Built]
    group: str = "more"
    weights: str = "trained"
    precision: str = "fp32"


def recipes() -> dict[str, Recipe]:
    """Return every recipe of `models/zoo`, by name."""
    found = [r for name in plugins.names(PACKAGE) for r in plugins.load(PACKAGE, name, setting="model").RECIPES]
    return {recipe.name: recipe for recipe in found}


def is_made(recipe: Recipe, target: Path) -> bool:
    """Whether the artefact is there, whole, unaltered and of this version."""
    try:
        return load_manifest(target / recipe.name).version == recipe.version
    except ModelError:
        return False


def make(recipe: Recipe, store: Store, target: Path) -> Manifest:
    """Make an artefact and put its folder into `target` in one step."""
    built = recipe.build(store)
    file = f"{recipe.name}{built.suffix}"
    source, licence = "seeded", "Apache-2.0"
    extra = dict(built.extra)
    if recipe.archive:
        archive = store.describe(recipe.archive)
        source, licence = archive.requirement, archive.licence
        extra["LICENSE"] = store.licence(recipe.archive)
    manifest = Manifest(
        **{
            "folder": target / recipe.name,
            "name": recipe.name,
            "version": recipe.version,
            "role": recipe.role,
            "precision": recipe.precision,
            "file": file,
            "sha256": hashlib.sha256(built.content).hexdigest(),
            "source": source,
            "licence": licence,
            "weights": recipe.weights,
            **built.fields,
        }
    )
    write_artefact(manifest, {file: built.content, **extra})
    return load_manifest(target / recipe.name)


def write_artefact(manifest: Manifest, files: dict[str, bytes]) -> None:
    """Write an artefact's folder; it has its name when it is whole."""
    with atomic_folder(manifest.folder, MODEL_FILE) as part:
        for name, content in {**files, MODEL_FILE: encode(manifest)}.items():
            (part / name).write_bytes(content)
        if sha256_file(part / manifest.file) != manifest.sha256:
            raise ModelError(str(manifest.folder), "was not written whole", fix="check the disk")


def select(names: list[str]) -> list[Recipe]:
    """Return the recipes of `names`: artefacts, groups, or ``all``.

    Raises
    ------
    ModelError
        There is no such artefact in the zoo.
    """
    known = recipes()
    chosen: dict[str, Recipe] = {}
    for name in names:
        found = [r for r in known.values() if name in ("all", r.name, r.group)]
        if not found:
            raise ModelError("models fetch", f"there is no {name!r}", expected="default, all, or " + ", ".join(known))
        chosen.update((recipe.name, recipe) for recipe in found)
    return list(chosen.values())
