"""Events and preview pictures over ZeroMQ, for any number of subscribers; see `edge.wire` for the messages.

A slow subscriber loses messages of its own, beyond a bounded number that wait for it; it slows nobody down. Beyond this
machine the sockets speak CURVE and admit listed clients alone; previews then have a socket of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import cv2
import zmq

from edge import wire
from edge.clock import NS_PER_S, monotonic_ns
from edge.config import Config
from edge.curve import Gatekeeper
from edge.errors import ConfigError, KeyFileError, SinkError
from edge.keys import KeyRing, keys_dir
from edge.records import Event, RedactedFrame
from edge.sinks.base import Sink, require_redacted

_LOCAL = re.compile(r"tcp://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):(\d+|\*)|ipc://.+")
JPEG_QUALITY = 70
LINGER_MS = 200  #: exit doesn't hang on a subscriber that sleeps


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    return Publisher(config) if config.sinks.publish else None


class Publisher(Sink):
    """Publishes on `config.sinks.publish`, and previews on `config.sinks.publish_preview`.

    Raises
    ------
    ConfigError
        An address isn't on this machine, and there is no wire key or no client.
    SinkError
        The port is in use.
    """

    name = "publish"

    def __init__(self, config: Config) -> None:
        settings = self._settings = config.sinks
        self._next: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._next_preview_ns = 0
        self._context: zmq.Context[Any] = zmq.Context()
        self._gatekeeper: Gatekeeper | None = None
        addresses = [address for address in (settings.publish, settings.publish_preview) if address]
        try:
            if settings.curve or not all(map(_LOCAL.fullmatch, addresses)):
                self._gatekeeper = _gatekeeper(self._context, config)
            self._events = self._open("sinks.publish", settings.publish, "events")
            self._preview: zmq.Socket[Any] | None = None if self._gatekeeper else self._events
            if settings.publish_preview:
                self._preview = self._open("sinks.publish_preview", settings.publish_preview, "preview")
        except BaseException:
            self.close()
            raise
        self.address = self._events.getsockopt_string(zmq.LAST_ENDPOINT)
        self.preview_address = self._preview.getsockopt_string(zmq.LAST_ENDPOINT) if self._preview else ""

    @property
    def refused(self) -> dict[str, int]:
        """How many clients were refused, by reason."""
        return self._gatekeeper.refused if self._gatekeeper else {}

    def event(self, event: Event) -> None:
        if event.kind in wire.PUBLISHED:
            self._send(event.kind, event)

    def picture(self, frame: RedactedFrame) -> None:
        require_redacted(frame)
        if self._preview is None or not self._settings.preview_hz or frame.t_ns < self._next_preview_ns:
            return
        self._next_preview_ns = frame.t_ns + int(NS_PER_S / self._settings.preview_hz * 0.9)
        scale = min(1.0, self._settings.preview_px / max(frame.image.shape[:2]))
        size = max(1, round(frame.image.shape[1] * scale)), max(1, round(frame.image.shape[0] * scale))
        image = cv2.resize(frame.image, size, interpolation=cv2.INTER_AREA) if scale < 1 else frame.image
        jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
        payload = {
            "frame_id": frame.frame_id,
            "role": frame.role,
            "width": image.shape[1],
            "height": image.shape[0],
            "scale": scale,
            "withheld": frame.withheld,
            "reason": frame.reason,
        }
        self._send(wire.PREVIEW, Event(0, frame.t_ns, monotonic_ns(), wire.PREVIEW, payload), jpeg)

    def close(self) -> None:
        if self._gatekeeper:
            self._gatekeeper.close()
        if not self._context.closed:
            self._context.destroy(linger=LINGER_MS)

    def _open(self, setting: str, address: str, right: str) -> zmq.Socket[Any]:
        socket = self._context.socket(zmq.PUB)
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        socket.setsockopt(zmq.SNDHWM, self._settings.publish_hwm)
        if self._gatekeeper:
            self._gatekeeper.secure(socket, right)
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            problem = f"can't listen on {address}: {zmq.strerror(error.errno or 0)}"
            raise SinkError(setting, problem, fix="is another runtime running?") from None
        return socket

    def _send(self, topic: str, event: Event, jpeg: bytes = b"") -> None:
        socket = self._preview if jpeg and self._preview else self._events
        frames = wire.pack(topic, self._next[topic], self._dropped[topic], event, jpeg)
        self._next[topic] += 1
        try:
            socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            self._dropped[topic] += 1


def _gatekeeper(context: zmq.Context[Any], config: Config) -> Gatekeeper:
    try:
        return Gatekeeper(context, KeyRing(keys_dir(config.keys.dir)))
    except KeyFileError as error:
        raise ConfigError(
            "sinks.publish",
            "would publish without keys",
            expected="tcp://127.0.0.1:PORT or ipc://PATH without sinks.curve, or keys",
            got=config.sinks.publish,
            fix=str(error),
        ) from None
