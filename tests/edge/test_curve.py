"""The wire: who gets in, who gets nothing, and that a command counts once. Real sockets on loopback."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq

from edge.config import Config, from_dict
from edge.curve import connect_as
from edge.errors import ConfigError, KeyFileError, SinkError
from edge.keys import KeyRing, new_wire_pair, read_wire_pair
from edge.live.remote import BURST, COMMANDS_PER_S, CommandGuard, RemoteClient, RemoteControl
from edge.records import Event, RedactedFrame
from edge.sinks.publisher import Publisher
from edge.wire import Subscriber

ANY = "tcp://127.0.0.1:*"


class Keys:
    """A device's key folder with clients of each kind, and a stranger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ring = KeyRing(folder / "keys")
        self.ring.create()
        self.device = self.ring.wire()[0]
        for name, rights in (("tablet", "events"), ("monitor", "events,preview"), ("nurse", "control")):
            public = new_wire_pair(folder / f"{name}.key")
            self.ring.trust("clients", name, f"curve {public} {rights}")
        new_wire_pair(folder / "stranger.key")

    def of(self, name: str) -> tuple[str, str]:
        return read_wire_pair(self.folder / f"{name}.key")

    def config(self, **sinks: object) -> Config:
        sinks = {"publish": ANY, "publish_preview": ANY, "curve": True, "preview_hz": 60, **sinks}
        return from_dict({"sinks": sinks, "keys": {"dir": str(self.ring.folder)}}, thing="test")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture
def publisher(keys: Keys) -> Iterator[Publisher]:
    with Publisher(keys.config()) as sink:
        yield sink


def gets(publisher: Publisher, subscriber: Subscriber, seconds: float = 1.0) -> str:
    """Publish until the subscriber has something, and return its topic; empty if it gets nothing."""
    end = time.monotonic() + seconds
    seq = 0
    while time.monotonic() < end:
        seq += 1
        publisher.event(Event(seq, seq, seq, "health", {"state": "ready"}))
        image = np.zeros((8, 8, 3), np.uint8)
        publisher.picture(RedactedFrame(seq, seq * 10**9, image, "cam", "scene", ()))
        message = subscriber.receive(0.05)
        if message is not None:
            return message.topic
    return ""


def test_a_listed_client_gets_events_and_no_pictures(publisher, keys):
    with Subscriber(publisher.address, keys=keys.of("tablet"), device=keys.device) as subscriber:
        assert gets(publisher, subscriber, 5) == "health"
        topics = {message.topic for _ in range(20) if (message := subscriber.receive(0.05))}
        assert "preview" not in topics


def test_a_client_that_may_see_pictures_gets_them(publisher, keys):
    with Subscriber(publisher.preview_address, keys=keys.of("monitor"), device=keys.device) as subscriber:
        assert gets(publisher, subscriber, 5) == "preview"


@pytest.mark.parametrize(
    ("client", "address", "device", "reason"),
    [
        ("stranger", "address", "", "unknown key"),
        ("nurse", "address", "", "nurse has no right to events"),
        ("tablet", "preview_address", "", "tablet has no right to preview"),
        ("tablet", "address", "stranger", "wrong key of this device"),
        # Either side may be the first to see that the mechanisms differ; the other then sees a peer that hung up.
        (None, "address", "", "uses no CURVE|hung up during the handshake"),
    ],
    ids=["unknown-key", "no-right", "no-right-to-pictures", "wrong-server-key", "plain"],
)
def test_everybody_else_gets_nothing_and_it_is_named(publisher, keys, client, address, device, reason):
    server = keys.of("stranger")[0] if device else keys.device
    subscriber = Subscriber(getattr(publisher, address), keys=keys.of(client) if client else None, device=server)
    with subscriber:
        try:
            assert gets(publisher, subscriber, 1.5) == ""
        except KeyFileError as error:
            assert "refuses this client" in str(error)
    end = time.monotonic() + 10
    while not any(re.search(reason, text) for text in publisher.refused) and time.monotonic() < end:
        time.sleep(0.02)  # the refusal is named by a thread of its own, after the client has noticed it
    assert any(re.search(reason, text) for text in publisher.refused), publisher.refused


def test_a_peer_that_speaks_no_zeromq_gets_nothing_and_closing_does_not_hang(publisher, keys):
    host, _, port = publisher.address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=2) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
        raw.settimeout(1)
        seen = b""
        try:
            while block := raw.recv(4096):
                seen += block
        except (TimeoutError, ConnectionError):
            pass
        assert b"health" not in seen
    start = time.monotonic()
    publisher.close()
    assert time.monotonic() - start < 5


def test_a_rotated_device_key_is_the_wrong_one_for_old_clients(keys):
    old = keys.device
    keys.ring.rotate("wire")
    with (
        Publisher(keys.config()) as publisher,
        Subscriber(publisher.address, keys=keys.of("tablet"), device=old) as subscriber,
        pytest.raises(KeyFileError, match="refuses this client"),
    ):
        assert gets(publisher, subscriber, 10) == ""


@pytest.mark.parametrize("address", ["tcp://*:0", "tcp://0.0.0.0:*", "tcp://192.168.1.5:5571"])
def test_beyond_this_machine_keys_are_required(tmp_path, address):
    settings = from_dict({"sinks": {"publish": address}, "keys": {"dir": str(tmp_path / "none")}}, thing="test")
    with pytest.raises(ConfigError, match="no such key"):
        Publisher(settings)
    KeyRing(tmp_path / "none").create()
    with pytest.raises(ConfigError, match="no client may connect"):
        Publisher(settings)


def test_with_curve_and_no_address_of_their_own_previews_go_nowhere(keys):
    with Publisher(keys.config(publish_preview="")) as publisher:
        assert publisher.preview_address == ""
        publisher.picture(RedactedFrame(1, 1, np.zeros((8, 8, 3), np.uint8), "cam", "scene", ()))


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def control(keys: Keys) -> Iterator[RemoteControl]:
    server = RemoteControl(ANY, keys.ring, lambda line: {"ok": True, "heard": json.loads(line)})
    yield server
    server.close()


def test_a_client_with_the_right_gives_commands(control, keys):
    client = RemoteClient(control.address, keys.of("nurse"), keys.device)
    assert client.ask(cmd="mark", text="lights on") == {"ok": True, "heard": {"cmd": "mark", "text": "lights on"}}
    assert client.ask(cmd="status")["ok"]
    client.close()


@pytest.mark.parametrize("name", ["tablet", "stranger"])
def test_a_client_without_the_right_gets_no_answer(control, keys, name):
    client = RemoteClient(control.address, keys.of(name), keys.device)
    with pytest.raises(SinkError, match="right control"):
        client.ask(cmd="stop", timeout_s=1)
    client.close()


def raw_request(control: RemoteControl, keys: Keys, *frames: bytes) -> dict:
    context = zmq.Context()
    request = context.socket(zmq.REQ)
    request.setsockopt(zmq.LINGER, 0)
    connect_as(request, keys.of("nurse"), keys.device)
    request.connect(control.address)
    request.send_multipart(frames)
    assert request.poll(5000)
    answer = json.loads(request.recv())
    context.destroy(linger=0)
    return answer


def test_a_replayed_command_is_refused(control, keys):
    token = raw_request(control, keys, b'{"cmd": "hello"}')["token"]
    command = json.dumps({"cmd": "stop", "token": token, "n": 1}).encode()
    assert raw_request(control, keys, command)["ok"]
    assert "is a replay" in raw_request(control, keys, command)["error"]
    other_run = json.dumps({"cmd": "stop", "token": "0" * 32, "n": 2}).encode()
    assert "of another run" in raw_request(control, keys, other_run)["error"]


@pytest.mark.parametrize(
    "frames",
    [(b"{",), (b"[1]",), (b"[" * 3000,), (b"{}", b"{}"), (b'{"cmd": "stop"}',)],
    ids=["cut", "list", "deep", "frames", "no token"],
)
def test_nonsense_is_answered_with_one_line(control, keys, frames):
    answer = raw_request(control, keys, *frames)
    assert answer["ok"] is False
    assert "\n" not in answer["error"]
    assert raw_request(control, keys, b'{"cmd": "hello"}')["ok"], "the next request is served"


def test_no_failure_of_a_request_ends_the_service(keys, caplog):
    def fails(line: bytes) -> dict:
        raise RuntimeError("unforeseen")

    server = RemoteControl(ANY, keys.ring, fails)
    token = raw_request(server, keys, b'{"cmd": "hello"}')["token"]
    for n in (1, 2):
        answer = raw_request(server, keys, json.dumps({"cmd": "stop", "token": token, "n": n}).encode())
        assert answer == {"ok": False, "error": "failed in the device; its log says how"}
    no_command = json.dumps({"token": token, "n": 3}).encode()
    assert raw_request(server, keys, no_command)["ok"] is False
    server.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        "live.control_address: a request failed; further failures aren't logged"
    ]


def test_commands_are_limited_in_number():
    guard = CommandGuard("t")
    now = 0
    passed = [not guard.problem("a", {"token": "t", "n": n}, now) for n in range(1, 31)]
    assert sum(passed) == BURST
    assert not guard.problem("b", {"token": "t", "n": 1}, now)
    now += int(1e9 / COMMANDS_PER_S)
    assert not guard.problem("a", {"token": "t", "n": 100}, now)
    assert "one too many" in guard.problem("a", {"token": "t", "n": 101}, now)


@pytest.mark.parametrize("n", [None, "1", True, 1.5], ids=str)
def test_a_command_needs_a_number(n):
    assert CommandGuard("t").problem("a", {"cmd": "stop", "token": "t", "n": n}, 0) == "has no number n"
