"""The keys of a device: which it holds, which it trusts, and where they lie.

A device signs its recordings and speaks CURVE; nothing it holds can decrypt a recording. One folder::

    signing.key, signing.pub    Ed25519; signs recordings and the audit log
    retired/ID.pub              public halves of earlier signing keys, so that older sessions still verify
    wire.key, wire.pub          CURVE key pair of the publisher and the control socket
    recipients.txt              the study's age recipients, one `NAME age1...` a line; recording needs two
    operators/NAME.pub          Ed25519 keys whose consent records this device accepts
    clients/NAME.pub            CURVE keys that may connect, and for what: `curve PUBLIC events,preview,control`
    models/NAME.pub             Ed25519 keys of which one must have signed a model artefact

Secret files are 0600; one that others can read is refused.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import hashlib
import os
import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edge.errors import KeyFileError
from edge.files import provisional, sync_dir, write_atomic

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KeyKind = Literal["signing", "wire"]
Trust = Literal["operators", "clients", "models"]
ALGORITHM = "ed25519"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MIN_RECIPIENTS = 2
#: What a client may be let do: subscribe to events, see preview pictures, give commands.
RIGHTS = ("events", "preview", "control")


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One line of `keys list`: what a key is for, its fingerprint, its file, and what is wrong with it if anything."""

    use: str
    name: str
    fingerprint: str
    path: str
    problem: str = ""


def keys_dir(setting: str = "") -> Path:
    """Return the key folder: the setting, else EMOGAZE_KEYS, else ~/.config/emogaze/keys."""
    return Path(setting or os.environ.get("EMOGAZE_KEYS", "") or "~/.config/emogaze/keys").expanduser()


def fingerprint(public: bytes) -> str:
    """Return the first 16 hex digits of the SHA-256 of a public key's bytes: how a key is named."""
    return hashlib.sha256(public).hexdigest()[:16]


def public_text(key: Ed25519PublicKey) -> str:
    """Return an Ed25519 public key as the one line that key files and session headers hold."""
    return f"{ALGORITHM} {base64.b64encode(key.public_bytes_raw()).decode()}"


def parse_public(text: str, thing: str) -> Ed25519PublicKey:
    """Read a line of `public_text`.

    Raises
    ------
    KeyFileError
        If it is no Ed25519 public key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    words = text.split()
    try:
        if len(words) < 2 or words[0] != ALGORITHM:
            raise ValueError
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(words[1], validate=True))
    except (ValueError, binascii.Error):
        got = "a private key" if "PRIVATE" in text else repr(text.strip()[:40])
        raise KeyFileError(thing, "is no public key", expected=f"one line `{ALGORITHM} BASE64`", got=got) from None


def read_publics(folder: Path) -> dict[str, Ed25519PublicKey]:
    """Return the Ed25519 public keys of a folder, ``NAME.pub`` each, by name.

    Raises
    ------
    KeyFileError
        A file is no public key.
    """
    return {path.stem: parse_public(path.read_text(), str(path)) for path in sorted(folder.glob("*.pub"))}


def read_private(path: Path) -> Ed25519PrivateKey:
    """Read an Ed25519 private key in PEM that only its owner can read.

    Raises
    ------
    KeyFileError
        It is missing, readable by others or no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_secret(path), password=None)
    except (ValueError, TypeError):
        raise KeyFileError(str(path), "is no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(str(path), "is of another kind", expected="an Ed25519 private key")
    return key


def read_secret(path: Path) -> bytes:
    """Return the bytes of a secret file that only its owner can read.

    Raises
    ------
    KeyFileError
        It is missing, unreadable, or others may read it.
    """
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except FileNotFoundError:
        raise KeyFileError(str(path), "no such key", fix="`emogaze keys new` makes the keys of a device") from None
    except OSError as error:
        raise KeyFileError(str(path), f"can't be read: {error.strerror}") from None
    if mode & 0o077:
        raise KeyFileError(
            str(path), "others can read this secret", expected="mode 600", got=f"{mode & 0o777:o}", fix="chmod 600 it"
        )
    return content


def write_secret(path: Path, content: bytes) -> None:
    """Write a secret file in one step, 0600 from its first byte on, in a folder that is 0700."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = provisional(path)
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_dir(path.parent)
    except OSError as error:
        raise KeyFileError(str(path), f"can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def new_signing_pair(path: Path) -> Ed25519PublicKey:
    """Make an Ed25519 pair: the private key at `path` (0600), the public one beside it as `.pub`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    write_secret(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_atomic(path.with_suffix(".pub"), public_text(key.public_key()) + "\n")
    return key.public_key()


def new_wire_pair(path: Path) -> str:
    """Make a CURVE pair: `path` holds both keys (0600), `.pub` the public one, which is returned."""
    import zmq

    public, secret = zmq.curve_keypair()
    write_secret(path, b"curve " + public + b" " + secret + b"\n")
    write_atomic(path.with_suffix(".pub"), f"curve {public.decode()}\n")
    return public.decode()


def read_wire_pair(path: Path) -> tuple[str, str]:
    """Return the (public, secret) CURVE keys of a `wire.key` or of a client's key file, in Z85."""
    words = read_secret(path).decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != "curve" or {len(w) for w in words[1:]} != {40}:
        raise KeyFileError(str(path), "is no wire key", expected="`curve PUBLIC SECRET`, 40 characters each")
    return words[1], words[2]


@dataclass(frozen=True, slots=True)
class Client:
    """Who may connect: the CURVE public key (Z85) and what it is good for."""

    public: str
    rights: frozenset[str]


def parse_client(text: str, thing: str) -> Client:
    """Read the line of a client's public key file; without rights it may subscribe to events.

    Raises
    ------
    KeyFileError
        It is no such line, or names an unknown right.
    """
    words = text.split()
    rights = frozenset((words[2] if len(words) > 2 else "events").split(","))
    if len(words) not in (2, 3) or words[0] != "curve" or len(words[1]) != 40 or not rights <= set(RIGHTS):
        expected = f"one line `curve PUBLIC RIGHTS`, rights among {','.join(RIGHTS)}"
        raise KeyFileError(thing, "is no client key", expected=expected, got=repr(text.strip()[:60]))
    return Client(words[1], rights)


class KeyRing:
    """The key folder of one device."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> list[KeyKind]:
        """Make the signing and the wire key where they are missing, and return which were made."""
        made: list[KeyKind] = []
        if not (self.folder / "signing.key").exists():
            new_signing_pair(self.folder / "signing.key")
            made.append("signing")
        if not (self.folder / "wire.key").exists():
            new_wire_pair(self.folder / "wire.key")
            made.append("wire")
        return made

    def rotate(self, kind: KeyKind) -> str:
        """Replace a key by a fresh one and return the fingerprint of the old; its public half is kept if it signs."""
        path = self.folder / f"{kind}.key"
        if kind == "wire":
            old = fingerprint(read_wire_pair(path)[0].encode())
            new_wire_pair(path)
            return old
        public = read_private(path).public_key()
        old = fingerprint(public.public_bytes_raw())
        write_atomic(self.folder / "retired" / f"{old}.pub", public_text(public) + "\n")
        new_signing_pair(path)
        return old

    def signing(self) -> Ed25519PrivateKey:
        """Return the key that signs recordings."""
        return read_private(self.folder / "signing.key")

    def wire(self) -> tuple[str, str]:
        """Return the device's (public, secret) CURVE keys in Z85."""
        return read_wire_pair(self.folder / "wire.key")

    def signers(self) -> dict[str, Ed25519PublicKey]:
        """Return the public signing keys of this device, now and before, by fingerprint."""
        paths = [self.folder / "signing.pub", *sorted((self.folder / "retired").glob("*.pub"))]
        keys = [parse_public(path.read_text(), str(path)) for path in paths if path.exists()]
        return {fingerprint(key.public_bytes_raw()): key for key in keys}

    def operators(self) -> dict[str, Ed25519PublicKey]:
        """Return the Ed25519 keys of the operators whose consent records this device accepts, by name."""
        return read_publics(self.folder / "operators")

    def clients(self) -> dict[str, Client]:
        """Return who may connect, by name."""
        return {p.stem: parse_client(p.read_text(), str(p)) for p in sorted((self.folder / "clients").glob("*.pub"))}

    def trust(self, kind: Trust, name: str, line: str) -> None:
        """Add a public key to those that are trusted, under `name`."""
        _check_name(name)
        if kind == "clients":
            parse_client(line, name)
        else:
            parse_public(line, name)
        write_atomic(self.folder / kind / f"{name}.pub", line.strip() + "\n")

    def recipients(self) -> dict[str, str]:
        """Return the study's age recipients by name.

        Raises
        ------
        KeyFileError
            There are fewer than two (one is for escrow), or a line is none.
        """
        bad_recipient, x25519 = age_library()

        path = self.folder / "recipients.txt"
        found: dict[str, str] = {}
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], start=1):
            words = line.split("#")[0].split()
            if not words:
                continue
            try:
                x25519.Recipient.from_str(words[-1])
            except bad_recipient:
                raise KeyFileError(
                    f"{path} line {number}", "is no recipient", expected="`NAME age1...`", got=words[-1][:24]
                ) from None
            found[words[0] if len(words) > 1 else f"line-{number}"] = words[-1]
        if len(set(found.values())) < MIN_RECIPIENTS:
            raise KeyFileError(
                str(path),
                f"names {len(set(found.values()))} recipient(s)",
                expected=f"at least {MIN_RECIPIENTS}, one of them for escrow",
                fix="`emogaze keys recipient NAME age1...` adds one; `emogaze keys identity` makes them elsewhere",
            )
        return found

    def add_recipient(self, name: str, text: str) -> None:
        """Add a study recipient."""
        bad_recipient, x25519 = age_library()

        try:
            x25519.Recipient.from_str(text)
        except bad_recipient:
            secret = text.upper().startswith("AGE-SECRET-KEY")
            got = "a secret key, which must never reach the device" if secret else text[:24]
            raise KeyFileError(name, "is no age recipient", expected="age1...", got=got) from None
        _check_name(name)
        path = self.folder / "recipients.txt"
        write_atomic(path, (path.read_text() if path.exists() else "") + f"{name} {text}\n")

    def list(self) -> Iterator[KeyInfo]:
        """List every key with what is wrong with it; a secret is never part of it."""
        yield self._own("signing")
        yield self._own("wire")
        for kind in ("retired", "operators", "clients", "models"):
            for path in sorted((self.folder / kind).glob("*.pub")):
                words = path.read_text().split()
                raw = words[1] if len(words) > 1 else ""
                public = base64.b64decode(raw) if words[:1] == [ALGORITHM] else raw.encode()
                yield KeyInfo(kind.rstrip("s"), path.stem, fingerprint(public), str(path))
        try:
            for name, text in self.recipients().items():
                yield KeyInfo("recipient", name, text, str(self.folder / "recipients.txt"))
        except KeyFileError as error:
            yield KeyInfo("recipient", "", "", str(self.folder / "recipients.txt"), str(error))

    def _own(self, kind: KeyKind) -> KeyInfo:
        path = self.folder / f"{kind}.key"
        try:
            public = self.signing().public_key().public_bytes_raw() if kind == "signing" else self.wire()[0].encode()
        except KeyFileError as error:
            return KeyInfo(kind, "", "", str(path), str(error))
        return KeyInfo(kind, "", fingerprint(public), str(path))


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise KeyFileError(name, "can't be a name", expected="letters, digits, dot, dash; at most 64")


def harden_process() -> None:
    """Switch core dumps off and make the process undumpable: no debugger of the same user can read its memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pr_set_dumpable = 4
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0) != 0:
        raise KeyFileError("this process", f"can't be made undumpable: {os.strerror(ctypes.get_errno())}")


def age_library() -> tuple[type[Exception], Any]:
    """Return pyrage's error of a bad recipient and its X25519 module."""
    try:
        from pyrage import RecipientError, x25519
    except ImportError:
        raise KeyFileError("age keys", "need pyrage", fix="pip install 'emogaze-edge[record]'") from None
    return RecipientError, x25519
