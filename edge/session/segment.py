"""One segment: an MCAP file inside an age file, written so that what was taken is on disk soon after.

age encrypts chunks of 64 KiB, and a chunk leaves when the first byte of the next one arrives. `settle` therefore
ends the MCAP chunk in progress and adds a private record of zeros that reaches one byte past the boundary; readers skip
it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.clock import NS_PER_S
from edge.events import encode
from edge.records import Event
from edge.session.age import CHUNK
from edge.session.disk import Disk

PADDING_OPCODE = 0x80
RECORD_HEAD = 9
MCAP_CHUNK = 256 * 1024  # what one lost chunk costs at most, together with `settle`
EVENT_SCHEMA = {
    "type": "object",
    "title": "emogaze.Event",
    "description": "One line of the event log. Times are nanoseconds of the host's monotonic clock.",
    "properties": {
        "seq": {"type": "integer"},
        "t_ns": {"type": "integer", "description": "when it happened"},
        "t_emit_ns": {"type": "integer", "description": "when it left the pipeline"},
        "kind": {"type": "string"},
        "payload": {"type": "object"},
    },
    "required": ["seq", "t_ns", "t_emit_ns", "kind", "payload"],
}
#: The fields of Foxglove's CompressedImage, which viewers know, and ours.
PICTURE_SCHEMA = {
    "type": "object",
    "title": "foxglove.CompressedImage",
    "description": "A picture in which every face outside the fixation is covered.",
    "properties": {
        "timestamp": {
            "type": "object",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string", "description": "role of the camera"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "format": {"type": "string"},
        "number": {"type": "integer", "description": "frame_id of the frame; a gap is a drop"},
        "t_ns": {"type": "integer"},
        "source": {"type": "string"},
        "withheld": {"type": "boolean", "description": "the whole picture was covered"},
        "reason": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture as it is recorded: compressed (JPEG)."""

    frame_id: int
    t_ns: int
    role: str
    source: str
    jpeg: bytes
    withheld: bool
    reason: str


class SegmentFile:
    """What age writes to: each block is appended, hashed and synced before `write` returns."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk = disk
        self._handle = disk.create(path)
        self._span = hashlib.sha256()
        self.size = 0

    def write(self, block: bytes) -> int:
        """Append a block; it is on disk when this returns."""
        self._disk.append(self._handle, block)
        self._disk.sync(self._handle)
        self._span.update(block)
        self.size += len(block)
        return len(block)

    def take_span(self) -> str:
        """Return the SHA-256 of the bytes since the last call, in hex."""
        digest, self._span = self._span.hexdigest(), hashlib.sha256()
        return digest

    def cut_back(self) -> None:
        """Drop a block of which only a part could be written."""
        self._disk.truncate(self._handle, self.size)

    def close(self) -> None:
        self._disk.close(self._handle)


class Plaintext:
    """What lies between the MCAP writer and age: bytes that wait, and how many there were in all."""

    def __init__(self) -> None:
        self.pending = bytearray()
        self.total = 0

    def write(self, block: bytes) -> int:
        self.pending += block
        self.total += len(block)
        return len(block)

    def tell(self) -> int:
        return self.total

    def flush(self) -> None:
        """Nothing to do: age pulls."""

    def take(self, size: int) -> bytes:
        """Return and forget up to `size` bytes."""
        block = bytes(self.pending[:size])
        del self.pending[:size]
        return block


class SegmentBody:
    """The MCAP file of one segment, written to a stream (`write`, `tell`, `flush`)."""

    def __init__(self, stream: Any) -> None:
        from mcap.writer import Writer

        self._stream = stream
        self._mcap = Writer(stream, chunk_size=MCAP_CHUNK)
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._unsettled = False

    def start(self, metadata: dict[str, dict[str, str]]) -> None:
        """Write the MCAP header and metadata records (name to text values)."""
        from edge import __version__

        self._mcap.start(profile="", library=f"emogaze {__version__}")
        for name, values in metadata.items():
            self._mcap.add_metadata(name, values)
        self._unsettled = True

    def add_event(self, event: Event) -> None:
        """Add one event on the topic of its kind."""
        channel = self._channel(f"/{event.kind}", EVENT_SCHEMA)
        self._add(channel, event.t_ns, event.t_emit_ns, encode(event), event.seq)

    def add_picture(self, picture: Picture) -> None:
        """Add one picture on the topic of its camera's role."""
        body = {
            "timestamp": dict(zip(("sec", "nsec"), divmod(picture.t_ns, NS_PER_S), strict=True)),
            "frame_id": picture.role,
            "data": base64.b64encode(picture.jpeg).decode(),
            "format": "jpeg",
            "number": picture.frame_id,
            "t_ns": picture.t_ns,
            "source": picture.source,
            "withheld": picture.withheld,
            "reason": picture.reason,
        }
        channel = self._channel(f"/redacted/{picture.role}", PICTURE_SCHEMA)
        content = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        self._add(channel, picture.t_ns, picture.t_ns, content, picture.frame_id)

    def settle(self) -> None:
        """End the MCAP chunk in progress and pad, so that everything added so far leaves as whole age chunks."""
        if not self._unsettled:
            return
        self._mcap.flush()
        gap = -self._stream.tell() % CHUNK + 1
        if gap < RECORD_HEAD:
            gap += CHUNK
        self._stream.write(struct.pack("<BQ", PADDING_OPCODE, gap - RECORD_HEAD) + bytes(gap - RECORD_HEAD))
        self._unsettled = False

    def finish(self) -> None:
        """Write the MCAP summary and footer."""
        self._mcap.finish()

    def _add(self, channel: int, t_ns: int, t_emit_ns: int, content: bytes, seq: int) -> None:
        self._mcap.add_message(channel, max(t_ns, 0), content, max(t_emit_ns, 0), seq & 0xFFFFFFFF)
        self._unsettled = True

    def _channel(self, topic: str, schema: dict[str, Any]) -> int:
        if topic not in self._channels:
            title = schema["title"]
            if title not in self._schemas:
                self._schemas[title] = self._mcap.register_schema(title, "jsonschema", json.dumps(schema).encode())
            self._channels[topic] = self._mcap.register_channel(topic, "json", self._schemas[title])
        return self._channels[topic]


class SegmentWriter:
    """Encrypts one segment into a file.

    `encrypt` pulls: age asks for plaintext, and whenever none is left, `fill` is called to add some to `body` or to
    `finish`. So an empty read, which age takes for the end, can only happen after `finish`.

    Parameters
    ----------
    path : Path
        The new file.
    recipient : str
        The session's age recipient.
    fill : callable
        Called when all that was added before is encrypted, and its whole chunks are on disk.
    disk : Disk
        What writes and syncs.
    """

    def __init__(self, path: Path, recipient: str, fill: Callable[[], None], *, disk: Disk) -> None:
        self.file = SegmentFile(path, disk)
        self.finished = False
        self.error: BaseException | None = None  #: what was raised while age ran, which reports it without its errno
        self._recipient, self._fill = recipient, fill
        self._plain = Plaintext()
        self.body = SegmentBody(self._plain)

    def encrypt(self) -> None:
        """Encrypt until `finish`; returns when the last byte is on disk."""
        from pyrage import encrypt_io, x25519

        encrypt_io(self, self, [x25519.Recipient.from_str(self._recipient)])

    def finish(self) -> None:
        """End the segment; `encrypt` then returns."""
        self.body.finish()
        self.finished = True

    def read(self, size: int) -> bytes:
        """Give age plaintext; called by it."""
        try:
            while not self._plain.pending and not self.finished:
                self._fill()
        except BaseException as error:
            self.error = error
            raise
        return self._plain.take(size)

    def write(self, block: bytes) -> int:
        """Take ciphertext from age; called by it."""
        try:
            return self.file.write(block)
        except BaseException as error:
            self.error = error
            raise

    def flush(self) -> None:
        """Nothing waits; called by age."""
