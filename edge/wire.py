"""What goes over ZeroMQ: one schema, one version; docs/wire.md describes it for readers in other languages.

A message has two frames, a picture three: the topic, a msgpack map, the JPEG. The map is the envelope

    {"schema": "emogaze.wire", "version": 1, "seq": 17, "dropped": 0, "t_ns": ..., "t_emit_ns": ..., "payload": {...}}

`seq` counts per topic from 0: a gap is what this subscriber lost. `dropped` counts what the device itself let go on
this topic before it was sent. Embeddings, raw gaze samples and settings stay on the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from edge.errors import DataError, KeyFileError
from edge.files import decode_document
from edge.records import Event

SCHEMA = "emogaze.wire"
VERSION = 1
PREVIEW = "preview"
#: What is published. A new kind of event stays on the device until it is listed here; raw gaze and EEG stay for good.
PUBLISHED = frozenset(
    [
        "session",
        "score",
        "fixation",
        "picture",
        "health",
        "deadline_missed",
        "stream",
        "mark",
        "precision",
        "private_gaze",
        "end",
    ]
)
#: Events whose payload holds more than may leave, and what of it leaves.
_SHOWN = {
    "score": ("frame_id", "width", "height", "gaze_px", "fixation", "emotion", "score"),
    "session": ("schema", "version", "emogaze", "advisory", "scene", "gaze", "models", "environment"),
}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Message:
    """A received message. `lost`: how many of this topic went missing just before it, for this subscriber."""

    topic: str
    seq: int
    dropped: int
    t_ns: int
    t_emit_ns: int
    payload: dict[str, Any]
    jpeg: bytes = b""
    lost: int = 0


def pack(topic: str, seq: int, dropped: int, event: Event, jpeg: bytes = b"") -> list[bytes]:
    """Return the frames of a message."""
    shown = _SHOWN.get(event.kind)
    payload = {key: event.payload.get(key) for key in shown} if shown else event.payload
    envelope = {
        "schema": SCHEMA,
        "version": VERSION,
        "seq": seq,
        "dropped": dropped,
        "t_ns": event.t_ns,
        "t_emit_ns": event.t_emit_ns,
        "payload": payload,
    }
    return [topic.encode(), _encode(envelope), *([jpeg] if jpeg else [])]


def unpack(frames: list[bytes]) -> Message:
    """Read a message.

    Raises
    ------
    DataError
        It is none of this schema and version.
    """
    try:
        topic, body, *rest = frames
        values = decode_document(body, _decode)
        if (values["schema"], values["version"]) != (SCHEMA, VERSION):
            raise DataError("message", "is of another version", expected=f"{SCHEMA} {VERSION}", got=str(values)[:60])
        fields = {key: values[key] for key in ("seq", "dropped", "t_ns", "t_emit_ns", "payload")}
        return Message(topic.decode(), **fields, jpeg=rest[0] if rest else b"")
    except (ValueError, KeyError, msgspec.DecodeError) as error:
        raise DataError("message", f"can't be read: {error!r}") from None


class Subscriber:
    """Receives what a device publishes, and counts what it lost.

    Parameters
    ----------
    address : str
        The device's ``sinks.publish``, such as ``tcp://127.0.0.1:5571``.
    topics : tuple of str
        Event kinds and ``preview``; none = all.
    keys : (str, str), optional
        The client's CURVE keys (`edge.keys.read_wire_pair` of its key file).
    device : str
        The device's public key, if `keys` are given.
    """

    def __init__(
        self, address: str, topics: tuple[str, ...] = (), *, keys: tuple[str, str] | None = None, device: str = ""
    ) -> None:
        import zmq

        from edge.curve import HandshakeMonitor, connect_as, connect_to

        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        for topic in topics or ("",):
            self._socket.subscribe(topic)
        if keys:
            connect_as(self._socket, keys, device)
        self._monitor = HandshakeMonitor(self._socket, address)
        connect_to(self._socket, address)
        self._address = address
        self._next: dict[str, int] = {}

    def receive(self, timeout_s: float) -> Message | None:
        """Return the next message, or None after `timeout_s`.

        Raises
        ------
        KeyFileError
            The device refuses this client.
        """
        if not self._socket.poll(int(timeout_s * 1000)):
            if self._monitor.failures:
                raise KeyFileError(
                    self._address,
                    "the device refuses this client",
                    got=", ".join(self._monitor.failures),
                    fix="`emogaze keys client NAME` on the device makes a key; give its wire.pub here",
                )
            return None
        message = unpack(self._socket.recv_multipart())
        lost = max(0, message.seq - self._next.get(message.topic, message.seq))
        self._next[message.topic] = message.seq + 1
        return replace(message, lost=lost)

    def close(self) -> None:
        self._monitor.close()
        self._socket.close()
        self._context.term()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
