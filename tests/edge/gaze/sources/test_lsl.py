"""Live gaze over LSL: outlets in processes of their own, killed, paused, restarted, doubled."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from edge.clock import monotonic_ns
from edge.config import AuxConfig, FixationConfig, GazeConfig
from edge.errors import AbsentError, EmoGazeError, SourceError
from edge.gaze.auxiliary import AuxStreams
from edge.gaze.fixations import FixationDetector
from edge.gaze.inlet import Query, silent_after_ms
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import open_gaze
from edge.gaze.sources.base import GazeSource, StreamNote
from edge.records import RawGaze

OUTLET = Path(__file__).parents[3] / "helpers" / "lsl_outlet.py"
LIMIT_S = 30  # what is awaited takes far less; a busy machine must not fail a test


class Outlet:
    """An outlet process."""

    def __init__(self, name: str, source_id: str = "", kind: str = "gaze", hz: float = 200.0) -> None:
        command = [sys.executable, str(OUTLET), name, source_id, kind, str(hz)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def outlet(name: str, *arguments: str, **options: float) -> Iterator[Outlet]:
    running = Outlet(name, *arguments, **options)  # type: ignore[arg-type]
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGCONT)
        running.kill()


class Listener:
    """Reads a source until something is so, keeping all it saw."""

    def __init__(self, source: GazeSource) -> None:
        self.source = source
        self.samples: list[RawGaze] = []
        self.notes: list[StreamNote] = []

    def until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < give_up, f"in vain; notes: {self.notes}"
            self.samples += self.source.read_until(0)
            self.notes += self.source.notes()
            time.sleep(0.01)

    def until_more(self, n: int = 20) -> None:
        wanted = len(self.samples) + n
        self.until(lambda: len(self.samples) >= wanted)

    def until_note(self, kind: str, n: int = 1) -> StreamNote:
        self.until(lambda: sum(note.kind == kind for note in self.notes) >= n)
        return [note for note in self.notes if note.kind == kind][-1]


@pytest.fixture
def name() -> str:
    """A name that no other stream on this machine has."""
    return f"test-{uuid.uuid4().hex[:12]}"


def test_gaze_comes_whole_in_order_and_on_the_hosts_clock(name: str) -> None:
    config = GazeConfig(source=f"lsl:{name}")
    with outlet(name, "tracker-1"), open_gaze(config) as source:
        assert (source.info.live, source.info.frame, source.info.hz_declared) == (True, "scene_px", 200)
        mapping = open_mapping(source, config)
        listener = Listener(source)
        listener.until_more(100)
        samples = listener.samples
        assert all(b.x - a.x == 1 for a, b in pairwise(samples))
        assert [s.seq for s in samples] == list(range(len(samples)))
        assert all(4_000_000 < b.t_ns - a.t_ns < 6_000_000 for a, b in pairwise(samples))
        assert -1_000_000 < monotonic_ns() - samples[-1].t_ns < 5_000_000_000
        assert mapping(samples[0]).x_px == samples[0].x
        assert [note.kind for note in listener.notes] == ["time_correction"]


@pytest.mark.parametrize("source_id", ["tracker-1", ""], ids=["source id", "no source id"])
def test_a_killed_outlet_is_missed_and_its_successor_found(name: str, source_id: str) -> None:
    with outlet(name, source_id) as first, open_gaze(GazeConfig(source=f"lsl:{name}", silent_ms=200)) as source:
        listener = Listener(source)
        listener.until_more()
        first.kill()
        killed_ns = monotonic_ns()
        noticed = listener.until_note("silent")
        assert noticed.detail["for_ms"] >= 200
        assert noticed.t_ns - killed_ns < 5_000_000_000
        before = len(listener.samples)
        with outlet(name, source_id):
            listener.until_more()
            listener.until_note("back")
            assert listener.samples[before].x < listener.samples[before - 1].x + 1000  # counts from 0 again
            assert all(b.t_ns > a.t_ns for a, b in pairwise(listener.samples))
        assert any(note.kind == "no_source_id" for note in listener.notes) == (source_id == "")


def test_a_paused_outlet_is_silence_and_goes_on(name: str) -> None:
    with outlet(name, "tracker-1") as running, open_gaze(GazeConfig(source=f"lsl:{name}")) as source:
        listener = Listener(source)
        listener.until_more()
        running.process.send_signal(signal.SIGSTOP)
        listener.until_note("silent")
        running.process.send_signal(signal.SIGCONT)
        listener.until_note("back")
        listener.until_more()
        assert all(b.x > a.x for a, b in pairwise(listener.samples))


def test_samples_without_a_time_are_left_out_and_said_once(name: str) -> None:
    with outlet(name, "tracker-1") as running, open_gaze(GazeConfig(source=f"lsl:{name}")) as source:
        listener = Listener(source)
        listener.until_more()
        running.say("nan")
        listener.until_note("no_time")
        running.kill()
        with outlet(name, "tracker-1"):
            listener.until_more()
        assert sum(note.kind == "no_time" for note in listener.notes) == 1


def test_two_of_one_name_are_refused_and_can_be_pinned(name: str) -> None:
    with outlet(name, "left"), outlet(name, "right"):
        with pytest.raises(
            SourceError, match=r"2 streams are called so.* uid .*source_id (left|right).*source_id (left|right).*pin"
        ):
            open_gaze(GazeConfig(source=f"lsl:{name}"))
        with open_gaze(GazeConfig(source=f"lsl:name={name},source_id=right")) as source:
            Listener(source).until_more()


def test_jumps_and_swaps_of_the_clock_lose_nothing_and_segment(name: str) -> None:
    with outlet(name, "tracker-1") as running, open_gaze(GazeConfig(source=f"lsl:{name}")) as source:
        listener = Listener(source)
        listener.until_more(60)
        for line in ("15", "-30", "swap"):
            running.say(line)
            listener.until_more(60)
        assert sorted(s.x for s in listener.samples) == [
            listener.samples[0].x + i for i in range(len(listener.samples))
        ]
        detector = FixationDetector(FixationConfig(), 200)
        mapping = open_mapping(source, GazeConfig())
        still = [mapping(RawGaze(s.seq, s.t_ns, 320, 180)) for s in listener.samples]
        fixations = [f for sample in still for f in detector.add(sample)] + detector.flush()
        assert len(fixations) == 3
        assert len(detector.clock_jumps) == 1
        assert all(f.end_ns - f.start_ns < 10_000_000_000 for f in fixations)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("text", "carries text"), ("bare", "doesn't say which channels are x and y")],
    ids=["text", "no description"],
)
def test_streams_that_are_no_gaze(name: str, kind: str, words: str) -> None:
    with outlet(name, "s", kind), pytest.raises(EmoGazeError, match=words):
        open_gaze(GazeConfig(source=f"lsl:{name}"))


def test_a_bare_stream_can_be_declared(name: str) -> None:
    geometry = "camera = {width_px = 640, height_px = 360, hfov_deg = 60}"
    config = GazeConfig(source=f"lsl:{name}", columns={"x": "0", "y": "1"}, frame="scene_px", geometry=geometry)
    with outlet(name, "s", "bare"), open_gaze(config) as source:
        assert source.info.frame == "scene_px"
        Listener(source).until_more()


def test_absent_streams_are_named_with_those_that_are_there(name: str) -> None:
    with outlet(name, "s"), pytest.raises(AbsentError, match=rf"no such stream.*{name} \(Gaze\)"):
        open_gaze(GazeConfig(source="lsl:nobody-is-called-so"))


@pytest.mark.parametrize("text", ["lsl:", "lsl:colour=red", "lsl:name="], ids=["empty", "unknown key", "no value"])
def test_queries_that_mean_nothing(text: str) -> None:
    with pytest.raises(SourceError, match="names no stream"):
        Query.parse(text)


def test_auxiliary_streams_keep_channels_texts_and_time(name: str) -> None:
    streams = (f"lsl:name={name},type=EEG", f"lsl:name={name}-markers")
    with (
        outlet(name, "eeg", "eeg", hz=128.0),
        outlet(f"{name}-markers", "markers", "text", hz=10.0),
        AuxStreams(AuxConfig(streams=streams), "machine") as aux,
    ):
        assert aux.rates_hz == {name: 128, f"{name}-markers": 10}
        samples = []
        give_up = time.monotonic() + LIMIT_S
        while not {name, f"{name}-markers"} <= {s.stream for s in samples} or len(samples) < 100:
            assert time.monotonic() < give_up
            samples += aux.read()
            time.sleep(0.02)
    eeg = [s for s in samples if s.stream == name]
    texts = [s for s in samples if s.stream != name]
    assert all(s.channels.shape == (14,) and not s.text for s in eeg)
    assert [b.channels[0] - a.channels[0] for a, b in pairwise(eeg)] == [1] * (len(eeg) - 1)
    assert all(s.text.startswith("text ") and not s.channels.size for s in texts)
    assert abs(monotonic_ns() - samples[-1].t_ns) < 10_000_000_000


@pytest.mark.parametrize(
    ("hz", "ms"),
    [
        pytest.param(128, 500, id="eeg"),
        pytest.param(1, 3000, id="a-heart-rate"),
        pytest.param(0, 500, id="no-declared-rate"),
    ],
)
def test_a_slow_stream_is_silent_later(hz: float, ms: int) -> None:
    assert silent_after_ms(500, hz) == ms
