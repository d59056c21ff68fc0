"""Files of sinks: in the clear, or encrypted to the study if their name ends in ``.age``."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, cast

from edge.config import Config
from edge.keys import KeyRing, keys_dir
from edge.session.cipherfile import SUFFIX, CipherFile

BUFFER = 1 << 16


def is_encrypted(path: str) -> bool:
    """Whether a sink's file of this name is encrypted."""
    return path.endswith(SUFFIX)


def recipients_for(path: str, config: Config) -> tuple[str, ...]:
    """Return the study's recipients for an encrypted file, and none for one in the clear.

    Raises
    ------
    KeyFileError
        There are fewer than two.
    """
    return tuple(KeyRing(keys_dir(config.keys.dir)).recipients().values()) if is_encrypted(path) else ()


def open_output(path: Path, recipients: Collection[str]) -> BinaryIO:
    """Open a file to write: encrypted to `recipients` if there are any, else in the clear."""
    if not recipients:
        return path.open("wb", buffering=BUFFER)
    return cast("BinaryIO", io.BufferedWriter(CipherFile(path, recipients), BUFFER))
