"""Events and preview pictures over ZeroMQ, for any number of subscribers; see `edge.wire` for the messages.

A slow subscriber loses messages of its own, beyond a bounded number that wait for it; it slows nobody down. Until there
are keys the address must be on this machine.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import cv2
import zmq

from edge import wire
from edge.clock import NS_PER_S, monotonic_ns
from edge.config import Config, SinksConfig
from edge.errors import ConfigError, SinkError
from edge.records import Event, RedactedFrame
from edge.sinks.base import Sink, require_redacted

_LOCAL = re.compile(r"tcp://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):(\d+|\*)|ipc://.+")
JPEG_QUALITY = 70


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    return Publisher(config.sinks) if config.sinks.publish else None


class Publisher(Sink):
    """Publishes on `settings.publish`.

    Raises
    ------
    ConfigError
        The address isn't on this machine, or none.
    SinkError
        The port is in use.
    """

    name = "publish"

    def __init__(self, settings: SinksConfig) -> None:
        if not _LOCAL.fullmatch(settings.publish):
            raise ConfigError(
                "sinks.publish",
                "would publish beyond this machine without keys",
                expected="tcp://127.0.0.1:PORT or ipc://PATH",
                got=settings.publish,
            )
        self._settings = settings
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 200)  # ms; exit doesn't hang on a subscriber that sleeps
        self._socket.setsockopt(zmq.SNDHWM, settings.publish_hwm)
        try:
            self._socket.bind(settings.publish)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise SinkError(
                "sinks.publish",
                f"can't listen on {settings.publish}: {error.strerror}",
                fix="is another runtime running?",
            ) from None
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._next: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._next_preview_ns = 0

    def event(self, event: Event) -> None:
        self._send(event.kind, event)

    def picture(self, frame: RedactedFrame) -> None:
        require_redacted(frame)
        if not self._settings.preview_hz or frame.t_ns < self._next_preview_ns:
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
        if not self._context.closed:
            self._socket.close()
            self._context.term()

    def _send(self, topic: str, event: Event, jpeg: bytes = b"") -> None:
        frames = wire.pack(topic, self._next[topic], self._dropped[topic], event, jpeg)
        self._next[topic] += 1
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            self._dropped[topic] += 1
