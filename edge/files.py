"""Writing files so that what looks whole is whole."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

from edge.errors import SinkError

T = TypeVar("T")
FULL = (errno.ENOSPC, errno.EDQUOT)


def check_target(path: Path) -> None:
    """Refuse a name that a folder, a device or a pipe has, whose place a finished file would take, or below a file.

    Raises
    ------
    SinkError
    """
    try:
        if path.exists() and not path.is_file():
            raise SinkError(str(path), "is there and is no file", fix="name a file")
        above = next((folder for folder in path.parents if folder.exists()), path.parent)
    except OSError as error:
        raise SinkError(str(path), f"can't be written: {error.strerror}", fix="choose a writable folder") from error
    if above.exists() and not above.is_dir():
        raise SinkError(str(path), f"can't be written: {above} is a file, not a folder", fix="choose a writable folder")


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two names are one file, through symbolic and hard links; of a file that isn't there yet, one place."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def refuse_source(output: Path, *sources: Path | None) -> None:
    """Refuse to write over what is read.

    Raises
    ------
    SinkError
    """
    if any(source is not None and is_same_file(source, output) for source in sources):
        raise SinkError(str(output), "is the source itself", fix="choose another output")


@contextmanager
def private_files() -> Iterator[None]:
    """Make files created inside readable by their owner alone: gaze, scores and pictures in the clear."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def provisional(path: Path, suffix: str = "part") -> Path:
    """Return a hidden name beside `path` that nothing has: not even what a killed process of the same number left."""
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}.{suffix}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; on success it is synced and takes the name, on an error it is removed.

    Raises
    ------
    SinkError
        If the folder can't be written.
    """
    check_target(path)
    part = provisional(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
    except OSError as error:
        raise SinkError(str(path), f"can't be written: {error.strerror}", fix="choose a writable folder") from error
    try:
        with _naming_full_disk(path):
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
            sync_dir(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _naming_full_disk(path: Path) -> Iterator[None]:
    """Turn what a full disk raises, which names no file, into a SinkError that names the one being written."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise SinkError(str(path), f"can't be written: {os.strerror(error.errno)}", fix="free some space") from error


@contextmanager
def atomic_folder(path: Path, marker: str) -> Iterator[Path]:
    """Give an empty folder to fill; on success it is synced and takes the place of `path`, on an error it is removed.

    Parameters
    ----------
    path : Path
        What is written. A folder that is there is replaced only if it is empty or holds `marker`.
    marker : str
        File name or glob pattern that says "this is one of ours".

    Raises
    ------
    SinkError
        If the place can't be written, or is taken by something else.
    """
    if path.exists() and not (path.is_dir() and (any(path.glob(marker)) or not any(path.iterdir()))):
        raise SinkError(str(path), f"is there and holds no {marker}", fix="choose another folder")
    part, old = provisional(path), provisional(path, "old")
    try:
        part.mkdir(parents=True)
    except OSError as error:
        raise SinkError(str(path), f"can't be written: {error.strerror}", fix="choose a writable folder") from error
    try:
        with _naming_full_disk(path):
            yield part
            for file in part.rglob("*"):
                if file.is_file():
                    with file.open("rb") as opened:
                        os.fsync(opened.fileno())
        if path.exists():
            path.replace(old)
        part.replace(path)
    finally:
        if old.exists() and not path.exists():  # ended between the two: what was there comes back
            old.replace(path)
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)


def sync_dir(folder: Path) -> None:
    """Make the names in `folder` durable: a file that is synced can still lose its name at a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one step: the old file or the new one, never half of it."""
    with atomic_path(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@overload
def decode_document(content: str | bytes) -> Any: ...


@overload
def decode_document(content: str | bytes, decode: Callable[[Any], T]) -> T: ...


def decode_document(content: str | bytes, decode: Callable[[Any], Any] = json.loads) -> Any:
    """Decode JSON, TOML or MessagePack that comes from outside.

    Parameters
    ----------
    content : str or bytes
        The document.
    decode : callable
        Gives its value, or a ValueError (msgspec's DecodeError is one).

    Raises
    ------
    ValueError
        It can't be decoded. Brackets nested deeper than the decoder goes count as that too, as a DecodeError; on their
        own they would be a RecursionError, which nobody who reads a file expects.
    """
    try:
        return decode(content)
    except RecursionError:
        from msgspec import DecodeError

        raise DecodeError("is nested too deep") from None


def plain(value: Any) -> Any:
    """Return `value` as JSON can hold it: numpy scalars unwrapped, tuples as lists, NaN and infinities as None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any) -> str:
    """Return `value` as indented JSON, with a line end."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as indented JSON, in one step."""
    write_atomic(path, json_text(value))


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
