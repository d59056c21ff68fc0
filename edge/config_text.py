"""Settings in words: which there are, and which one a message means."""

from __future__ import annotations

import difflib
import re
from typing import Any

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
        bounds = " ".join(
            f"{sign} {spec[key]:g}" for key, sign in (("minimum", ">="), ("maximum", "<=")) if key in spec
        )
    return spec.get("default"), bounds, spec.get("description", "")


def explain(message: str, root: type[msgspec.Struct]) -> str:
    """Return what msgspec says of a configuration in the user's terms; of an unknown setting, the one that is meant."""
    unknown = re.match(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", message)
    if not unknown:
        return message.replace("`$.", "`")
    name, section = unknown.group(1), unknown.group(2) or ""
    full = f"{section}.{name}" if section else name
    known = [key for key, *_ in list_settings(root)] + [field.name for field in msgspec.structs.fields(root)]
    meant = [key for key in known if key.rpartition(".")[2] == name] or difflib.get_close_matches(full, known, n=1)
    hint = f"; did you mean {' or '.join(meant)}?" if meant else "; `emogaze config show` lists all"
    return f"unknown setting {full!r}{hint}"
