"""Power cuts and kills: whatever the moment, all but the last second is there, and nothing looks tampered with."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from edge.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from edge.config import RecordConfig
from edge.errors import RecordingError
from edge.session.disk import Disk
from edge.session.layout import SessionPaths, find_session, sessions
from edge.session.read import read_events, session_identity
from edge.session.verify import verify
from edge.session.writer import SessionKeys, SessionWriter
from edge.sinks.recorder import Recorder

ROOT = Path(__file__).parents[3]
LOSS_S = 1.0


@dataclass
class LoggingDisk(Disk):
    """Does what Disk does, and notes each operation with its time."""

    log: list[tuple[str, Path, bytes, int]] = field(default_factory=list)
    paths: dict[int, Path] = field(default_factory=dict)

    def _note(self, what: str, path: Path, content: bytes = b"") -> None:
        self.log.append((what, path, content, monotonic_ns()))

    def create(self, path: Path) -> int:
        handle = super().create(path)
        self.paths[handle] = path
        self._note("create", path)
        return handle

    def append(self, handle: int, content: bytes) -> None:
        super().append(handle, content)
        self._note("append", self.paths[handle], content)

    def sync(self, handle: int) -> None:
        super().sync(handle)
        self._note("sync", self.paths[handle])

    def sync_dir(self, folder: Path) -> None:
        super().sync_dir(folder)
        self._note("sync_dir", folder)


def after_power_cut(log: list[tuple[str, Path, bytes, int]], keep: float) -> dict[Path, bytes]:
    """Return what the disk holds after `log`: synced bytes under synced names, and a share of each unsynced tail."""
    written: dict[Path, bytes] = {}
    synced: dict[Path, bytes] = {}
    named: set[Path] = set()
    for what, path, content, _ in log:
        if what == "create":
            written[path] = synced[path] = b""
        elif what == "append":
            written[path] += content
        elif what == "sync":
            synced[path] = written[path]
        else:
            named |= {p for p in written if p.parent == path}
    if keep:
        named |= set(written)
    tails = {path: written[path][len(synced[path]) :] for path in named}
    return {path: synced[path] + tails[path][: round(keep * len(tails[path]))] for path in named}


@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0], ids=["unsynced-lost", "half-written", "all-written"])
def test_every_prefix_of_the_writes_is_a_readable_session(study, tmp_path, keep):
    disk = LoggingDisk()
    settings = RecordConfig(dir=str(study.recordings), flush_ms=100, checkpoint_s=0.3, segment_mb=0.4, min_free_mb=0)
    keys = SessionKeys(study.ring.signing(), tuple(study.ring.recipients().values()))
    recorder = Recorder(SessionWriter(settings, keys, {"consent": "0" * 16}, {}, disk=disk), 10_000)
    given: list[tuple[int, int]] = []
    for event in study.events(150, 800):
        recorder.event(event)
        given.append((event.seq, monotonic_ns()))
        time.sleep(0.01)
    recorder.close()
    assert len([what for what, path, *_ in disk.log if what == "create" and path.suffix == ".age"]) >= 3
    steps = [disk.log[0][3], *(t for *_, t in disk.log)]
    busy = [b - a for a, b in pairwise(steps)]
    stall = max(max(busy) - settings.flush_ms * NS_PER_MS, 0)  # what the machine kept a write waiting
    restored = tmp_path / "restored" / recorder.writer.paths.name
    for stop in range(len(disk.log) + 1):
        files = after_power_cut(disk.log[:stop], keep)
        if not any(path.suffix == ".chain" for path in files):
            continue
        restored.mkdir(parents=True, exist_ok=True)
        for old in restored.iterdir():
            old.unlink()
        for path, content in files.items():
            (restored / path.name).write_bytes(content)
        paths = SessionPaths(restored)
        verdict = verify(paths, identity=session_identity(paths, study.identity))
        last = paths.chain.read_bytes().split(b"\n")[-2:]
        closed = last[-1] == b"" and b'"kind":"close"' in last[0]
        assert verdict.state == ("complete" if closed else "torn"), verdict
        at = disk.log[stop][3] if stop < len(disk.log) else monotonic_ns()
        due = [seq for seq, t in given if t < at - LOSS_S * NS_PER_S - 4 * stall]
        got = [event.seq for event in read_events(restored, study.identity)]
        assert got == list(range(len(got)))
        assert len(got) >= len(due)


CHILD = """
import os, sys, threading, time
from pathlib import Path
from edge.config import from_dict
from edge.records import Event
from edge.sinks.recorder import open_sink

keys, folder, consent = sys.argv[1:]
record = {"dir": folder, "consent": consent, "min_free_mb": 0, "checkpoint_s": 1, "segment_mb": 0.5}
config = from_dict({"record": record, "keys": {"dir": keys}}, thing="child")
sink = open_sink(config, {})

def probe():
    # How long this machine keeps a thread and a small synced write waiting at the moment.
    handle = os.open(Path(folder) / "probe", os.O_WRONLY | os.O_CREAT)
    while True:
        begun = time.monotonic()
        time.sleep(0.02)
        os.pwrite(handle, b"x", 0)
        os.fdatasync(handle)
        os.write(1, f"probe {time.monotonic() - begun}\\n".encode())  # one write: whole lines from two threads

threading.Thread(target=probe, daemon=True).start()
for seq in range(100000):
    sink.event(Event(seq, seq, seq, "score", {"fcc": seq / 7, "text": "x" * 200}))
    os.write(1, f"{seq} {time.monotonic()}\\n".encode())
    time.sleep(0.005)
"""


def start_child(study, folder: Path, consent: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(study.ring.folder), str(folder), str(consent)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def kill_and_check(study, child: subprocess.Popen[str], folder: Path, delay_s: float) -> int:
    assert child.stdout is not None
    while not child.stdout.readline().startswith("0 "):
        pass
    time.sleep(delay_s)
    child.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    lines = [line.split() for line in child.stdout.read().splitlines()]
    child.wait()
    child.stdout.close()
    pairs = [(line[0], float(line[1])) for line in lines if len(line) == 2]
    stall = max((value for name, value in pairs if name == "probe"), default=LOSS_S)
    due = [int(name) for name, t in pairs if name != "probe" and t < killed - LOSS_S - 4 * stall]
    (paths,) = sessions(folder)
    verdict = verify(paths, identity=session_identity(paths, study.identity))
    assert verdict.state == "torn", verdict
    got = [event.seq for event in read_events(paths.folder, study.identity)]
    assert got == list(range(len(got)))
    assert len(got) >= len(due)
    return len(got)


def kill_many(study, n: int, at_once: int, seed: int) -> list[int]:
    moments = random.Random(seed)
    consent = study.consent()
    kept = []
    for first in range(0, n, at_once):
        folders = [study.root / f"kill-{i}" for i in range(first, min(first + at_once, n))]
        children = [start_child(study, folder, consent) for folder in folders]
        for child, folder in zip(children, folders, strict=True):
            kept.append(kill_and_check(study, child, folder, moments.uniform(0, 1.2 if at_once > 1 else 2.5)))
    return kept


def test_killed_at_random_moments(study):
    assert max(kill_many(study, n=10, at_once=5, seed=1)) > 0


@pytest.mark.long
def test_killed_two_hundred_times(study):
    assert max(kill_many(study, n=200, at_once=4, seed=2)) > 100


def test_what_is_left_after_a_kill_is_read_by_age_and_mcap(study, tmp_path):
    import io

    from mcap.records import Message
    from mcap.stream_reader import StreamReader

    consent, folder = study.consent(), study.root / "kill"
    kept = kill_and_check(study, start_child(study, folder, consent), folder, 1.3)
    (paths,) = sessions(folder)
    own = tmp_path / "own.txt"
    own.write_text(session_identity(paths, study.identity))
    seen = 0
    for segment in paths.segments().values():
        done = subprocess.run(["age", "-d", "-i", own, segment], capture_output=True, check=False)
        reader = StreamReader(io.BytesIO(done.stdout))
        try:
            for record in reader.records:
                seen += isinstance(record, Message)
        except Exception as error:  # noqa: BLE001 - the library ends a cut file with one of several errors
            assert done.returncode != 0, error
    assert seen == kept


class FullDisk(Disk):
    """A disk with room for so many bytes; the write that doesn't fit leaves a part of itself, as a real one does.

    `greedy`: what is cut back is taken by somebody else at once.
    """

    def __init__(self, room: int, *, greedy: bool) -> None:
        self.room, self.greedy = room, greedy

    def append(self, handle: int, content: bytes) -> None:
        if len(content) > self.room:
            os.write(handle, content[: self.room])
            self.room = 0
            raise OSError(28, "No space left on device")
        self.room -= len(content)
        super().append(handle, content)

    def truncate(self, handle: int, size: int) -> None:
        self.room += 0 if self.greedy else os.fstat(handle).st_size - size
        super().truncate(handle, size)


@pytest.mark.parametrize(
    ("greedy", "problem"), [(False, "No space left"), (True, "never closed")], ids=["last-line", "no-last-line"]
)
def test_a_full_disk_stops_cleanly_and_says_so(study, greedy, problem):
    settings = RecordConfig(dir=str(study.recordings), flush_ms=50, min_free_mb=0)
    keys = SessionKeys(study.ring.signing(), tuple(study.ring.recipients().values()))
    recorder = Recorder(SessionWriter(settings, keys, {}, {}, disk=FullDisk(230_000, greedy=greedy)), 10_000)

    def give_until_it_stops() -> None:
        for event in study.events(3000, 1000) * 20:
            recorder.event(event)
            time.sleep(0.001)

    with pytest.raises(RecordingError, match="recording stopped: No space left on device"):
        give_until_it_stops()
    recorder.close()
    paths = find_session(recorder.writer.paths.folder)
    verdict = verify(paths, identity=session_identity(paths, study.identity))
    assert verdict.state == "torn"
    assert any(problem in line for line in verdict.problems)
    got = [event.seq for event in read_events(paths.folder, study.identity)]
    assert got == [i % 3000 for i in range(len(got))]
    assert greedy or verdict.n_bytes == verdict.n_signed_bytes


def test_the_free_space_guard_ends_the_session_whole(study):
    with pytest.raises(RecordingError, match="min_free_mb"), study.open(min_free_mb=10**9, flush_ms=50) as sink:
        for event in study.events(60_000):
            sink.event(event)
            time.sleep(0.001)
    paths = SessionPaths(next(study.recordings.glob("*Z-*")))
    verdict = verify(paths, identity=session_identity(paths, study.identity))
    assert verdict.state == "torn"
    assert "fewer than record.min_free_mb" in verdict.problems[0]
    assert (verdict.bad_chunks, verdict.n_bytes) == ([], verdict.n_signed_bytes)


def test_two_writers_on_one_folder(study):
    with study.open(), pytest.raises(RecordingError, match=f"process {os.getpid()} records into it"):
        study.open()
    study.open().close()


def test_an_unwritable_folder(study):
    (study.root / "file").write_text("")
    with pytest.raises(RecordingError, match=r"can't be written.*record\.dir"):
        study.open(dir=str(study.root / "file" / "recordings"))


def test_a_full_queue_drops_and_counts(study):
    with study.open(queue=8) as sink:
        for event in study.events(5000):
            sink.event(event)
        dropped = sink.sink.dropped_events
    got = list(read_events(next(study.recordings.glob("*Z-*")), study.identity))
    paths = SessionPaths(next(study.recordings.glob("*Z-*")))
    assert f"{dropped} events came faster than the disk" in verify(paths).problems[-1]
    assert dropped > 0
    assert len(got) + dropped == 5000
