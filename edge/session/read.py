"""Reading a session back: from the study's identity to events and pictures, past damage where there is some."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edge.errors import RecordingError, SourceError
from edge.events import check_header, read_log
from edge.records import Event
from edge.session import SOURCE_PREFIX
from edge.session.age import CHUNK, AgeFile, HeaderError
from edge.session.keyfile import key_file, withdrawal_reason
from edge.session.layout import SessionPaths, find_session, read_header
from edge.session.segment import PADDING_OPCODE, RECORD_HEAD, Picture
from edge.session.verify import require_identity_matches

IDENTITY_LINE = "AGE-SECRET-KEY-1"
MAX_RECORD = 1 << 30
#: Record kinds that may stand at a settled boundary: message chunk, its index, metadata, data end, our padding.
BOUNDARY_OPCODES = {0x06, 0x07, 0x0C, 0x0F, PADDING_OPCODE}
_decode_event = msgspec.json.Decoder(Event).decode


class KeyUnusableError(RecordingError):
    """The key file of a session is gone, damaged, or not encrypted to the identities at hand."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of a segment that couldn't be read: chunk numbers, `end` excluded."""

    segment: int
    begin: int
    end: int
    reason: str


Item = Event | Picture | Gap


def session_identity(paths: SessionPaths, identity_file: Path) -> str:
    """Return the session's identity, opened with the study identity in `identity_file` (or being in it already).

    Raises
    ------
    RecordingError
        No identity in the file, the wrong one, or the session's key is gone (withdrawn); the last two are
        KeyUnusableError.
    """
    import pyrage

    try:
        lines = identity_file.read_text(encoding="utf-8").split()
    except OSError as error:
        raise RecordingError(str(identity_file), f"can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        lines = []
    secrets = [line for line in lines if line.startswith(IDENTITY_LINE)]
    try:
        identities = [pyrage.x25519.Identity.from_str(line) for line in secrets]
    except pyrage.IdentityError:
        identities = []
    if not identities:
        raise RecordingError(str(identity_file), "holds no age identity", expected=f"a line {IDENTITY_LINE}...")
    header = read_header(paths)
    recipient = header.get("recipient")
    own = [s for s, i in zip(secrets, identities, strict=True) if str(i.to_public()) == recipient]
    if own:
        return own[0]
    if paths.tombstone.exists():
        raise KeyUnusableError(paths.name, f"its key was deleted: {withdrawal_reason(paths)}")
    try:
        sealed = paths.key.read_bytes()
        return pyrage.decrypt(sealed, identities).decode().strip()
    except OSError as error:
        raise KeyUnusableError(str(paths.key), f"can't be read: {error.strerror}", fix="restore the key file") from None
    except (pyrage.DecryptError, UnicodeDecodeError):
        state = key_file(paths, header).state
        if state == "damaged":
            raise KeyUnusableError(str(paths.key), "is damaged", fix="restore the key file from a copy") from None
        doubt = ", or is damaged" if state == "replaced" else ""
        raise KeyUnusableError(
            str(paths.key), f"isn't encrypted to the identity in {identity_file}{doubt}", fix="use a study identity"
        ) from None


def read_events(path: Path, identity_file: Path) -> Iterator[Event]:
    """Yield the events of a session in the order in which they were recorded; a torn tail just ends.

    Parameters
    ----------
    path : Path
        The session's folder or a file in it.
    identity_file : Path
        File with a study identity (`AGE-SECRET-KEY-1...`).

    Raises
    ------
    RecordingError
        It can't be opened, or something in its middle can't be read (`emogaze session recover` goes past that).
    """
    for item in read_items(path, identity_file):
        if isinstance(item, Event):
            yield item


def open_log(path: Path, identity_file: Path | None) -> Iterator[Event]:
    """Yield the events of a log in the clear (a file) or of a session (a folder).

    Raises
    ------
    DataError, RecordingError
        It can't be read, or a session is given without an identity.
    """
    if not path.exists():
        raise RecordingError(str(path), "no such event log or session")
    if path.is_file() and path.suffix == ".ndjson":
        yield from read_log(path)
        return
    find_session(path)
    if identity_file is None:
        raise RecordingError(str(path), "is encrypted", fix="name a study identity with --identity")
    events = read_events(path, identity_file)
    first = next(events, None)
    if first is None:
        raise RecordingError(str(path), "holds no event")
    check_header(first, str(path))
    yield first
    yield from events


def parse_source(text: str) -> tuple[Path, Path]:
    """Return folder and identity file of a source text ``session:FOLDER?identity=FILE``.

    The identity may come from EMOGAZE_IDENTITY instead.

    Raises
    ------
    SourceError
        No identity is named.
    """
    folder, _, identity = text.removeprefix(SOURCE_PREFIX).partition("?identity=")
    identity = identity or os.environ.get("EMOGAZE_IDENTITY", "")
    if not identity:
        raise SourceError(
            text, "is encrypted", fix=f"write {SOURCE_PREFIX}FOLDER?identity=FILE, or set EMOGAZE_IDENTITY"
        )
    return Path(folder), Path(identity)


def origin_ns(items: Iterable[Item]) -> int:
    """Return the time of a session's first frame: where the clock of a session as a source starts.

    Raises
    ------
    RecordingError
        There is no frame.
    """
    for item in items:
        if isinstance(item, Picture) or (isinstance(item, Event) and item.kind == "score"):
            return item.t_ns
    raise RecordingError("session", "holds no frame", fix="`emogaze session info` lists what it holds")


def read_items(path: Path, identity_file: Path, *, tolerant: bool = False) -> Iterator[Item]:
    """Yield events and pictures in recorded order; `tolerant` goes on past damage and yields a Gap for it."""
    paths = find_session(path)
    header = read_header(paths)
    identity = session_identity(paths, identity_file)
    require_identity_matches(header, identity)
    segments = paths.segments()
    for number, segment in segments.items():
        for item in _segment_items(number, segment, identity):
            torn_tail = isinstance(item, Gap) and number == max(segments) and item.end == item.begin
            if isinstance(item, Gap) and not tolerant:
                if torn_tail:
                    break
                raise RecordingError(
                    segment.name,
                    f"can't be read from chunk {item.begin} on: {item.reason}",
                    fix="`emogaze session recover` keeps what can be read",
                )
            yield item


def read_metadata(path: Path, identity_file: Path) -> dict[str, dict[str, str]]:
    """Return the metadata records of a session's first segment."""
    from mcap.records import Metadata

    paths = find_session(path)
    identity = session_identity(paths, identity_file)
    found: dict[str, dict[str, str]] = {}
    first = next(iter(paths.segments().values()), None)
    if first is None:
        return found
    for record in _records(_Plaintext(AgeFile(first, identity), 0, 0), magic=True):
        if isinstance(record, Metadata):
            found[record.name] = dict(record.metadata)
        elif type(record).__name__ not in ("Header",):
            break
    return found


def _segment_items(number: int, path: Path, identity: str) -> Iterator[Item]:
    """Yield what a segment holds, with a Gap (`begin` == `end` at a torn tail) wherever reading failed."""
    try:
        file = AgeFile(path, identity)
    except HeaderError as error:
        yield Gap(number, 0, 0 if error.cut else file_chunks(path), error.problem)
        return
    source = _Plaintext(file, 0, 0)
    magic = True
    while True:
        try:
            for record in _records(source, magic=magic):
                item = _to_item(record)
                if item is not None:
                    yield item
            return
        except _CutError as error:
            failed = source.chunk
            start = _resync(file, failed + 1)
            if start is None:
                tail = failed >= file.count() - 1
                yield Gap(number, failed, failed if tail else file.count(), str(error))
                return
            yield Gap(number, failed, start, str(error))
            source, magic = _Plaintext(file, start, 1), False


def file_chunks(path: Path) -> int:
    """Return about how many chunks a file has whose header can't be read."""
    return -(-path.stat().st_size // CHUNK)


class _CutError(Exception):
    """The plaintext ends or stops making sense."""


class _Plaintext:
    """A file-like view of a run of good chunks; `read` gives all that is asked for or raises."""

    def __init__(self, file: AgeFile, start: int, skip: int) -> None:
        self.chunk = start
        self._chunks = file.chunks(start)
        self._buffer = bytearray()
        self._skip = skip

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise _CutError("the file ends here")
            self.chunk = chunk.index
            if chunk.plaintext is None:
                raise _CutError("the chunk is cut or altered")
            self._buffer += chunk.plaintext[self._skip :]
            self._skip = 0
        block = bytes(self._buffer[:size])
        del self._buffer[:size]
        return block


def _records(source: _Plaintext, *, magic: bool) -> Iterator[Any]:
    """Yield MCAP records up to the footer; _CutError where they end before it."""
    from mcap.exceptions import McapError
    from mcap.stream_reader import StreamReader

    reader = StreamReader(source, skip_magic=not magic, validate_crcs=False, record_size_limit=MAX_RECORD)  # type: ignore[arg-type]
    try:
        yield from reader.records
    except (McapError, struct.error, ValueError, RuntimeError, MemoryError) as error:
        raise _CutError(f"the MCAP stream breaks: {error}") from error


def _resync(file: AgeFile, start: int) -> int | None:
    """Return the first chunk from `start` on that begins, after its first byte, with a chain of records, or None."""
    for chunk in file.chunks(start):
        text = chunk.plaintext
        if text is None or len(text) < RECORD_HEAD + 1:
            continue
        opcode, length = struct.unpack_from("<BQ", text, 1)
        if text[0] == 0 and opcode in BOUNDARY_OPCODES and length < MAX_RECORD:
            return chunk.index
    return None


def _to_item(record: Any) -> Event | Picture | None:
    from mcap.records import Message

    if not isinstance(record, Message):
        return None
    # A message says itself what it is: its channel's record may lie in a chunk that was lost.
    if record.data.startswith(b'{"timestamp"'):
        body = json.loads(record.data)
        jpeg = base64.b64decode(body["data"])
        return Picture(
            body["number"], body["t_ns"], body["frame_id"], body["source"], jpeg, body["withheld"], body["reason"]
        )
    return _decode_event(record.data)
