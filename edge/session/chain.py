"""A signed hash chain in a file of JSON lines: the checkpoints of a session, and the audit log.

Each line holds the SHA-256 of the line before it (`prev`) and an Ed25519 signature over itself. A line that is altered,
removed from the middle or put elsewhere breaks the chain; lines removed from the end can't be told from a power cut.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.errors import RecordingError
from edge.files import decode_document
from edge.session.disk import Disk

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

DOMAIN = b"emogaze chain 1\n"
ROOT = "0" * 64


class ChainWriter:
    """Appends signed lines to a new file. Each is durable when `append` returns."""

    def __init__(self, path: Path, key: Ed25519PrivateKey, *, disk: Disk) -> None:
        self._key, self._disk = key, disk
        self._handle = disk.create(path)
        self._prev, self._n, self._size = ROOT, 0, 0

    def append(self, kind: str, **body: Any) -> str:
        """Append one line and return its hash, which a witness may keep."""
        line = signed_line(self._key, {"n": self._n, "kind": kind, **body, "prev": self._prev})
        try:
            self._disk.append(self._handle, line + b"\n")
            self._disk.sync(self._handle)
        except OSError:
            self._disk.truncate(self._handle, self._size)  # a half line would spoil the next one
            raise
        self._prev, self._n = hashlib.sha256(line).hexdigest(), self._n + 1
        self._size += len(line) + 1
        return self._prev

    def close(self) -> None:
        self._disk.close(self._handle)


@dataclass(frozen=True, slots=True)
class Chain:
    """What a chain file holds: the lines that are good, what breaks it, and whether its last line is cut."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    cut: bool = False
    head: str = ROOT


def signed_line(key: Ed25519PrivateKey, body: dict[str, Any]) -> bytes:
    """Return `body` as one JSON line (no line end) with its signature."""
    signature = base64.b64encode(key.sign(DOMAIN + _canonical(body))).decode()
    return _canonical({**body, "sig": signature})


def read_chain(path: Path, keys: Sequence[Ed25519PublicKey] = ()) -> Chain:
    """Read a chain and check it, line by line, up to the first line that is bad.

    Parameters
    ----------
    path : Path
        The file; a missing or empty one is a cut chain.
    keys : sequence of Ed25519PublicKey
        One of whose signatures each line must have; without any, the key that the first line names (`signer`).

    Raises
    ------
    RecordingError
        The file is there and can't be read.
    """
    from edge.keys import parse_public

    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raw = b""
    except OSError as error:
        raise RecordingError(str(path), f"can't be read: {error.strerror}") from error
    *whole, rest = raw.split(b"\n")
    lines: list[dict[str, Any]] = []
    prev = ROOT
    for number, line in enumerate(whole):
        body = _parse(line)
        if body is None:
            last = number == len(whole) - 1
            problem = "" if last else f"line {number + 1} can't be read"
            return Chain(lines, problem, cut=last, head=prev)
        keys = keys or [parse_public(str(body.get("signer", "")), str(path))]
        if body.get("prev") != prev or body.get("n") != number:
            return Chain(lines, f"line {number + 1} doesn't follow the line before it", head=prev)
        if not any(is_signed(body, key) for key in keys):
            return Chain(lines, f"line {number + 1} has a bad signature", head=prev)
        lines.append(body)
        prev = hashlib.sha256(line).hexdigest()
    return Chain(lines, cut=bool(rest) or not lines, head=prev)


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        body = decode_document(line)
    except ValueError:
        return None
    # One way to write a line and no other: else a line could be altered without changing what it says.
    return body if isinstance(body, dict) and _canonical(body) == line else None


def is_signed(body: dict[str, Any], key: Ed25519PublicKey) -> bool:
    """Tell whether `body` holds a signature of `key` over all else in it, as `signed_line` makes it."""
    from cryptography.exceptions import InvalidSignature

    unsigned = {name: value for name, value in body.items() if name != "sig"}
    text = str(body.get("sig", ""))
    try:
        signature = base64.b64decode(text, validate=True)
        key.verify(signature, DOMAIN + _canonical(unsigned))
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return base64.b64encode(signature).decode() == text


def _canonical(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
