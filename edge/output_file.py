"""Files of sinks: in the clear, or encrypted to the study if their name ends in ``.age``.

A file is written under a provisional name, by one run at a time, and takes its own name once it is whole.
"""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from edge.config import Config
from edge.errors import SinkError
from edge.files import check_target, sync_dir
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


def part_of(path: Path) -> Path:
    """Return the provisional name of an output: ``NAME.part``, and ``NAME.part.mp4`` of a clip, since it plays."""
    clip = path.with_suffix("") if is_encrypted(path.name) else path
    if clip.suffix.lower() != ".mp4":
        return path.with_name(path.name + ".part")
    return path.with_name(f"{clip.stem}.part{path.name.removeprefix(clip.stem)}")


class OutputFile:
    """A file to write, locked against other runs until it is closed. What a killed run left of it is written anew.

    Parameters
    ----------
    path : Path
        The name that it takes once it is whole.
    recipients : collection of str
        age recipients to encrypt it to; none leaves it in the clear.
    flushed : bool
        Whether each write reaches the disk's cache at once, so that a kill loses nothing.

    Raises
    ------
    SinkError
        It can't be written, or another run writes it.
    """

    def __init__(self, path: Path, recipients: Collection[str] = (), *, flushed: bool = False) -> None:
        self._path, self._part, self._flushed = path, part_of(path), flushed
        self._error: OSError | None = None
        check_target(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._part.open("ab", buffering=0)  # not emptied: it may be another run's
            self._take()
            raw = os.fdopen(os.dup(self._lock.fileno()), "wb", buffering=0)
        except OSError as error:
            raise SinkError(str(path), f"can't be written: {error.strerror}", fix="choose a writable folder") from error
        self._file = io.BufferedWriter(CipherFile(raw, recipients) if recipients else raw, BUFFER)

    def _take(self) -> None:
        """Lock the part and empty it, unless another run has it, or has just finished it under its own name."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._lock.fileno()), self._part.stat()):
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            self._lock.close()
            raise SinkError(str(self._path), "is being written by another run", fix="choose another output") from None
        self._lock.truncate(0)

    def write(self, block: Any) -> int:
        """Append all of `block`, any buffer of bytes. An OSError is raised, and once more by `close`."""
        try:
            written = self._file.write(block)
            if self._flushed:
                self._file.flush()
        except OSError as error:
            self._error = error
            raise
        return written

    def close(self, *, whole: bool, keep: bool = True) -> None:
        """Finish the file; if it is `whole` it takes its name, else the part stays if it is to be kept.

        May be called twice.

        Raises
        ------
        SinkError
            What was written isn't all on the disk, whether or not who wrote it took notice. It didn't take its name.
        """
        if self._lock.closed:
            return
        named = False
        try:
            self._file.close()
            if whole:
                if self._error is not None:
                    raise self._error
                os.fsync(self._lock.fileno())
                self._part.replace(self._path)
                named = True
                sync_dir(self._path.parent)
        except OSError as error:
            if whole or keep:
                raise SinkError(str(self._path), f"can't be finished: {error.strerror}") from error
        finally:
            if not named and not keep:
                self._part.unlink(missing_ok=True)
            self._lock.close()  # last of all: until then the part is nobody else's
