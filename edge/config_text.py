"""Settings in words: which there are, and which one a message means."""

from __future__ import annotations

import difflib
import re
from typing import Any, NamedTuple

import msgspec

Row = tuple[str, Any, str, str]  #: key, default, bounds, description


def list_settings(root: type[msgspec.Struct]) -> list[Row]:
    """List every setting of a configuration, in order; its sections are the fields whose defaults are structs."""
    schema = msgspec.json.schema(root)["$defs"]
    rows = []
    for field in msgspec.structs.fields(root):
        if isinstance(field.default, msgspec.Struct):
            for key, spec in schema[type(field.default).__name__]["properties"].items():
                rows.append((f"{field.name}.{key}", *_spec(spec)))
        else:
            rows.append((field.name, *_spec(schema[root.__name__]["properties"][field.name])))
    return rows


def _spec(spec: dict[str, Any]) -> tuple[Any, str, str]:
    if "enum" in spec:
        bounds = " | ".join(repr(v) for v in spec["enum"])
    else:
        bounds = " to ".join(f"{spec[key]:.15g}" for key in ("minimum", "maximum") if key in spec)
    return spec.get("default"), bounds, spec.get("description", "")


class Mistake(NamedTuple):
    """What is wrong with a configuration: the setting, the problem, what was expected and what came (or empty)."""

    key: str
    problem: str
    expected: str = ""
    got: str = ""


def explain(message: str, root: type[msgspec.Struct], values: dict[str, Any]) -> Mistake:
    """Return what msgspec says of a configuration in the user's terms; of an unknown setting, the one that is meant."""
    unknown = re.match(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", message)
    if unknown:
        return _explain_unknown(unknown.group(1), unknown.group(2) or "", root)
    place = re.search(r"`\$\.([a-z_0-9.]+)`$", message)
    key = place.group(1) if place else ""
    value: Any = values
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    got = "" if value is None or isinstance(value, dict) else repr(value)
    bounds, text = next(((bounds, text) for known, _, bounds, text in list_settings(root) if known == key), ("", ""))
    if " matching regex " in message:  # which nobody wants to read: the sentence says what it allows
        return Mistake(key, f"{key} can't be read", text.rpartition(": ")[2], got)
    is_choice = message.startswith("Invalid enum value")
    return Mistake(key, message.replace("`$.", "`"), bounds if is_choice else "", "" if is_choice else got)


def _explain_unknown(name: str, section: str, root: type[msgspec.Struct]) -> Mistake:
    full = f"{section}.{name}" if section else name
    known = [key for key, *_ in list_settings(root)]
    own = [key for key in known if section and key.startswith(f"{section}.")]
    known += [field.name for field in msgspec.structs.fields(root)]
    meant = [key for key in known if key.rpartition(".")[2] == name]
    meant = meant or difflib.get_close_matches(full, own or known, n=1, cutoff=0.75 if own else 0.6)
    if meant:
        hint = f"did you mean {' or '.join(meant)}?"
    elif own:
        hint = f"{section} has {', '.join(key.rpartition('.')[2] for key in own)}"
    else:
        hint = "`emogaze config show` lists all"
    return Mistake(full, f"unknown setting {full!r}; {hint}")
