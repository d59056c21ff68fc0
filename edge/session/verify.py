"""What can be said of a session: whole, cut, altered or shortened, and how far it is proven.

`complete`  it was closed, and every byte is what was signed.
`torn`      only the tail fails: the device was killed, lost power or ran out of disk. Bytes after the newest checkpoint
            aren't signed; somebody who cuts there leaves what a power cut leaves, and no reader can tell the two apart.
`damaged`   a signature or the chain is bad or gone, signed bytes were altered, a good chunk follows a bad one, or the
            key file, without which nobody can read anything, is missing or not whole. One that was deleted on purpose
            leaves a tombstone: what remains is then judged as ever, and the verdict's `key` says `deleted`.
`shortened` a segment holds fewer bytes than the newest checkpoint says, which no power cut does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edge.errors import RecordingError
from edge.keys import fingerprint, parse_public
from edge.session.age import AgeFile, HeaderError
from edge.session.chain import Chain, read_chain
from edge.session.keyfile import KeyFile, KeyState, key_file
from edge.session.layout import SessionPaths, read_header

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

State = Literal["complete", "torn", "damaged", "shortened"]
EXIT_CODES: dict[State, int] = {"complete": 0, "torn": 3, "damaged": 4, "shortened": 5}
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `verify`. `problems` has one line per thing found; `bad_chunks` lists (segment, chunk)."""

    state: State
    session: str
    signer: str
    signer_known: bool
    n_segments: int
    n_bytes: int
    n_signed_bytes: int
    n_checkpoints: int
    chunks_checked: bool
    key: KeyState
    problems: list[str] = field(default_factory=list)
    bad_chunks: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Findings:
    """What is collected on the way; the worst decides."""

    damaged: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad_chunks: list[tuple[int, int]] = field(default_factory=list)

    def state(self) -> State:
        if self.damaged:
            return "damaged"
        if self.shortened:
            return "shortened"
        return "torn" if self.torn else "complete"


def verify(
    paths: SessionPaths, *, identity: str = "", trusted: Sequence[Ed25519PublicKey] = (), need_trust: bool = False
) -> Verdict:
    """Check a session against its signed chain, and chunk by chunk where the session's identity is given.

    Parameters
    ----------
    paths : SessionPaths
        The session.
    identity : str
        The session's own identity (`edge.session.read.session_identity`). Without it, signed bytes are proven by the
        chain, and the bytes after the newest checkpoint aren't checked.
    trusted : sequence of Ed25519PublicKey
        Keys that devices sign with. A session of another signer isn't proven by its own word.
    need_trust : bool
        Count a signer outside `trusted` as damage.

    Raises
    ------
    RecordingError
        A newer version wrote it, or the identity belongs to another session.
    """
    found = _Findings()
    chain = read_chain(paths.chain)
    header = read_header(paths, chain)
    signer, known = _signer(header, trusted)
    if header and need_trust and not known:
        found.damaged.append(f"signed by {signer}, whom nobody here trusts")
    if chain.problem:
        found.damaged.append(f"{paths.chain.name}: {chain.problem}")
    elif chain.cut:
        found.torn.append(f"{paths.chain.name}: the last line is cut")
    segments = paths.segments()
    if segments and not chain.lines and not chain.problem:
        # The first line is on disk before a segment is begun: no power cut leaves this.
        found.damaged.append(f"{paths.chain.name}: no line is left of it, nothing of this session is signed")
    key = key_file(paths, header, trusted)
    _judge_key(key, found, opened=bool(identity))
    signed = _check_spans(chain, segments, found)
    _check_end(chain, segments, signed, found)
    if identity:
        for number, path in segments.items():
            _check_chunks(number, path, identity, signed.get(number, 0), found)
    return Verdict(
        state=found.state(),
        session=paths.name,
        signer=signer,
        signer_known=known,
        n_segments=len(segments),
        n_bytes=sum(path.stat().st_size for path in segments.values()),
        n_signed_bytes=sum(signed.values()),
        n_checkpoints=sum("size" in line for line in chain.lines),
        chunks_checked=bool(identity),
        key=key.state,
        problems=found.damaged + found.shortened + found.torn + found.notes,
        bad_chunks=found.bad_chunks,
    )


def _judge_key(key: KeyFile, found: _Findings, *, opened: bool) -> None:
    if key.state in ("missing", "damaged") or (key.state == "replaced" and not opened):
        found.damaged.append(key.problem)
    elif key.state == "replaced":
        found.notes.append("the key file isn't the one that was recorded; the identity given opens the session")
    elif key.problem:
        found.notes.append(key.problem)


def _signer(header: dict[str, Any], trusted: Sequence[Ed25519PublicKey]) -> tuple[str, bool]:
    if not header:
        return "", False
    name = fingerprint(parse_public(str(header["signer"]), "session").public_bytes_raw())
    return name, name in {fingerprint(key.public_bytes_raw()) for key in trusted}


def _check_spans(chain: Chain, segments: dict[int, Path], found: _Findings) -> dict[int, int]:
    """Compare every signed span with its bytes; return the signed size of each segment."""
    signed: dict[int, int] = {}
    for line in chain.lines:
        if "size" not in line:
            continue
        number, size = int(line["segment"]), int(line["size"])
        begin, signed[number] = signed.get(number, 0), size
        path = segments.get(number)
        if path is None:
            if begin == 0:
                found.shortened.append(f"segment {number} is missing")
        elif path.stat().st_size < size:
            found.shortened.append(f"{path.name}: {path.stat().st_size} bytes, {size} are signed")
        elif _digest(path, begin, size) != line["span"]:
            found.damaged.append(f"{path.name}: bytes {begin} to {size} aren't those that were signed")
    return signed


def _digest(path: Path, begin: int, end: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(begin)
        while begin < end and (block := file.read(min(BLOCK, end - begin))):
            digest.update(block)
            begin += len(block)
    return digest.hexdigest()


def _check_end(chain: Chain, segments: dict[int, Path], signed: dict[int, int], found: _Findings) -> None:
    """Say how the session ends, and what lies beyond its signed end."""
    last = chain.lines[-1] if chain.lines else {}
    for name in ("dropped_events", "dropped_pictures"):
        if name in last:
            found.notes.append(
                f"{last[name]} {name.removeprefix('dropped_')} came faster than the disk and were dropped"
            )
    if "stopped" in last:
        found.torn.append(f"recording stopped: {last['stopped']}")
    newest = max(signed, default=0)
    for number, path in segments.items():
        extra = path.stat().st_size - signed.get(number, 0)
        ended = last.get("kind") == "close" or number < newest
        if extra > 0 and ended:
            found.damaged.append(f"{path.name}: {extra} bytes were added after it was closed")
        elif extra > 0:
            found.torn.append(f"{path.name}: {extra} bytes after the newest checkpoint aren't signed")
    if last.get("kind") != "close" and not any("recording stopped" in text for text in found.torn):
        found.torn.append("it was never closed")


def _check_chunks(number: int, path: Path, identity: str, signed: int, found: _Findings) -> None:
    """Decrypt every chunk. A bad one before a good one is damage; bad ones at the end are a torn tail."""
    try:
        file = AgeFile(path, identity)
    except HeaderError as error:
        if not error.cut:
            found.damaged.append(str(error))
        elif signed == 0:
            found.torn.append(str(error))
        return  # a cut within signed bytes is known already
    bad: list[int] = []
    last_good, final = -1, False
    for chunk in file.chunks():
        if chunk.plaintext is None:
            bad.append(chunk.index)
        else:
            last_good, final = chunk.index, chunk.final
    inside = [index for index in bad if index < last_good]
    if inside:
        found.damaged.append(f"{path.name}: {len(inside)} bad chunk(s) before a good one, the first is {inside[0]}")
    elif bad:
        found.torn.append(f"{path.name}: the last {len(bad)} chunk(s) are cut or bad")
    elif not final:
        found.torn.append(f"{path.name}: ends without age's last chunk")
    found.bad_chunks += [(number, index) for index in bad]


def require_identity_matches(header: dict[str, Any], identity: str) -> None:
    """Raise RecordingError if `identity` isn't that of the session."""
    from pyrage import x25519

    recipient = str(x25519.Identity.from_str(identity.strip()).to_public())
    if header and header.get("recipient") != recipient:
        raise RecordingError(
            "identity", "belongs to another session", expected=str(header.get("recipient")), got=recipient
        )
