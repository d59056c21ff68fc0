"""The process of `edge.sinks.lsl`: samples from standard input go into an LSL outlet until it closes."""

from __future__ import annotations

import os
import platform
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress

import pylsl

from edge import __version__
from edge.sinks.lsl import CHANNELS, NOT_KEPT, ROW, STREAM


def main() -> None:
    """Serve the outlet."""
    info = pylsl.StreamInfo(
        STREAM, "Attention", len(CHANNELS), pylsl.IRREGULAR_RATE, pylsl.cf_double64, f"emogaze-{platform.node()}"
    )
    described = info.desc().append_child("channels")
    for name in CHANNELS:
        described.append_child("channel").append_child_value("label", name).append_child_value("unit", "1")
    info.desc().append_child_value("manufacturer", "EmoGaze Edge").append_child_value("version", __version__)
    outlet = pylsl.StreamOutlet(info)
    try:
        keep_on_this_machine()
    except OSError:
        sys.exit(NOT_KEPT)
    while len(row := sys.stdin.buffer.read(ROW.size)) == ROW.size:
        t_s, *values = ROW.unpack(row)
        outlet.push_sample(values, t_s)


def keep_on_this_machine() -> None:
    """Let every network socket of this process hear the loopback device alone.

    LSL's scope limits how far streams are looked for; its servers listen on all addresses whatever it is, so that a
    host that knows the port (or names this one as a peer) would be served.

    Raises
    ------
    OSError
        The kernel doesn't allow it (Linux before 5.7 wants CAP_NET_RAW) or doesn't know it.
    """
    if not hasattr(socket, "SO_BINDTODEVICE"):
        raise OSError("sockets can't be bound to a device here")
    for found in _sockets():
        with found:
            if found.family in (socket.AF_INET, socket.AF_INET6):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")


def _sockets() -> Iterator[socket.socket]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of this very listing
            if stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
                yield socket.socket(fileno=os.dup(int(name)))


if __name__ == "__main__":
    main()
