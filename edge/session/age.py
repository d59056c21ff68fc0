"""A reader of age v1 files for X25519 that goes on past damage; used to verify and recover, never to write.

The `age` program stops at the first bad chunk and uses the same words for a cut and for a flipped bit. This reader says
of each chunk of 64 KiB whether it is authentic. Format: https://age-encryption.org/v1 (C2SP age.md).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from edge.errors import RecordingError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

CHUNK = 65536
TAG = 16
NONCE = 16
MAX_HEADER = 65536
VERSION_LINE = b"age-encryption.org/v1"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
IDENTITY_PREFIX = "age-secret-key-"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a payload: its number, its plaintext or None if it isn't authentic, and whether it ends the file."""

    index: int
    plaintext: bytes | None
    final: bool


class HeaderError(RecordingError):
    """The header of an age file can't be used. `cut` says that the file ends before the header does."""

    def __init__(self, path: Path, problem: str, *, cut: bool = False, fix: str = "") -> None:
        super().__init__(str(path), problem, fix=fix)
        self.cut = cut


class AgeFile:
    """The chunks of an age file, decrypted with one X25519 identity.

    Parameters
    ----------
    path : Path
        The encrypted file.
    identity : str
        ``AGE-SECRET-KEY-1...``

    Raises
    ------
    HeaderError
        No age file, a cut or altered header, or encrypted to somebody else.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        private = parse_identity(identity)
        with path.open("rb") as file:
            self.file_key = _unwrap(path, file, private)
            nonce = file.read(NONCE)
            self.payload_at = file.tell()
        if len(nonce) < NONCE:
            raise HeaderError(path, "ends within its header", cut=True)
        self._key = _hkdf(self.file_key, nonce, b"payload")

    def count(self) -> int:
        """Return how many chunks the file's size makes, whole or cut."""
        payload = os.stat(self.path).st_size - self.payload_at
        return -(-payload // (CHUNK + TAG))

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Yield the chunks from number `start` on, authentic or not."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        cipher = ChaCha20Poly1305(self._key)
        with self.path.open("rb") as file:
            file.seek(self.payload_at + start * (CHUNK + TAG))
            index = start
            while block := file.read(CHUNK + TAG):
                plaintext = None
                for final in (False, True):
                    try:
                        plaintext = cipher.decrypt(index.to_bytes(11, "big") + bytes([final]), block, None)
                    except InvalidTag:
                        continue
                    break
                yield Chunk(index, plaintext, final and plaintext is not None)
                index += 1


def check_structure(path: Path) -> None:
    """Raise HeaderError if a file can't be an age file to X25519 recipients. Only a key can tell if it is authentic."""
    with path.open("rb") as file:
        stanzas, mac, _ = _header(path, file)
        rest = file.read(NONCE + TAG)
    whole = all(a[:1] != ["X25519"] or (len(a) == 2 and len(_unbase64(a[1])) == 32 == len(b)) for a, b in stanzas)
    if not (stanzas and whole and len(mac) == 32 and len(rest) == NONCE + TAG):
        raise HeaderError(path, "is no whole age file", cut=len(rest) < NONCE + TAG)


def parse_identity(text: str) -> X25519PrivateKey:
    """Return the private key of an ``AGE-SECRET-KEY-1...`` text (Bech32, BIP 173).

    Raises
    ------
    RecordingError
        It is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    text = text.strip().lower()
    prefix, _, data = text.rpartition("1")
    values = [BECH32.find(c) for c in data]
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    if (
        prefix != IDENTITY_PREFIX
        or len(values) != 58
        or min(values, default=-1) < 0
        or _polymod(expanded + values) != 1
    ):
        raise RecordingError("identity", "is no age identity", expected="AGE-SECRET-KEY-1...")
    bits = "".join(f"{v:05b}" for v in values[:-6])
    return X25519PrivateKey.from_private_bytes(int(bits[:256], 2).to_bytes(32, "big"))


def _unwrap(path: Path, file: BinaryIO, private: X25519PrivateKey) -> bytes:
    """Read the header of `file`, leave it at the nonce, and return the file key."""
    stanzas, mac, covered = _header(path, file)
    for arguments, body in stanzas:
        if arguments[:1] == ["X25519"] and len(arguments) == 2:
            file_key = _open_stanza(_unbase64(arguments[1]), body, private)
            if file_key is not None:
                key = _hkdf(file_key, b"", b"header")
                if not hmac.compare_digest(hmac.new(key, covered, hashlib.sha256).digest(), mac):
                    raise HeaderError(path, "the header was altered: its code doesn't match")
                return file_key
    raise HeaderError(path, "is encrypted to somebody else", fix="give the identity that belongs to its recipient")


def _header(path: Path, file: BinaryIO) -> tuple[list[tuple[list[str], bytes]], bytes, bytes]:
    """Return the stanzas (arguments, body), the authentication code, and the bytes that it covers."""
    lines: list[bytes] = []
    size = 0
    while size < MAX_HEADER:
        line = file.readline(MAX_HEADER)
        if not line.endswith(b"\n"):
            raise HeaderError(path, "ends within its header", cut=True)
        size += len(line)
        lines.append(line[:-1])
        if len(lines) == 1 and lines[0] != VERSION_LINE:
            raise HeaderError(path, f"is no age v1 file: begins with {lines[0][:24]!r}")
        if line.startswith(b"--- "):
            covered = b"\n".join(lines[:-1]) + b"\n---"
            return _stanzas(lines[1:-1]), _unbase64(line[4:-1].decode("ascii", "replace")), covered
    raise HeaderError(path, "has no end of its header")


def _stanzas(lines: list[bytes]) -> list[tuple[list[str], bytes]]:
    found: list[tuple[list[str], str]] = []
    for line in lines:
        text = line.decode("ascii", "replace")
        if text.startswith("-> "):
            found.append((text[3:].split(" "), ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + text)
    return [(arguments, _unbase64(body)) for arguments, body in found]


def _open_stanza(share: bytes, body: bytes, private: X25519PrivateKey) -> bytes | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if len(share) != 32:
        return None
    own = private.public_key().public_bytes_raw()
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(share))
        wrap = _hkdf(secret, share + own, b"age-encryption.org/v1/X25519")
        return ChaCha20Poly1305(wrap).decrypt(bytes(12), body, None)
    except (InvalidTag, ValueError):
        return None


def _hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, salt, info).derive(secret)


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""


def _polymod(values: list[int]) -> int:
    generator = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, term in enumerate(generator):
            check ^= term if (top >> bit) & 1 else 0
    return check
