"""The audit log of a device: append-only, hash-chained, signed; who did what to which session."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from typing import Any

from edge.errors import RecordingError
from edge.keys import KeyRing
from edge.session.chain import ROOT, Chain, read_chain, signed_line

NAME = "audit.jsonl"


def append_audit(ring: KeyRing, action: str, **detail: Any) -> None:
    """Add one line to the audit log in the key folder; a device without a signing key keeps none.

    Raises
    ------
    RecordingError
        The log can't be written.
    """
    if not (ring.folder / "signing.key").exists():
        return
    key = ring.signing()
    path = ring.folder / NAME
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RecordingError(str(path), f"can't be written: {error.strerror}") from error
    with os.fdopen(handle, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        whole, _, cut = file.read().rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        prev = hashlib.sha256(lines[-1]).hexdigest() if lines else ROOT
        body = {"n": len(lines), "kind": action, "unix": int(time.time()), "user": os.getuid(), **detail, "prev": prev}
        if cut:
            file.truncate(file.tell() - len(cut))  # a line that a power cut halved
        file.write(signed_line(key, body) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_audit(ring: KeyRing) -> Chain:
    """Read the audit log and check its chain and signatures, by the keys of this device now and before."""
    return read_chain(ring.folder / NAME, list(ring.signers().values()))
