"""Ending sessions: withdrawal of consent and the retention time. Both delete the key, which is the session.

Without `SESSION.key.age` nobody can decrypt the segments, so they stay as they are, and so does the proof in the chain.
What is deleted may live on in spare blocks of flash, in backups and in exported copies; the tombstone says so.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from edge.errors import RecordingError
from edge.files import sync_dir, write_atomic
from edge.keys import KeyRing
from edge.session.audit import append_audit, read_audit
from edge.session.chain import signed_line
from edge.session.layout import SessionPaths, read_header, sessions, withdrawal_marker

FLASH = (
    "the key file was deleted; flash may keep its old blocks until they are reused, and so may snapshots and backups. "
    "It is encrypted to the study's recipients: it opens nothing without one of their identities"
)
DAY_S = 86400


def withdraw(folder: Path, consent_id: str, ring: KeyRing, *, by: str) -> list[dict[str, Any]]:
    """Withdraw a consent: delete the keys of its sessions, leave tombstones, and refuse new sessions under it.

    Returns
    -------
    list of dict
        The tombstones, each with the exported copies that this device knows of.

    Raises
    ------
    RecordingError
        A session is of a newer version, or can't be read, so that nobody can tell its consent; the others were ended.
    """
    write_atomic(
        withdrawal_marker(folder, consent_id),
        json.dumps({"consent": consent_id, "unix": int(time.time()), "by": by}) + "\n",
    )
    append_audit(ring, "withdraw", consent=consent_id, by=by)
    headers, unread = _headers(folder)
    found = [paths for paths, header in headers if header.get("consent") == consent_id]
    ended = [end_session(paths, ring, reason=f"consent {consent_id} was withdrawn", by=by) for paths in found]
    _require_judged(unread, len(ended), unknown="whether this one is under the consent", again="withdraw it again")
    return ended


def purge(folder: Path, ring: KeyRing, *, days: float, now_s: float | None = None) -> list[dict[str, Any]]:
    """End the sessions that are older than `days`; 0 ends none.

    Raises
    ------
    RecordingError
        A session is of a newer version, or can't be read, so that nobody can tell its age; the others were ended.
    """
    if days <= 0:
        return []
    limit = (time.time() if now_s is None else now_s) - days * DAY_S
    headers, unread = _headers(folder)
    old = [p for p, header in headers if p.key.exists() and header.get("created", limit) < limit]
    ended = [end_session(paths, ring, reason=f"retention time of {days:g} days", by="retention") for paths in old]
    _require_judged(unread, len(ended), unknown="the age of this one", again="purge again")
    return ended


def _require_judged(unread: list[RecordingError], n_ended: int, *, unknown: str, again: str) -> None:
    """Raise RecordingError for the first session that couldn't be read; the others were judged."""
    if unread:
        first = unread[0]
        problem = f"{first.problem}: {n_ended} session(s) were ended; {unknown} isn't known"
        raise RecordingError(first.thing, problem, fix=f"{first.fix or 'mend that'} and {again}")


def _headers(folder: Path) -> tuple[list[tuple[SessionPaths, dict[str, Any]]], list[RecordingError]]:
    """Return the sessions of a folder with their first lines, and why some can't be read, which stops no other."""
    found, unread = [], []
    for paths in sessions(folder):
        try:
            header = read_header(paths)
            if not header and paths.key.exists() and paths.segments():
                raise RecordingError(
                    str(paths.chain), "is lost or damaged", fix="restore it from a copy, or delete the session's key,"
                )
            found.append((paths, header))
        except RecordingError as error:
            unread.append(error)
    return found, unread


def end_session(paths: SessionPaths, ring: KeyRing, *, reason: str, by: str) -> dict[str, Any]:
    """Delete a session's key and leave a tombstone, signed by the device. It is on disk before the key goes."""
    tombstone = {
        "session": paths.name,
        "reason": reason,
        "by": by,
        "unix": int(time.time()),
        "exports": exports_of(paths.name, ring),
        "exports_note": "copies made on other machines are not known here",
        "flash_note": FLASH,
    }
    if (ring.folder / "signing.key").exists():
        tombstone = json.loads(signed_line(ring.signing(), tombstone))
    write_atomic(paths.tombstone, json.dumps(tombstone, indent=1) + "\n")
    paths.key.unlink(missing_ok=True)
    sync_dir(paths.folder)
    append_audit(ring, "end_session", session=paths.name, reason=reason, by=by)
    return tombstone


def exports_of(session: str, ring: KeyRing) -> list[str]:
    """List where a session was exported to, as the audit log has it."""
    lines = read_audit(ring).lines
    return [str(line["to"]) for line in lines if line["kind"] == "export" and line.get("session") == session]
