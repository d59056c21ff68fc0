"""An LSL outlet in a process of its own, for tests: each sample's x counts up, so that it proves its origin.

    python lsl_outlet.py NAME SOURCE_ID KIND HZ

KIND is gaze (described), bare (no description), text or eeg. A line on standard input is a number, added to all later
stamps; `swap`, which sends the next two samples in the wrong order; or `look X Y`, which all later samples then hold.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from edge.gaze.inlet import load_lsl
from host_tools.simulate import CHANNELS, EEG_CHANNELS, describe, wait_until

DECLARED = {"frame": "scene_px", "units": "px", "geometry": "camera = {width_px = 640, height_px = 360, hfov_deg = 60}"}


def main(name: str, source_id: str, kind: str, hz: float) -> None:
    lsl = load_lsl("machine")
    n_channels = {"text": 1, "eeg": len(EEG_CHANNELS)}.get(kind, len(CHANNELS))
    text = lsl.cf_string if kind == "text" else lsl.cf_double64
    info = lsl.StreamInfo(name, {"text": "Markers", "eeg": "EEG"}.get(kind, "Gaze"), n_channels, hz, text, source_id)
    if kind == "gaze":
        describe(info, CHANNELS, DECLARED)
    outlet = lsl.StreamOutlet(info)
    shift, swaps, stop = [0.0], [0], threading.Event()
    place: list[float] = []

    def listen() -> None:
        for line in sys.stdin:
            if line.strip() == "swap":
                swaps[0] += 1
            elif line.startswith("look"):
                place[:] = [float(word) for word in line.split()[1:]]
            else:
                shift[0] += float(line)

    threading.Thread(target=listen, daemon=True).start()
    print("ready", flush=True)
    start_s, k, held = lsl.local_clock(), 0, None
    while not wait_until(start_s + k / hz, lsl.local_clock, stop):
        values = [f"text {k}"] if kind == "text" else [float(k), *[1.0] * (n_channels - 1)]
        if place:
            values[:2] = place
        sample = (values, start_s + k / hz + shift[0])
        if swaps[0] and held is None:
            held, swaps[0] = sample, swaps[0] - 1
        else:
            outlet.push_sample(*sample)
            if held is not None:
                outlet.push_sample(*held)
                held = None
        k += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
