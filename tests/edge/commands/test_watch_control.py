"""`emogaze watch` and `emogaze control`, against a real publisher and a real control socket."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edge.config import Config, SinksConfig
from edge.errors import SinkError
from edge.live.control import ControlServer
from edge.live.watch import View, status_lines, wire_feed
from edge.records import Event
from edge.sinks.publisher import Publisher
from edge.wire import Message

ROOT = Path(__file__).parents[3]
STREAM = {
    "name": "gaze",
    "state": "delivering",
    "declared_hz": 200.0,
    "measured_hz": 199.5,
    "jitter_ms": float("nan"),
    "gaps": 2,
}
STATUS = {
    "state": "degraded",
    "reasons": [{"component": "gaze", "level": "degraded", "reason": "silent", "since_ns": 5}],
    "uptime_s": 61.0,
    "frames": 100,
    "scores": 70,
    "fcc_undefined": {"stale": 30},
    "deadlines_missed": 1,
    "pictures_dropped": 4,
    "recall_hz": 6.25,
    "score_age_ms": {"p50": 31.0, "p99": 60.4},
    "streams": [STREAM],
    "sinks": {"events": {"dropped": 3, "error": "disk full"}},
}


def emogaze(*words, timeout=30):
    command = [sys.executable, "-m", "edge.cli", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def device(tmp_path):
    """A control socket with a loop that answers marks and refuses recording."""
    server = ControlServer(tmp_path / "c.sock", lambda: STATUS)
    done = threading.Event()

    def loop():
        while not done.is_set():
            request = server.take()
            if request is None:
                time.sleep(0.01)
            elif request.cmd == "record":
                request.refuse("record.dir is not set")
            else:
                request.answer(t_ns=1_500_000_000, pictures=5, scores=3)

    thread = threading.Thread(target=loop)
    thread.start()
    yield str(tmp_path / "c.sock")
    done.set()
    thread.join()
    server.close()


def test_status_in_lines():
    assert status_lines(STATUS) == [
        "degraded (gaze: silent)",
        "up 61 s; 100 pictures, 70 scores (30 stale); 1 late; from picture to score 31 ms median, 60 ms p99",
        "redaction: 4 pictures dropped, recall at 6.2 Hz",
        "gaze: state delivering, declared Hz 200.0, measured Hz 199.5, gaps 2",
        "sink events: 3 dropped, disk full",
    ]


def test_a_rate_that_nobody_declared_is_not_shown():
    camera = {"name": "scene", "state": "delivering", "declared_hz": 0.0, "measured_hz": 24.0}
    assert "scene: state delivering, measured Hz 24.0" in status_lines(STATUS | {"streams": [camera]})


def test_the_view_counts_what_it_lost_and_renders():
    from rich.console import Console

    view = View("tcp://device")
    assert view.take(Message("health", 0, 0, 0, 0, STATUS)) == ""
    assert view.take(Message("mark", 1, 0, 1_500_000_000, 0, {"text": "rain"})) == "1.500 mark text=rain"
    score = {
        "fcc_now": 0.5, "fcc": 0.625, "reason": "", "region": "road", "frame_age_ns": 40_000_000,
        "gaze_age_ns": 3_000_000, "model_id": "m@1", "precision": "fp32",
    }  # fmt: skip
    view.take(Message("score", 7, 0, 0, 0, {"score": score, "emotion": None, "fixation": None}, lost=3))
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the console
    console.print(view.render())
    console.file.close()
    text = console.export_text()
    for part in (
        "degraded (gaze: silent)",
        "FCC now 0.500, over the window 0.625 on road",
        "lost 3 of 6",
        "199.5",
        "delivering",
    ):
        assert part in text


def test_watch_prints_one_report(tmp_path):
    publisher = Publisher(Config(sinks=SinksConfig(publish=f"ipc://{tmp_path}/wire")))
    done = threading.Event()

    def publish():
        while not done.wait(0.05):
            publisher.event(Event(0, 0, 0, "health", STATUS))

    thread = threading.Thread(target=publish)
    thread.start()
    shown = emogaze("watch", f"ipc://{tmp_path}/wire", "--once", "--json")
    done.set()
    thread.join()
    publisher.close()
    body = json.loads(shown.stdout)
    assert (body["schema"], body["state"], body["frames"]) == ("emogaze.status", "degraded", 100)


def test_watch_needs_no_publisher_on_the_same_machine(device):
    shown = emogaze("watch", "--once", "--socket", device)
    assert shown.returncode == 0 and shown.stdout.splitlines()[0] == "degraded (gaze: silent)"
    shown = emogaze("watch", "--seconds", "1.5", "--socket", device)
    counts = "up 61 s; 100 pictures, 70 scores (30 stale); 1 late; from picture to score 31 ms median, 60 ms p99"
    assert shown.returncode == 0
    assert set(shown.stdout.splitlines()) == {f"degraded (gaze: silent); no score yet; {counts}"}


def test_watch_says_that_nothing_is_published(tmp_path):
    shown = emogaze("watch", f"ipc://{tmp_path}/nobody", "--once", "--seconds", "0.5")
    assert shown.returncode == 1 and "nothing is published here" in shown.stderr
    shown = emogaze("watch", f"ipc://{tmp_path}/nobody", "--seconds", "0.2")
    assert shown.stdout == "" and shown.stderr == f"ipc://{tmp_path}/nobody: waiting for its first report\n"


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:port"])
def test_an_address_that_is_none_is_one_line(address):
    with pytest.raises(SinkError, match=f"^{address}: is no address: .*; expected tcp://HOST:PORT or ipc://PATH$"):
        wire_feed(address, None, "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("status",), 0, "degraded (gaze: silent)"),
        (("mark", "lights on"), 0, "marked at 1.500 s"),
        (("stop",), 0, "the device ends its run after 5 pictures and 3 scores"),
        (("record", "start"), 1, "record was refused: record.dir is not set"),
    ],
    ids=["status", "mark", "stop", "record"],
)
def test_control(device, words, code, said):
    shown = emogaze("control", *words, "--socket", device)
    assert shown.returncode == code and said in shown.stdout + shown.stderr


def test_control_without_a_device(tmp_path):
    shown = emogaze("control", "status", "--socket", str(tmp_path / "none"))
    assert shown.returncode == 1 and "no runtime listens here" in shown.stderr
