"""Glasses over the network, scripted: no device is here. Clocks, worn flags, loss and return."""

from __future__ import annotations

import queue
import time
from types import SimpleNamespace

import numpy as np
import pytest

from edge.clock import monotonic_ns
from edge.config import GazeConfig
from edge.errors import AbsentError, ConfigError, SourceError
from edge.gaze.mapping import open_mapping
from edge.gaze.sources.pupil_labs import NOMINAL, PupilLabsGaze, camera_of, connect, matches

CONFIG = GazeConfig(source="pupil-labs:phone")
PHONE_AHEAD_S = 5.0


class ScriptedGlasses:
    """A phone whose clock runs five seconds ahead; gives what is put into its queue."""

    def __init__(self) -> None:
        self.data: queue.Queue = queue.Queue()
        self.closed = False

    def look(self, x: float, worn: bool = True, **more: float) -> None:
        stamp = time.time() + PHONE_AHEAD_S
        self.data.put(SimpleNamespace(x=x, y=600.0, worn=worn, timestamp_unix_seconds=stamp, **more))

    def receive_gaze_datum(self, timeout_seconds: float | None = None) -> object:
        try:
            return self.data.get(timeout=timeout_seconds)
        except queue.Empty:
            return None

    def estimate_time_offset(self) -> object:
        return SimpleNamespace(time_offset_ms=SimpleNamespace(median=-1000 * PHONE_AHEAD_S))

    def get_calibration(self) -> object:
        matrix = np.array([[900.0, 0, 810], [0, 901, 590], [0, 0, 1]])
        return SimpleNamespace(scene_camera_matrix=matrix, scene_distortion_coefficients=np.zeros(8))

    def close(self) -> None:
        self.closed = True


def await_samples(source: PupilLabsGaze, n: int) -> list:
    samples: list = []
    give_up = time.monotonic() + 20
    while len(samples) < n:
        assert time.monotonic() < give_up
        samples += source.read_until(0)
        time.sleep(0.005)
    return samples


def test_two_monocular_gazes_are_invalid_and_noted_once() -> None:
    glasses = ScriptedGlasses()
    eye = SimpleNamespace(x=1.0, y=2.0)
    with PupilLabsGaze(CONFIG, lambda _: glasses) as source:
        for _ in range(2):
            glasses.data.put(SimpleNamespace(left=eye, right=eye, worn=True, timestamp_unix_seconds=time.time()))
        assert [sample.valid for sample in await_samples(source, 2)] == [False, False]
        assert [note.kind for note in source.notes()].count("monocular") == 1


def test_samples_come_on_the_hosts_clock_with_the_cameras_intrinsics() -> None:
    glasses = ScriptedGlasses()
    with PupilLabsGaze(CONFIG, lambda _: glasses) as source:
        before_ns = monotonic_ns()
        glasses.look(810.0, pupil_diameter_left=3.0, pupil_diameter_right=4.0)
        glasses.look(100.0, worn=False)
        first, second = await_samples(source, 2)
        assert before_ns - 50_000_000 < first.t_ns < monotonic_ns() + 50_000_000  # the five seconds are gone
        assert (first.pupil_mm, first.valid, second.valid) == (3.5, True, False)
        assert (first.seq, second.seq) == (0, 1)
        mapping = open_mapping(source, CONFIG)
        assert not mapping.nominal
        assert mapping(first).x_deg == pytest.approx(0, abs=1e-9)
        assert [note.kind for note in source.notes()] == ["time_correction"]
    assert glasses.closed


def test_a_silent_phone_is_opened_again() -> None:
    opened: list[ScriptedGlasses] = []
    now = [monotonic_ns()]

    def again(_: str) -> ScriptedGlasses:
        if len(opened) == 1 and now[0] < 10**18:
            now[0] = 2 * 10**18
            raise AbsentError("phone", "is rebooting")
        opened.append(ScriptedGlasses())
        return opened[-1]

    with PupilLabsGaze(CONFIG, again, clock=lambda: now[0]) as source:
        now[0] += 4_000_000_000
        give_up = time.monotonic() + 20
        while len(opened) < 2:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        opened[1].look(1.0)
        await_samples(source, 1)
        assert opened[0].closed
        assert [note.kind for note in source.notes()] == ["time_correction", "silent", "time_correction", "back"]


def test_without_intrinsics_nominal_ones_are_flagged() -> None:
    assert camera_of(None) is NOMINAL


def test_names_and_a_missing_client() -> None:
    assert matches("pupil-labs:192.168.1.5")
    assert not matches("lsl:pupil")
    with pytest.raises((SourceError, ConfigError), match=r"needs the real-time client|names no device"):
        connect("pupil-labs:")
