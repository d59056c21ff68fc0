"""`emogaze config`: show the settings, check a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import SettingsFile


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Show the settings, check a configuration file.", no_args_is_help=True)
    group.command("show")(show)
    group.command("check")(check)
    app.add_typer(group, name="config")


def show(
    preset: Annotated[str, typer.Option(help="clinical, in-car or bench")] = "",
    config: SettingsFile = None,
) -> None:
    """Print every setting as TOML, with its bounds and a sentence."""
    from edge.config import describe, load, to_dict

    values = to_dict(load(config, preset=preset))
    section = ""
    for key, _, bounds, sentence in describe():
        head, _, name = key.rpartition(".")
        if head != section:
            section = head
            print(f"\n[{section}]")
        value = values[head][name] if head else values[name]
        print(f"{name} = {_toml(value)}  # {sentence}{f' ({bounds})' if bounds else ''}")


def check(file: Path) -> None:
    """Check a configuration file: exit 0 if it can be run, 1 with the reason. Says what it leaves recognisable."""
    from edge.config import load
    from edge.privacy import cautions

    config = load(file)
    print(f"{file}: every setting is known and in bounds")
    for caution in cautions(config):
        print(f"caution: {caution}")


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
