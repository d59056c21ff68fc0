#!/usr/bin/python3
"""An RTSP camera on loopback for trials and tests: H.264, with a running counter in each picture.

    /usr/bin/python3 host_tools/serve_rtsp.py --port 8554          rtsp://127.0.0.1:8554/camera

Run by the system's Python with Debian's gir1.2-gst-rtsp-server-1.0, python3-gi and the GStreamer plug-ins base, good
and ugly; it imports nothing else. Pictures are gray noise with the counter of `host_tools.serve_mjpeg` drawn in.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402 - the versions must be chosen first

BLOCK_PX, COUNTER_BITS = 16, 24


def picture(number: int, width: int, height: int, texture: bytes) -> bytes:
    """Return one I420 picture with `number` drawn into its top left corner."""
    row = b"".join(bytes([235 if number >> bit & 1 else 16]) * BLOCK_PX for bit in range(COUNTER_BITS))
    top = row + bytes([128]) * (width - len(row))
    start = number % 64 * width
    luma = top * BLOCK_PX + texture[start : start + width * (height - BLOCK_PX)]
    return luma + bytes([128]) * (width * height // 2)


class Factory(GstRtspServer.RTSPMediaFactory):  # type: ignore[misc]
    """One encoder shared by all clients, fed at `rate` pictures per second while somebody watches."""

    def __init__(self, width: int, height: int, rate: int) -> None:
        super().__init__()
        self.size, self.rate = (width, height), rate
        self.number = 0
        noise = random.Random(0)
        cell = [bytes([noise.randrange(60, 200)]) * 16 for _ in range(4096)]
        rows = [b"".join(cell[(y // 16 * 61 + x) % 4096] for x in range(width // 16)) for y in range(height + 64)]
        self.texture = b"".join(rows)
        self.set_shared(True)
        self.set_launch(
            f"( appsrc name=source is-live=true do-timestamp=true format=time block=false "
            f"caps=video/x-raw,format=I420,width={width},height={height},framerate={rate}/1 "
            f"! x264enc tune=zerolatency speed-preset=ultrafast bitrate=4000 key-int-max={rate} "
            f"! rtph264pay name=pay0 pt=96 )"
        )

    def do_configure(self, media: Any) -> None:
        GstRtspServer.RTSPMediaFactory.do_configure(self, media)
        source = media.get_element().get_by_name_recurse_up("source")
        timer = GLib.timeout_add(1000 // self.rate, self.push, source)
        media.connect("unprepared", lambda _: GLib.source_remove(timer))

    def push(self, source: Any) -> bool:
        self.number += 1
        source.emit("push-buffer", Gst.Buffer.new_wrapped(picture(self.number, *self.size, self.texture)))
        return True


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", default="8554")
    parser.add_argument("--size", default="640x480", help="width a multiple of 16, at least 384")
    parser.add_argument("--rate", type=int, default=30)
    options = parser.parse_args()
    Gst.init(None)
    width, height = (int(v) for v in options.size.split("x"))
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(options.port)
    server.get_mount_points().add_factory("/camera", Factory(width, height, options.rate))
    if not server.attach(None):
        raise SystemExit(f"port {options.port} is in use")
    print(f"rtsp://127.0.0.1:{server.get_bound_port()}/camera", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
