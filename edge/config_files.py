"""Settings as they are written: TOML files, presets and ``section.key=value`` texts; what `edge.config` checks.

Everything here is plain values: nested dicts of what TOML holds.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from edge.errors import ConfigError
from edge.files import decode_document

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def decode_toml(text: str) -> dict[str, Any]:
    """Decode TOML that comes from outside; a ValueError says that it can't be."""
    return decode_document(text, tomllib.loads)


def parse_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or raise ConfigError with its name."""
    try:
        return decode_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(str(path), "no such file") from None
    except (OSError, ValueError) as error:  # no UTF-8 or no TOML
        raise ConfigError(str(path), f"can't be read as TOML: {error}") from error


def presets() -> list[str]:
    """List the names of the presets that come with the package."""
    folder = resources.files("edge") / "presets"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def read_preset(name: str) -> dict[str, Any]:
    """Return a preset's settings, with its name; raise ConfigError if there is none of it."""
    if name not in presets():
        raise ConfigError("preset", f"there is no {name!r}", expected="one of " + ", ".join(presets()))
    text = (resources.files("edge") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return {**decode_toml(text), "preset": name}


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of both; those of `above` win."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def override(values: dict[str, Any], text: str, defaults: object) -> None:
    """Set one value in place, as ``section.key=value`` says; a bare word or number is a text where the default is one.

    Raises
    ------
    ConfigError
        `text` can't be read, or puts a key beneath a value.
    """
    key, sign, raw = text.partition("=")
    if not sign or not re.fullmatch(r"[a-z_0-9]+(\.[a-z_0-9]+)*", key.strip()):
        raise ConfigError(f"--set {text}", "can't be read", expected="section.key=value")
    try:
        value = decode_toml(f"v = {raw}")["v"]
    except ValueError:
        value = raw
    *sections, last = key.strip().split(".")
    if isinstance(_default(defaults, [*sections, last]), str) and isinstance(value, int | float):
        value = raw.strip()  # a camera by its number, say
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {text}", f"{section} is a value, not a section")
        values = inner
    values[last] = value


def _default(found: object, names: Iterable[str]) -> object:
    for name in names:
        found = "" if isinstance(found, dict) else getattr(found, name, None)  # the one table holds texts: gaze.columns
    return found


def refuse_nan(values: dict[str, Any], section: str = "") -> None:
    """Raise ConfigError for a number that isn't finite."""
    for key, value in values.items():
        if isinstance(value, dict):
            refuse_nan(value, f"{section}{key}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{section}{key}", "must be a finite number", got=str(value))
