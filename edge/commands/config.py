"""`emogaze config`: show the settings, check a file."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, SettingsFile, emit_json


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Show the settings, check a configuration file.", no_args_is_help=True)
    group.command("show")(show)
    group.command("check")(check)
    app.add_typer(group, name="config")


def show(
    preset: Annotated[str, typer.Option(help="clinical, in-car or bench")] = "",
    config: SettingsFile = None,
    json: Json = False,
) -> None:
    """Print every setting as TOML, with its bounds and a sentence."""
    from edge.config import describe, load, to_dict

    values = to_dict(load(config, preset=preset))
    rows = []
    for key, default, bounds, sentence in describe():
        head, _, name = key.rpartition(".")
        value = values[head][name] if head else values[name]
        rows.append({"key": key, "value": value, "default": default, "bounds": bounds, "description": sentence})
    if json:
        emit_json("config", {"preset": preset, "config": str(config or "")}, {"settings": rows})
        return
    section = ""
    for row in rows:
        head, _, name = row["key"].rpartition(".")
        if head != section:
            section = head
            print(f"\n[{section}]")
        bounds = f" ({row['bounds']})" if row["bounds"] else ""
        print(f"{name} = {_toml(row['value'])}  # {row['description']}{bounds}")


def check(file: Path, json: Json = False) -> None:
    """Check a configuration file: exit 0 if it can be run, 1 with the reason. Says what it leaves recognisable."""
    from edge.config import load
    from edge.privacy import cautions

    found = cautions(load(file))
    if json:
        emit_json("config_check", {"file": str(file)}, {"ok": True, "cautions": found})
        return
    print(f"{file}: every setting is known and in bounds")
    for caution in found:
        print(f"caution: {caution}")


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return dumps(value, ensure_ascii=False)  # texts, numbers and booleans are written alike in TOML and JSON
