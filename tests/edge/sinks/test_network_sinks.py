"""Publisher, metrics endpoint and LSL outlet with real subscribers, clients and recorders."""

from __future__ import annotations

import json
import math
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.config import Config, KeysConfig, SinksConfig
from edge.errors import ConfigError, DataError, SinkError
from edge.records import Event, Frame, RedactedFrame
from edge.sinks import _exporter
from edge.sinks._exporter import MetricsServer
from edge.sinks.lsl import CHANNELS, LslOutlet, channels
from edge.sinks.publisher import Publisher
from edge.wire import Subscriber, unpack

ROOT = Path(__file__).parents[3]
S = 1_000_000_000


def score_event(seq, fcc=0.75, reason=""):
    payload = {
        "frame_id": seq,
        "gaze": [[1, 2, 3.0, 4.0]],
        "features": {"local": "secret"},
        "emotion": {"probabilities": {"happy": 0.5}},
        "score": {"fcc_now": fcc, "fcc": fcc, "reason": reason, "sim_local": 0.5, "sim_global": math.nan},
    }
    return Event(seq, seq * S // 30, seq * S // 30 + 20_000_000, "score", payload)


def redacted(frame_id=0, size=(720, 1280)):
    image = np.full((*size, 3), 90, np.uint8)
    return RedactedFrame(frame_id, frame_id * S, image, "cam", "scene", ())


def published(**sinks):
    return Publisher(Config(sinks=SinksConfig(**sinks), keys=KeysConfig(dir="/nonexistent")))


@pytest.fixture
def publisher():
    sink = published(publish="tcp://127.0.0.1:*", publish_hwm=50)
    yield sink
    sink.close()


def joined(publisher, *topics):
    """Return a subscriber that has begun to receive."""
    subscriber = Subscriber(publisher.address, topics)
    while (first := subscriber.receive(0.05)) is None:
        publisher.event(score_event(0))
    return subscriber, first


def test_a_score_arrives_without_features_or_raw_gaze(publisher):
    subscriber, first = joined(publisher, "score")
    with subscriber:
        assert first.payload["score"]["fcc"] == 0.75
        assert "features" not in first.payload and "gaze" not in first.payload
        assert b"secret" not in repr(first).encode()


@pytest.mark.parametrize("kind", ["gaze", "aux", "something_new"])
def test_what_is_not_listed_stays_on_the_device(publisher, kind):
    subscriber, _ = joined(publisher)
    with subscriber:
        while subscriber.receive(0.1):
            pass
        publisher.event(Event(1, 0, 0, kind, {"gaze": [[1, 2, 3.0, 4.0]]}))
        publisher.event(Event(2, 0, 0, "end", {}))
        message = subscriber.receive(5)
        assert message is not None and message.topic == "end"


def test_topics_are_apart_and_numbered_apart(publisher):
    subscriber, _ = joined(publisher, "score")
    with subscriber:
        while subscriber.receive(0.1):
            pass
        before = publisher._next["score"]
        publisher.event(Event(1, 0, 0, "health", {"state": "ready"}))
        publisher.event(score_event(1))
        message = subscriber.receive(2)
        assert message is not None and (message.topic, message.seq, message.lost) == ("score", before, 0)


@pytest.mark.parametrize("kind", ["gaze", "aux"])
def test_raw_gaze_and_other_streams_stay_on_the_device(publisher, kind):
    subscriber, _ = joined(publisher)
    with subscriber:
        publisher.event(Event(1, 0, 0, kind, {"secret": [1.0]}))
        publisher.event(Event(2, 0, 0, "mark", {"text": "after"}))
        while (message := subscriber.receive(2)) is not None and message.topic == "score":
            pass
        assert message is not None and message.topic == "mark"


def test_a_preview_is_a_small_jpeg_at_its_rate():
    sink = published(publish="tcp://127.0.0.1:*", preview_hz=2, preview_px=320)
    subscriber, _ = joined(sink)
    with subscriber:
        while subscriber.receive(0.1):
            pass
        for k in range(5):
            sink.picture(RedactedFrame(k, k * S // 10, redacted().image, "cam", "scene", ()))
        sink.close()
        pictures = []
        while message := subscriber.receive(0.3):
            pictures.append(message)
        assert [m.topic for m in pictures] == ["preview"]
        image = cv2.imdecode(np.frombuffer(pictures[0].jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert image.shape == (180, 320, 3) and pictures[0].payload["scale"] == 0.25


def test_a_preview_takes_no_unredacted_picture(publisher):
    frame = Frame(0, 0, np.zeros((4, 4, 3), np.uint8), "cam")
    with pytest.raises(TypeError, match="a sink takes RedactedFrame"):
        publisher.picture(frame)


def test_a_stopped_subscriber_costs_the_others_nothing_and_can_tell_its_loss(publisher):
    """30 MB go out while one subscriber is stopped; the kernel's buffers and 50 messages are all that waits for it."""
    code = (
        "from edge.wire import Subscriber\n"
        f"s = Subscriber({publisher.address!r}, ('score',))\n"
        "while s.receive(1) is None: pass\n"
        "print('in', flush=True)\n"
        "n = lost = 0\n"
        "while (m := s.receive(20)).payload['score'].get('padding') != 'last':\n"
        "    n += 1; lost += m.lost\n"
        "print(lost + m.lost)"
    )
    sleeper = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert sleeper.stdout is not None
    started = threading.Event()
    threading.Thread(target=lambda: (sleeper.stdout.readline(), started.set())).start()
    while not started.wait(0.01):
        publisher.event(score_event(0))
    sleeper.send_signal(signal.SIGSTOP)
    subscriber, _ = joined(publisher, "score")
    lost = 0
    with subscriber:
        for _ in range(300):
            publisher.event(Event(0, 0, 0, "score", {"score": {"fcc": 0.0, "padding": "x" * 100_000}}))
            message = subscriber.receive(5)
            assert message is not None
            lost += message.lost
    assert lost == 0
    sleeper.send_signal(signal.SIGCONT)
    while sleeper.poll() is None:
        publisher.event(Event(0, 0, 0, "score", {"score": {"padding": "last"}}))
        time.sleep(0.01)
    assert int(sleeper.communicate()[0]) > 100


def test_port_in_use_is_said_in_a_line(publisher):
    with pytest.raises(SinkError, match=r"sinks.publish: can't listen on tcp://127.0.0.1:\d+: Address already in use"):
        published(publish=publisher.address)


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:5571", "tcp://*:5571", "tcp://192.168.1.4:5571", "nonsense"])
def test_nothing_is_published_beyond_this_machine(address):
    with pytest.raises(ConfigError, match=r"sinks\.publish"):
        published(publish=address)


@pytest.mark.parametrize(
    "frames",
    [[b"score"], [b"score", b"\xc1"], [b"score", b"\x80"], [b"a", b"b", b"c", b"d"]],
    ids=["one frame", "no msgpack", "empty map", "four frames"],
)
def test_a_foreign_message_is_refused(frames):
    with pytest.raises(DataError, match="message"):
        unpack(frames)


# -- metrics ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def metrics():
    now = [0]
    server = MetricsServer("127.0.0.1:0", clock=lambda: now[0])
    yield server, now
    server.close()


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:²", "0.0.0.0:9464"])
def test_metrics_need_an_address_of_this_machine(address):
    with pytest.raises(ConfigError, match=r"sinks\.metrics: must be on this machine; expected 127.0.0.1:PORT"):
        MetricsServer(address)


def get(server, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("state", "healthz", "readyz"),
    [("starting", 200, 503), ("warming", 200, 503), ("ready", 200, 200), ("degraded", 200, 200), ("failed", 503, 503)],
)
def test_health_checks_follow_the_state(metrics, state, healthz, readyz):
    server, _ = metrics
    server.event(Event(0, 0, 0, "health", {"state": state, "reasons": []}))
    assert get(server, "/healthz")[0] == healthz
    code, body = get(server, "/readyz")
    assert code == readyz and json.loads(body)["state"] == state


def test_a_start_that_waits_for_a_source_is_alive_and_not_ready(metrics):
    server, now = metrics
    reasons = [{"component": "gaze", "level": "degraded", "reason": "no such stream is offered", "since_ns": 0}]
    server.event(Event(0, 0, 0, "health", {"state": "degraded", "started": False, "reasons": reasons}))
    now[0] = 6 * S
    assert get(server, "/healthz")[0] == 200
    code, body = get(server, "/readyz")
    assert code == 503 and json.loads(body) == {"state": "degraded", "reasons": reasons}


def test_a_loop_that_says_nothing_is_stuck(metrics):
    server, now = metrics
    server.event(Event(0, 0, 0, "health", {"state": "ready", "reasons": []}))
    now[0] = 6 * S
    code, body = get(server, "/healthz")
    assert code == 503 and "stuck" in body


def test_metrics_count_what_happened(metrics):
    server, _ = metrics
    for event in (score_event(1), score_event(2), score_event(3, math.nan, "stale")):
        server.event(event)
    server.event(Event(4, 0, 0, "deadline_missed", {}))
    stream = {"name": "gaze", "measured_hz": 199.5, "gaps": 2, "drift_ppm": None}
    health = {"state": "degraded", "reasons": [], "streams": [stream], "sinks": {"events": {"dropped": 7}}}
    health |= {"pictures_dropped": 4, "recall_hz": 6.5, "recalls_postponed": 9}
    server.event(Event(5, 0, 0, "health", health))
    lines = get(server, "/metrics")[1].splitlines()
    for line in (
        "emogaze_scores_total 2.0",
        'emogaze_scores_undefined_total{reason="stale"} 1.0',
        "emogaze_deadlines_missed_total 1.0",
        "emogaze_fcc 0.75",
        'emogaze_score_latency_seconds_bucket{le="0.02"} 3.0',
        'emogaze_state{state="degraded"} 1.0',
        'emogaze_state{state="ready"} 0.0',
        'emogaze_stream_measured_hz{stream="gaze"} 199.5',
        'emogaze_sink_dropped{sink="events"} 7.0',
        "emogaze_redaction_dropped 4.0",
        "emogaze_recall_hz 6.5",
        "emogaze_recalls_postponed 9.0",
    ):
        assert line in lines


def test_metrics_port_in_use(metrics):
    server, _ = metrics
    with pytest.raises(SinkError, match=r"sinks.metrics: can't listen on 127.0.0.1:\d+: Address already in use"):
        MetricsServer(f"127.0.0.1:{server.port}")


@pytest.mark.parametrize("address", ["0.0.0.0:9464", "9464", "127.0.0.1", "192.168.1.4:80"])
def test_metrics_stay_on_this_machine(address):
    with pytest.raises(ConfigError, match=r"sinks\.metrics"):
        MetricsServer(address)


def opened(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 5)


def until_all_left(server):
    while server._server._since:
        time.sleep(0.01)


@pytest.mark.parametrize("sent", [b"GET /met", b"GET /metrics HTTP/1.0\r\n\r\n"], ids=["asking", "answered"])
def test_a_client_that_hangs_up_leaves_no_trace(metrics, capfd, caplog, sent):
    server, _ = metrics
    with opened(server) as client:
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
    until_all_left(server)
    assert capfd.readouterr().err == "" and caplog.text == ""
    assert get(server, "/healthz")[0] == 200


def test_an_error_of_the_program_is_logged(metrics, caplog, monkeypatch):
    server, _ = metrics
    monkeypatch.setattr(MetricsServer, "answer", lambda *_: 1 / 0)
    with opened(server) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.recv(1) == b""
    until_all_left(server)
    assert "ZeroDivisionError" in caplog.text


def test_a_client_that_never_ends_its_question_is_hung_up_on(metrics, monkeypatch):
    server, _ = metrics
    monkeypatch.setattr(_exporter, "CLIENT_S", 0.2)
    with opened(server) as client:
        client.settimeout(0.05)
        for _ in range(1000):
            try:
                client.sendall(b"x")
                if not client.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("it was still being listened to")
    until_all_left(server)


def test_many_clients_do_not_take_a_thread_each(metrics, monkeypatch):
    server, _ = metrics
    monkeypatch.setattr(_exporter, "MAX_CLIENTS", 2)
    with opened(server), opened(server), opened(server) as third:
        assert third.recv(1) == b""
    until_all_left(server)
    assert get(server, "/healthz")[0] == 200


def test_the_metrics_are_served_over_ipv6_too():
    server = MetricsServer("[::1]:0")
    try:
        with urllib.request.urlopen(f"http://[::1]:{server.port}/healthz", timeout=5) as answer:
            assert answer.status == 200
    finally:
        server.close()


# -- LSL -------------------------------------------------------------------------------------------------------------


def test_channels_of_a_score():
    values = dict(zip(CHANNELS, channels(score_event(1).payload), strict=True))
    assert (values["fcc"], values["sim_local"], values["p_happy"]) == (0.75, 0.5, 0.5)
    assert math.isnan(values["sim_global"]) and math.isnan(values["p_sad"])


def test_a_recorder_on_this_machine_gets_scores_with_their_frame_times():
    code = (
        "import pylsl, json\n"
        "found = pylsl.resolve_byprop('name', 'EmoGaze', 1, 15)\n"
        "inlet = pylsl.StreamInlet(found[0]); inlet.open_stream(10); print('in', flush=True)\n"
        "sample, stamp = inlet.pull_sample(15)\n"
        "print(json.dumps([sample[:2], stamp]))"
    )
    outlet = LslOutlet()
    recorder = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert recorder.stdout is not None and recorder.stdout.readline() == "in\n"
    for k in range(100):
        outlet.event(score_event(300 + k))
    out, _ = recorder.communicate(timeout=30)
    outlet.close()
    (fcc_now, fcc), stamp = json.loads(out)
    assert (fcc_now, fcc) == (0.75, 0.75)
    assert 10 <= stamp < 10 + 100 / 30 + 1e-6


def test_every_socket_of_an_outlet_is_bound_to_the_loopback_device():
    code = (
        "import socket, pylsl\n"
        "from edge.sinks import _outlet\n"
        "outlet = pylsl.StreamOutlet(pylsl.StreamInfo('kept', 'x', 1, 0, pylsl.cf_double64, ''))\n"
        "_outlet.keep_on_this_machine()\n"
        "inet = [s for s in _outlet._sockets() if s.family != socket.AF_UNIX]\n"
        "print(len(inet), {s.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16) for s in inet})"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    n, _, devices = out.strip().partition(" ")
    assert int(n) >= 3 and devices == "{b'lo\\x00'}"


def test_an_outlet_that_died_is_an_error_and_closing_does_not_hang():
    outlet = LslOutlet()
    outlet._process.kill()
    outlet._process.wait()
    with pytest.raises(SinkError, match=r"sinks\.lsl_outlet: its process ended"):
        outlet.event(score_event(1))
    outlet.close()


def test_the_published_port_is_on_loopback(publisher):
    port = int(publisher.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 2):
        pass
    host = socket.gethostbyname(socket.gethostname())
    if not host.startswith("127."):
        with pytest.raises(OSError), socket.create_connection((host, port), 2):
            pass
