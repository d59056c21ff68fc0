"""The live path without hardware: a gaze recording as an LSL outlet, with EEG and markers beside it if wanted.

Gaze is played on LSL's clock at the times of its file, over and over; what the file declares (frame, units, geometry,
that it is simulated) stands in the stream's description, so that the receiver needs no settings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.geometry import inline_toml
from edge.gaze.inlet import load_lsl
from edge.gaze.sources import open_gaze
from edge.records import RawGaze

CHANNELS = ("x", "y", "valid", "confidence", "pupil_mm", "openness")
EEG_HZ = 128.0
EEG_CHANNELS = ("AF3", "F7", "F3", "FC5", "T7", "P7", "O1", "O2", "P8", "T8", "FC6", "F4", "F8", "AF4")


class GazeOutlet:
    """An LSL outlet that plays a gaze recording.

    Parameters
    ----------
    gaze : GazeConfig
        The recording; it must declare frame and units, in the file or here.
    name, source_id : str
        The stream's.
    loop_s : float
        Begin anew after so long; 0: when the recording ends.

    Raises
    ------
    SourceError
        The recording can't be used.
    """

    def __init__(self, gaze: GazeConfig, name: str, source_id: str, *, loop_s: float = 0.0) -> None:
        with open_gaze(gaze) as source:
            if source.info.live:
                raise SourceError(gaze.source, "is a live stream already")
            self._samples = list(source)
            info, geometry = source.info, source.geometry
        self._lsl = load_lsl("machine")
        step_s = (self._samples[-1].t_ns - self._samples[0].t_ns) / max(1, len(self._samples) - 1) / 1e9
        self._loop_s = loop_s or (self._samples[-1].t_ns / 1e9 + step_s)
        declared = {"frame": info.frame, "units": info.units, "origin": info.origin, "note": info.note}
        declared |= {
            "simulated": "yes" if info.simulated else "no",
            "geometry": inline_toml(geometry) if geometry else "",
        }
        rate = info.hz_declared or (1 / step_s if step_s > 0 else 0.0)
        stream = self._lsl.StreamInfo(name, "Gaze", len(CHANNELS), rate, self._lsl.cf_double64, source_id)
        describe(stream, CHANNELS, declared)
        self._outlet = self._lsl.StreamOutlet(stream)

    def play(self, stop: threading.Event, start_s: float) -> None:
        """Send samples at their times until `stop`, the first loop from LSL time `start_s`."""
        for turn in count():
            begin_s = start_s + turn * self._loop_s
            for raw in self._samples:
                if raw.t_ns / 1e9 >= self._loop_s:
                    break
                due_s = begin_s + raw.t_ns / 1e9
                if wait_until(due_s, self._lsl.local_clock, stop):
                    return
                self._outlet.push_sample(values(raw), due_s)


class SideStreams:
    """A simulated EEG (14 channels of noise at 128 Hz) and a marker each second, named as simulated."""

    def __init__(self, *, eeg: bool, markers: bool, seed: int = 0) -> None:
        self._lsl = load_lsl("machine")
        self._rng = np.random.default_rng(seed)
        self._eeg = self._markers = None
        if eeg:
            info = self._lsl.StreamInfo(
                "SimulatedEEG", "EEG", len(EEG_CHANNELS), EEG_HZ, self._lsl.cf_float32, "sim-eeg"
            )
            describe(info, EEG_CHANNELS, {"simulated": "yes"})
            self._eeg = self._lsl.StreamOutlet(info)
        if markers:
            info = self._lsl.StreamInfo("SimulatedMarkers", "Markers", 1, 0, self._lsl.cf_string, "sim-markers")
            self._markers = self._lsl.StreamOutlet(info)

    def play(self, stop: threading.Event, start_s: float) -> None:
        """Send until `stop`."""
        for k in count():
            due_s = start_s + k / EEG_HZ
            if wait_until(due_s, self._lsl.local_clock, stop):
                return
            if self._eeg:
                self._eeg.push_sample(self._rng.normal(0, 10, len(EEG_CHANNELS)).tolist(), due_s)
            if self._markers and k % int(EEG_HZ) == 0:
                self._markers.push_sample([f"simulated second {k // int(EEG_HZ)}"], due_s)


def describe(info: Any, labels: tuple[str, ...], declared: dict[str, str]) -> None:
    """Write channel labels and what this project's outlets declare into a stream's description."""
    node = info.desc().append_child("emogaze")
    for key, value in declared.items():
        node.append_child_value(key, value)
    channels = info.desc().append_child("channels")
    for label in labels:
        channels.append_child("channel").append_child_value("label", label)


def values(raw: RawGaze) -> list[float]:
    """Return a sample as the outlet's channels."""
    return [raw.x, raw.y, float(raw.valid), raw.confidence, raw.pupil_mm, raw.openness]


def wait_until(due_s: float, clock: Callable[[], float], stop: threading.Event) -> bool:
    """Sleep until `clock` shows `due_s`; return whether `stop` was set."""
    left = due_s - clock()
    if left > 0.002:
        stop.wait(left - 0.001)
    while not stop.is_set() and clock() < due_s:
        time.sleep(0.0002)
    return stop.is_set()
