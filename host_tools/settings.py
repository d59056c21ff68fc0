"""Settings of the host tools: TOML files of which every key is known and every value in bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from edge.config import Section
from edge.config_files import parse_toml
from edge.errors import ConfigError

T = TypeVar("T", bound=Section)


def says(text: str, *, ge: float | None = None, le: float | None = None) -> msgspec.Meta:
    """Describe a setting, with its bounds."""
    return msgspec.Meta(description=text, ge=ge, le=le)


def read_settings(path: Path, kind: type[T]) -> T:
    """Read a TOML file of settings.

    Raises
    ------
    ConfigError
        A file that can't be read, an unknown key, or a value of the wrong type or out of bounds.
    """
    try:
        return msgspec.convert(parse_toml(path), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(str(path), str(error).replace("`$.", "`")) from None
