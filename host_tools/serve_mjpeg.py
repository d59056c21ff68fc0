"""An MJPEG camera on loopback, from a clip or with a counter in each picture: the live path without hardware.

    python -m host_tools.serve_mjpeg --clip CLIP --port 8080

Pictures are encoded once, before the first is served, so that serving costs next to nothing. Each client gets every
picture at its time, or the newest when it is slow.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np

from edge.errors import SourceError

BOUNDARY = "picture"
COUNTER_BITS, BLOCK_PX = 24, 16


def draw_counter(image: np.ndarray, value: int) -> None:
    """Draw `value` into the top left corner of `image`: 24 blocks of 16 px, black 0 and white 1, low bit first."""
    for bit in range(COUNTER_BITS):
        x = bit * BLOCK_PX
        image[:BLOCK_PX, x : x + BLOCK_PX] = 255 if value >> bit & 1 else 0


def read_counter(image: np.ndarray) -> int:
    """Read what `draw_counter` drew, also after lossy compression."""
    blocks = (image[BLOCK_PX // 2, bit * BLOCK_PX + BLOCK_PX // 2] for bit in range(COUNTER_BITS))
    return sum(1 << bit for bit, block in enumerate(blocks) if float(np.mean(block)) > 127)


def counter_pictures(n: int, width: int, height: int, *, gray: bool = False, quality: int = 80) -> list[bytes]:
    """Return `n` JPEG pictures, noise that differs from one to the next, with their number drawn in."""
    rng = np.random.default_rng(0)
    noise = cv2.resize(rng.integers(60, 200, (height // 8 + 8, width // 8, 3), np.uint8), (width, height + 64))
    pictures = []
    for k in range(n):
        image = np.ascontiguousarray(noise[k % 64 : k % 64 + height])
        draw_counter(image, k)
        pictures.append(_encode(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if gray else image, quality))
    return pictures


def clip_pictures(clip: Path, seconds: float, quality: int = 85) -> tuple[list[bytes], float]:
    """Return the pictures of the first `seconds` of a clip as JPEG, and its rate in Hz."""
    capture = cv2.VideoCapture(str(clip))
    if not capture.isOpened():
        raise SourceError(str(clip), "can't be read as a clip")
    rate_hz = capture.get(cv2.CAP_PROP_FPS) or 30.0
    pictures: list[bytes] = []
    while len(pictures) < seconds * rate_hz:
        ok, image = capture.read()
        if not ok:
            break
        pictures.append(_encode(image, quality))
    capture.release()
    return pictures, rate_hz


def _encode(image: np.ndarray, quality: int) -> bytes:
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


class MjpegServer(ThreadingHTTPServer):
    """Serves `pictures` at `rate_hz`, over and over, to any number of clients, on 127.0.0.1 alone.

    Parameters
    ----------
    pictures : list of bytes
        JPEG pictures. An empty list makes a camera that opens and never delivers.
    rate_hz : float
        Pictures per second.
    port : int
        0 = any free one; `server_port` tells.
    freeze_after : int
        From that picture on the same one is sent for ever, as an unplugged sensor does; 0 = never.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, pictures: list[bytes], rate_hz: float, port: int = 0, freeze_after: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            fix = "choose another --port; 0 is any free one"
            raise SourceError(f"port {port}", f"can't be served on: {error.strerror}", fix=fix) from None
        self.pictures, self.rate_hz, self.freeze_after = pictures, rate_hz, freeze_after
        self._tick = threading.Condition()
        self._count = 0
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def next_picture(self, after: int) -> tuple[int, bytes]:
        """Wait for a picture with a number above `after`; return the newest."""
        with self._tick:
            self._tick.wait_for(lambda: self._count > after and self.pictures)
            number = min(self._count, self.freeze_after) if self.freeze_after else self._count
            return self._count, self.pictures[(number - 1) % len(self.pictures)]

    def _run(self) -> None:
        start = time.monotonic()
        while True:
            due = start + (self._count + 1) / self.rate_hz
            time.sleep(max(0.0, due - time.monotonic()))
            with self._tick:
                late = int((time.monotonic() - due) * self.rate_hz)
                self._count += 1 + max(0, late)  # after a pause go on with the picture of now, as a camera does
                self._tick.notify_all()


class _Handler(BaseHTTPRequestHandler):
    server: MjpegServer

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"multipart/x-mixed-replace; boundary={BOUNDARY}")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        number = 0
        try:
            while True:
                number, jpeg = self.server.next_picture(number)
                head = f"--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                self.wfile.write(head.encode() + jpeg + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def log_message(self, *_: object) -> None:
        """Say nothing per request."""


def main() -> None:
    """Serve a clip, or counter pictures, until stopped."""
    parser = argparse.ArgumentParser(prog="python -m host_tools.serve_mjpeg", description=__doc__)
    parser.add_argument("--clip", type=Path, help="clip to serve; without it, pictures with a counter")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the clip")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="pictures per second; 0 = the clip's, else 30")
    parser.add_argument("--size", default="1280x720", help="of counter pictures")
    parser.add_argument("--count", type=int, default=60, help="counter pictures before they repeat; 0 = never deliver")
    parser.add_argument("--gray", action="store_true", help="counter pictures in gray, as a near-infrared camera's")
    parser.add_argument("--freeze-after", type=int, default=0, help="send the same picture from this one on")
    options = parser.parse_args()
    if options.clip:
        pictures, rate_hz = clip_pictures(options.clip, options.seconds)
    else:
        width, height = (int(v) for v in options.size.split("x"))
        pictures, rate_hz = counter_pictures(options.count, width, height, gray=options.gray), 30.0
    server = MjpegServer(pictures, options.rate or rate_hz, options.port, options.freeze_after)
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
