"""Network cameras that send JPEG pictures over HTTP (MJPEG, ``multipart/x-mixed-replace``).

A thread receives without a pause and keeps the newest picture only, so that a slow consumer never sees an old one
with a fresh stamp; the stamp is taken when a picture's last byte has arrived, before it is decoded.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

import cv2
import numpy as np

from edge.capture._live import LiveSource, read_deadline_s
from edge.capture._pixels import to_bgr
from edge.capture.base import FrameInfo, FrameSource, Reader, public_name
from edge.clock import monotonic_ns
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError, StalledError
from edge.records import Image, Role

MAX_PICTURE_BYTES = 64 << 20
CONNECT_TIMEOUT_S = 1.0
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}


def matches(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return LiveSource("http", scene, role)


def open_reader(scene: SceneConfig) -> Reader:
    return HttpReader(scene)


class HttpReader(Reader):
    """One connection to an MJPEG camera; errors as Reader says."""

    def __init__(self, scene: SceneConfig) -> None:
        self._name = public_name(scene.source)
        self._deadline_s = read_deadline_s(scene)
        self._fresh = threading.Condition()
        self._newest: tuple[int, bytes] | None = None
        self._error: SourceError | None = None
        self._socket = self._connect(scene.source)
        try:
            self._socket.settimeout(scene.open_ms / 1000)
            stream, boundary = self._request(scene.source)
            threading.Thread(target=self._receive, args=(stream, boundary), daemon=True).start()
            self._first: tuple[int, Image] | None = self._wait(scene.open_ms / 1000, "opens, but delivers no picture")
        except SourceError:
            self.close()
            raise
        height, width = self._first[1].shape[:2]
        self.info = FrameInfo(self._name, width, height, scene.rate_hz, live=True)

    def read(self) -> tuple[int, Image]:
        item, self._first = self._first, None
        return item or self._wait(self._deadline_s, "delivers no picture any more")

    def close(self) -> None:
        with contextlib.suppress(OSError):  # wakes the receiving thread; a close alone would not
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _connect(self, source: str) -> socket.socket:
        import http.client

        url = urlsplit(source)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        try:
            connection = kind(url.hostname or "", url.port, timeout=CONNECT_TIMEOUT_S)
        except (ValueError, http.client.InvalidURL) as error:
            raise SourceError(self._name, f"is no address: {error}", expected="http://HOST:PORT/PATH") from None
        try:
            connection.connect()
        except TimeoutError:
            raise AbsentError(self._name, "doesn't answer") from None
        except OSError as error:
            raise AbsentError(self._name, f"can't be reached: {error.strerror or error}") from None
        assert connection.sock is not None
        return connection.sock

    def _request(self, source: str) -> tuple[BinaryIO, bytes]:
        """Ask for the stream; return it with its boundary."""
        import http.client

        url = urlsplit(source)
        lines = [
            f"GET {url.path or '/'}{'?' + url.query if url.query else ''} HTTP/1.1",
            f"Host: {url.netloc.rpartition('@')[2]}",
        ]
        if url.username:
            user = f"{unquote(url.username)}:{unquote(url.password or '')}"
            lines.append("Authorization: Basic " + base64.b64encode(user.encode()).decode())
        response = http.client.HTTPResponse(self._socket)
        try:
            self._socket.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
            response.begin()
        except TimeoutError:
            raise StalledError(self._name, "accepts the connection, but doesn't answer") from None
        except (OSError, http.client.HTTPException) as error:
            raise AbsentError(self._name, f"no answer: {error or type(error).__name__}") from None
        if response.status != http.client.OK:
            kind = AbsentError if response.status in _WORTH_ANOTHER_TRY else SourceError
            raise kind(self._name, f"the camera answers {response.status} {response.reason}")
        content, boundary = response.headers.get_content_type(), response.headers.get_param("boundary")
        if not content.startswith("multipart/") or not isinstance(boundary, str):
            raise SourceError(self._name, "is no MJPEG camera", expected="multipart/x-mixed-replace", got=content)
        return response, boundary.encode().removeprefix(b"--")

    def _receive(self, stream: BinaryIO, boundary: bytes) -> None:
        import http.client

        error: SourceError = AbsentError(self._name, "the camera ended the stream")
        try:
            for jpeg in read_parts(stream, boundary):
                with self._fresh:
                    self.skipped += self._newest is not None
                    self._newest = monotonic_ns(), jpeg
                    self._fresh.notify()
        except TimeoutError:
            error = StalledError(self._name, "delivers no picture any more")
        except (OSError, http.client.HTTPException) as problem:
            error = AbsentError(self._name, f"the connection broke: {problem or type(problem).__name__}")
        except ValueError as problem:
            error = SourceError(self._name, str(problem))
        with self._fresh:
            self._error = error
            self._fresh.notify()

    def _wait(self, timeout_s: float, problem: str) -> tuple[int, Image]:
        """Return the newest picture that wasn't given yet, decoded."""
        with self._fresh:
            self._fresh.wait_for(lambda: self._newest or self._error, timeout_s)
            if self._newest is None:
                raise self._error or StalledError(self._name, problem)
            (t_ns, jpeg), self._newest = self._newest, None
        image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise StalledError(self._name, "sends something that is no picture")
        return t_ns, to_bgr(image, self._name)


def read_parts(stream: BinaryIO, boundary: bytes) -> Iterator[bytes]:
    """Yield the bodies of a multipart stream, each as soon as it is whole, with or without a Content-Length.

    Raises
    ------
    ValueError
        A body larger than 64 MiB.
    """
    delimiter = b"--" + boundary
    inside = _skip_to(stream, delimiter)
    while inside:
        length = 0
        while (line := stream.readline(1000)).strip():
            match = re.match(rb"content-length:\s*(\d+)", line, re.IGNORECASE)
            length = int(match[1]) if match else length
        if length:
            _check_size(length)
            body = stream.read(length)
            if len(body) == length:
                yield body
            inside = _skip_to(stream, delimiter)
        else:
            body, inside = _read_to(stream, delimiter)
            if inside:
                yield body


def _skip_to(stream: BinaryIO, delimiter: bytes) -> bool:
    while line := stream.readline(1000):
        if line.startswith(delimiter):
            return True
    return False


def _read_to(stream: BinaryIO, delimiter: bytes) -> tuple[bytes, bool]:
    body = bytearray()
    while line := stream.readline(1 << 16):
        if line.startswith(delimiter):
            return bytes(body.removesuffix(b"\r\n")), True
        body += line
        _check_size(len(body))
    return bytes(body), False


def _check_size(length: int) -> None:
    if length > MAX_PICTURE_BYTES:
        raise ValueError(f"sends a picture of {length} bytes; expected at most {MAX_PICTURE_BYTES}")
