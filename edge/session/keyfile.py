"""The state of `SESSION.key.age`, without which nobody can read a session: what can be said of it without any key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from edge.errors import RecordingError
from edge.files import decode_document, sha256_file
from edge.keys import parse_public
from edge.session.age import HeaderError, check_structure
from edge.session.chain import is_signed
from edge.session.layout import SessionPaths

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KeyState = Literal["there", "deleted", "missing", "damaged", "replaced"]


@dataclass(frozen=True, slots=True)
class KeyFile:
    """What became of a session's key file.

    `there`     it is the one that was recorded.
    `deleted`   the session was ended on purpose (withdrawal, retention), and its tombstone stands.
    `missing`   it is gone, and no tombstone says why.
    `damaged`   it is no whole age file.
    `replaced`  it isn't the one whose hash the session's first line signs: encrypted anew, or altered.
    """

    state: KeyState
    problem: str = ""


def key_file(paths: SessionPaths, header: dict[str, Any], keys: Sequence[Ed25519PublicKey] = ()) -> KeyFile:
    """Look at the key file of a session whose first line is `header`.

    `keys` may have signed its tombstone besides the one that signed the session.
    """
    name = paths.key.name
    if not paths.key.exists():
        if paths.tombstone.exists():
            doubt = _tombstone_doubt(paths, header, keys)
            text = f"{name} was deleted, nobody can read it any more: {withdrawal_reason(paths)}{doubt}"
            return KeyFile("deleted", text)
        return KeyFile("missing", f"{name} is missing: nobody can read this session, restore it from a copy")
    try:
        check_structure(paths.key)
        same = sha256_file(paths.key) == header.get("key_sha256", sha256_file(paths.key))
    except HeaderError as error:
        return KeyFile("damaged", f"{name} {error.problem}: nobody can read this session, restore it from a copy")
    except OSError as error:
        raise RecordingError(str(paths.key), f"can't be read: {error.strerror}") from None
    if not same:
        return KeyFile(
            "replaced",
            f"{name} isn't the one that was recorded: damaged, or encrypted anew; an identity (-i) tells which",
        )
    if paths.tombstone.exists():
        return KeyFile(
            "there", f"{name} is there in spite of the tombstone: {withdrawal_reason(paths)}; withdraw it again"
        )
    return KeyFile("there")


def _tombstone_doubt(paths: SessionPaths, header: dict[str, Any], keys: Sequence[Ed25519PublicKey]) -> str:
    known = [*keys, *([parse_public(str(header["signer"]), "session")] if "signer" in header else [])]
    try:
        tombstone = decode_document(paths.tombstone.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        tombstone = None
    if isinstance(tombstone, dict) and any(is_signed(tombstone, key) for key in known):
        return ""
    return " (the device didn't sign this: whoever can write here may have left it)"


def withdrawal_reason(paths: SessionPaths) -> str:
    """Return what the tombstone of a session says."""
    try:
        return str(decode_document(paths.tombstone.read_text(encoding="utf-8")).get("reason", "withdrawn"))
    except (OSError, ValueError, AttributeError):
        return "withdrawn (the tombstone can't be read)"
