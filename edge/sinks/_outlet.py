"""The process of `edge.sinks.lsl`: samples from standard input go into an LSL outlet until it closes."""

from __future__ import annotations

import platform
import sys

import pylsl

from edge import __version__
from edge.sinks.lsl import CHANNELS, ROW, STREAM


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
    while len(row := sys.stdin.buffer.read(ROW.size)) == ROW.size:
        t_s, *values = ROW.unpack(row)
        outlet.push_sample(values, t_s)


if __name__ == "__main__":
    main()
