"""Signatures of model artefacts: `model.json.sig` beside `model.json`, which holds the hash of the weights.

They are checked when a device knows a publisher: as soon as there is one key in its folder of publishers, an artefact
that none of them signed is refused.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING

from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.files import write_atomic
from edge.keys import keys_dir, read_publics
from edge.manifest import MODEL_FILE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

DOMAIN = b"emogaze model 1\n"
SIGNATURE_FILE = f"{MODEL_FILE}.sig"


def sign_artefact(folder: Path, key: Ed25519PrivateKey) -> Path:
    """Sign the artefact in `folder`, and return the signature file."""
    signature = key.sign(DOMAIN + (folder / MODEL_FILE).read_bytes())
    write_atomic(folder / SIGNATURE_FILE, base64.b64encode(signature).decode() + "\n")
    return folder / SIGNATURE_FILE


def publishers(models: ModelsConfig) -> dict[str, Ed25519PublicKey]:
    """Return the publishers' keys that this device trusts, by name.

    Raises
    ------
    KeyFileError
        A file is no public key.
    """
    return read_publics(Path(models.publishers) if models.publishers else keys_dir() / "models")


def check_artefact(folder: Path, models: ModelsConfig) -> str:
    """Return who signed the artefact in `folder`; empty where this device knows no publisher.

    Raises
    ------
    ModelError
        It does, and none of them signed it.
    """
    known = publishers(models)
    if not known:
        return ""
    from cryptography.exceptions import InvalidSignature

    try:
        signature = base64.b64decode((folder / SIGNATURE_FILE).read_text(), validate=False)
        content = DOMAIN + (folder / MODEL_FILE).read_bytes()
    except (OSError, binascii.Error, UnicodeDecodeError):
        raise _unsigned(folder, "has no signature that can be read", known) from None
    for name, key in known.items():
        try:
            key.verify(signature, content)
        except InvalidSignature:
            continue
        return name
    raise _unsigned(folder, "was altered, or signed by somebody else", known)


def _unsigned(folder: Path, problem: str, known: dict[str, Ed25519PublicKey]) -> ModelError:
    return ModelError(
        str(folder),
        problem,
        expected=f"the signature of {' or '.join(known)}",
        fix="`python -m models sign FOLDER --key PUBLISHER.key`, by whoever vouches for it",
    )
