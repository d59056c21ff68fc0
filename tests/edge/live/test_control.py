"""The control socket, over a real Unix socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from edge.errors import ConfigError, SinkError
from edge.live.control import MAX_REQUEST_BYTES, ControlServer, ask

ROOT = Path(__file__).parents[3]


@pytest.fixture
def control(tmp_path):
    server = ControlServer(tmp_path / "c.sock", lambda: {"state": "ready"})
    yield server
    server.close()


def answer_next(control, **values):
    """Play the loop: answer the next command."""

    def loop():
        while (request := control.take()) is None:
            pass
        taken.append(request)
        request.answer(**values)

    taken = []
    thread = threading.Thread(target=loop)
    thread.start()
    return thread, taken


def test_status_is_answered_at_once(control, tmp_path):
    assert ask(tmp_path / "c.sock", cmd="status") == {"ok": True, "status": {"state": "ready"}}


def test_only_the_owner_may_connect(control, tmp_path):
    assert (tmp_path / "c.sock").stat().st_mode & 0o777 == 0o600


def test_a_mark_reaches_the_loop_with_its_time(control, tmp_path):
    thread, taken = answer_next(control, t_ns=5)
    assert ask(tmp_path / "c.sock", cmd="mark", text="lights on") == {"ok": True, "t_ns": 5}
    thread.join()
    assert (taken[0].cmd, taken[0].values["text"]) == ("mark", "lights on") and taken[0].t_ns > 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"status\n", "is no JSON object"),
        (b"[1]\n", "is no JSON object"),
        (b"[" * 3000 + b"\n", "is no JSON object"),
        (b'{"cmd": "reboot"}\n', "there is no command 'reboot'"),
        (b'{"cmd": "record"}\n', "needs an action"),
        (json.dumps({"cmd": "mark", "text": "x" * 501}).encode() + b"\n", "at most 500 characters"),
        (b'{"cmd": "mark", "text": "\\ud800"}\n', "a mark is a text"),
        (b"x" * (MAX_REQUEST_BYTES + 10) + b"\n", "is too long"),
    ],
    ids=[
        "no json",
        "no object",
        "deep",
        "unknown",
        "record without action",
        "long mark",
        "half a character",
        "long line",
    ],
)
def test_bad_requests_are_answered_by_name(control, tmp_path, line, said):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "c.sock"))
        connection.sendall(line)
        answer = json.loads(connection.makefile().readline())
    assert answer["ok"] is False and said in answer["error"]


def test_a_second_runtime_is_told_of_the_first(control, tmp_path):
    code = (
        "from pathlib import Path; from edge.live.control import ControlServer; from edge.errors import SinkError\n"
        "try: ControlServer(Path({path!r}), dict)\n"
        "except SinkError as error: print(error)"
    )
    path = str(tmp_path / "c.sock")
    out = subprocess.run(
        [sys.executable, "-c", code.format(path=path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("live.control: another runtime (process ") and out.stdout.count("\n") == 1
    assert ask(tmp_path / "c.sock", cmd="status")["ok"]  # the first one still answers


def test_a_socket_left_behind_by_a_killed_runtime_is_replaced(tmp_path):
    path = tmp_path / "c.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    server = ControlServer(path, dict)
    assert ask(path, cmd="status")["ok"]
    server.close()
    assert not path.exists()


def test_no_runtime_is_said(tmp_path):
    with pytest.raises(SinkError, match="no runtime listens here"):
        ask(tmp_path / "c.sock", cmd="status")


def test_a_path_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="longer than 107 bytes"):
        ControlServer(tmp_path / ("x" * 120), dict)
