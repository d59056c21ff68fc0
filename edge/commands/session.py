"""`emogaze session`: check, read back, recover and export recordings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.commands.base import Json, KeysDir, StudyIdentity, emit_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from edge.session.layout import SessionPaths
    from edge.session.verify import Verdict

Session = Annotated[Path, typer.Argument(help="The session's folder.")]
Identity = Annotated[Path, typer.Option("--identity", "-i", help="File with an identity of the study.")]


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Encrypted recordings: verify, read back, export.", no_args_is_help=True)
    for command in (list_, verify, info, recover, export, anonymise, purge, audit):
        group.command(command.__name__.rstrip("_"))(command)
    app.add_typer(group, name="session")


def list_(
    recordings: Annotated[Path, typer.Argument(help="The recording folder (record.dir).")], json: Json = False
) -> None:
    """List the sessions of a recording folder, the oldest first."""
    from edge.errors import RecordingError
    from edge.session.info import describe
    from edge.session.layout import sessions

    if not recordings.is_dir():
        raise RecordingError(str(recordings), "no such folder", expected="the one that record.dir names")
    found, unread = [], []
    for paths in sessions(recordings):
        try:
            found.append(describe(paths))
        except RecordingError as error:
            unread.append(error)
    if json:
        emit_json("sessions", {"dir": str(recordings)}, {"sessions": found, "unread": [str(e) for e in unread]})
        return
    for facts in found:
        size = f"{facts['bytes'] / 1e6:.1f} MB"
        end = "closed" if facts["end"] == "close" else "not closed"
        print(f"{facts['session']}  {size:>10}  {end:10}  key {facts['key']:8} consent {facts['consent']}")
    for problem in unread:
        print(problem)


def verify(
    session: Session,
    identity: StudyIdentity = None,
    trust: Annotated[list[Path] | None, typer.Option(help="A device's signing.pub; others count as damage.")] = None,
    dir: KeysDir = "",
    json: Json = False,
) -> None:
    """Check a session. Exit 0 complete, 3 torn (only the tail fails), 4 damaged, 5 shortened.

    Without an identity the signed part is checked; with one, each encrypted chunk is too. A cut after the newest
    checkpoint can't be told from a power cut. A session whose key file is missing or damaged, and not deleted on
    purpose, is damaged: nobody can read it.
    """
    from dataclasses import asdict

    from edge.keys import parse_public
    from edge.session.layout import find_session
    from edge.session.verify import EXIT_CODES

    trusted = [parse_public(path.read_text(), str(path)) for path in trust or []]
    verdict = _verdict(find_session(session), identity, dir, trusted)
    if json:
        emit_json("session_verify", {"identity": bool(identity), "trust": len(trusted)}, asdict(verdict))
    else:
        print(f"{verdict.session}: {verdict.state}")
        signer = "known here" if verdict.signer_known else "NOT known here: name the device's signing.pub with --trust"
        print(f"  signer {verdict.signer or 'none'}, {signer}")
        print(f"  {verdict.n_bytes} bytes, {verdict.n_signed_bytes} signed, {verdict.n_checkpoints} checkpoints")
        closed = "not decrypted" + ("" if identity else " (no --identity)")
        print(f"  key file {verdict.key}; chunks {'decrypted one by one' if verdict.chunks_checked else closed}")
        for problem in verdict.problems:
            print(f"  {problem}")
    raise typer.Exit(EXIT_CODES[verdict.state])


def _verdict(paths: SessionPaths, identity: Path | None, dir: str, trusted: Sequence[Ed25519PublicKey] = ()) -> Verdict:
    from edge.keys import KeyRing, keys_dir
    from edge.session.verify import verify

    known = trusted or list(KeyRing(keys_dir(dir)).signers().values())
    opened = _opened(paths, identity) if identity else ""
    return verify(paths, identity=opened, trusted=known, need_trust=bool(trusted))


def _opened(paths: SessionPaths, identity: Path) -> str:
    """Return the session's identity; empty where its key file can't give it, which is then part of the verdict."""
    from edge.session.keyfile import key_file
    from edge.session.layout import read_header
    from edge.session.read import KeyUnusableError, session_identity

    try:
        return session_identity(paths, identity)
    except KeyUnusableError:
        if key_file(paths, read_header(paths)).state == "there":
            raise  # it is whole: the identity is the wrong one
        return ""


def info(session: Session, identity: StudyIdentity = None, json: Json = False) -> None:
    """Say what a session holds. Without an identity: only what stands outside the encryption."""
    from edge.session.info import describe
    from edge.session.layout import find_session

    facts = describe(find_session(session), identity)
    if json:
        emit_json("session_info", {"identity": bool(identity)}, facts)
        return
    _print_facts(facts)


def recover(
    session: Session,
    identity: Identity,
    output: Annotated[Path, typer.Option("-o", help="Folder for the recovered MCAP files.")],
    dir: KeysDir = "",
) -> None:
    """Write everything that can still be read as plain MCAP, and say what is missing. The session isn't touched."""
    from edge.exports import recover
    from edge.files import private_files

    _audit_export(dir, session, "recover", output)
    with private_files():
        result = recover(session, identity, output)
    print(f"{result.path}: {result.n_events} events, {result.n_pictures} pictures; not encrypted, keep it safe")
    for gap in result.gaps:
        lost = f"chunks {gap.begin} to {gap.end - 1} are lost" if gap.end > gap.begin else "the tail is cut"
        print(f"  segment {gap.segment}: {lost}: {gap.reason}")


def export(
    session: Session,
    identity: Identity,
    output: Annotated[Path, typer.Option("-o", help="A .csv, .parquet, .ndjson or .mp4 file.")],
    kind: Annotated[
        str, typer.Option(help="What becomes rows (CSV, Parquet): a kind of event, or gaze (samples), or faces.")
    ] = "score",
    role: Annotated[str, typer.Option(help="Which camera's pictures (MP4).")] = "scene",
    dir: KeysDir = "",
) -> None:
    """Export events to CSV, Parquet or NDJSON, or the redacted pictures to MP4. The copy isn't encrypted.

    Of a session that isn't complete, what is whole is exported; that is said, and the exit code is that of `verify`.
    """
    from edge.exports import export
    from edge.files import private_files

    _audit_export(dir, session, "export", output)
    with private_files():
        done = export(session, identity, output, kind=kind, role=role)
    print(f"{output}: {done.n} {'pictures' if output.suffix == '.mp4' else 'rows'}; not encrypted, keep it safe")
    if done.left_out:
        print(f"  not in the table: {', '.join(done.left_out)} (--kind gaze and --kind faces; all is in .ndjson)")
    _exit_as_verify(session, identity, dir)


def anonymise(
    session: Session,
    identity: Identity,
    output: Annotated[Path, typer.Option("-o", help="A .ndjson file.")],
    dir: KeysDir = "",
) -> None:
    """Export events without names, device serials, sources and absolute dates, and print what was removed.

    Exit codes as those of `export`.
    """
    from edge.exports import anonymise
    from edge.files import private_files

    _audit_export(dir, session, "anonymise", output)
    with private_files():
        n, removed = anonymise(session, identity, output)
    print(f"{output}: {n} events; times stay, they count from the start of the device")
    for key, count in sorted(removed.items()):
        print(f"  removed {key}: {count}")
    _exit_as_verify(session, identity, dir)


def purge(
    recordings: Annotated[Path, typer.Argument(help="The recording folder (record.dir).")],
    days: Annotated[float, typer.Option(help="Sessions older than this lose their key.")],
    dir: KeysDir = "",
) -> None:
    """Apply a retention time now. The runtime does so whenever a session starts (record.retention_days)."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.retention import FLASH, purge

    ended = purge(recordings, KeyRing(keys_dir(dir)), days=days)
    print(f"{len(ended)} session(s) lost their key" + (f"; {FLASH}" if ended else ""))


def audit(dir: KeysDir = "", json: Json = False) -> None:
    """Check and print the audit log of this device. Exit 4 if its chain or a signature is broken."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import read_audit

    log = read_audit(KeyRing(keys_dir(dir)))
    if json:
        emit_json("audit", {}, {"lines": log.lines, "problem": log.problem})
    else:
        for line in log.lines:
            print(_audit_line(line))
        if log.problem:
            print(f"BROKEN: {log.problem}")
    raise typer.Exit(4 if log.problem else 0)


def _audit_line(line: dict[str, Any]) -> str:
    """Return a line of the audit log as number, time (UTC), what was done, and its particulars."""
    stamp = datetime.fromtimestamp(line["unix"], tz=timezone.utc)
    rest = {key: line[key] for key in line if key not in ("n", "unix", "kind", "prev", "sig")}
    shown = (f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in rest.items())
    return f"{line['n']:4} {stamp:%Y-%m-%dT%H:%M:%SZ} {line['kind']:<14} {' '.join(shown)}"


def _exit_as_verify(session: Path, identity: Path, dir: str) -> None:
    """Say on stderr what an export lacks of the session that was recorded, and exit as `verify` does."""
    from edge.session.layout import find_session
    from edge.session.verify import EXIT_CODES

    verdict = _verdict(find_session(session), identity, dir)
    if verdict.state != "complete":
        first, *others = verdict.problems
        more = f" (and {len(others)} more: `emogaze session verify`)" if others else ""
        print(f"the session is {verdict.state}: {first}{more}; what is whole was exported", file=sys.stderr)
    raise typer.Exit(EXIT_CODES[verdict.state])


def _audit_export(dir: str, session: Path, action: str, output: Path) -> None:
    """Note a copy before it is made: one that fails is noted too, and none is there that isn't."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit
    from edge.session.layout import find_session

    paths: SessionPaths = find_session(session)
    append_audit(KeyRing(keys_dir(dir)), "export", how=action, session=paths.name, to=str(output.resolve()))


def _print_facts(facts: dict[str, Any]) -> None:
    for key, value in facts.items():
        if isinstance(value, dict):
            print(f"{key}: " + ", ".join(f"{k} {v}" for k, v in value.items()))
        else:
            print(f"{key}: {value}")
