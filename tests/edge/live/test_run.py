"""The runtime as a process of its own, on real cameras, with real subscribers: what it does when things go away."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from edge import events
from edge.capture.base import SourceStatus
from edge.gaze.calibration import GazeCalibration, write_calibration
from edge.gaze.geometry import Camera
from edge.gaze.simulator import free_looks, simulate, write_csv
from edge.live.control import ask
from edge.live.supervisor import judge_camera
from edge.session.layout import sessions
from edge.session.read import read_events, session_identity
from edge.session.verify import verify
from edge.wire import Message, Subscriber
from host_tools.rerun import rerun

ROOT = Path(__file__).parents[3]
HZ, SEED, SIZE = 200.0, 5, (640, 360)
CALIBRATION = GazeCalibration(
    model="offset",
    x_coefficients=(0.5,),
    y_coefficients=(-0.5,),
    range_deg=(-20.0, 20.0, -15.0, 15.0),
    device="simulated",
    accuracy_deg=0.25,
)
LIMIT_S = 60  # bounds that the product states are far shorter; a busy machine must not fail a test


@pytest.fixture(scope="module")
def inputs(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with gaze recordings of 20 s and of 2 s."""
    folder = tmp_path_factory.mktemp("live")
    camera = Camera(width_px=SIZE[0], height_px=SIZE[1], hfov_deg=60.0).complete()
    for name, seconds in (("gaze", 20.0), ("short", 2.0)):
        looks = free_looks(seconds, SEED)
        write_csv(folder / f"{name}.csv", simulate(looks, HZ, SEED), seed=SEED, hz=HZ, camera=camera)
    (folder / "environment").symlink_to(environment)
    return folder


class Device:
    """A running `emogaze run`, a subscriber to it, and what it said."""

    def __init__(
        self, folder: Path, inputs: Path, camera: str, *more: str, gaze: str = "paced:{}/gaze.csv?loop"
    ) -> None:
        self.folder = folder
        self.control = folder / "c.sock"
        publish = f"ipc://{folder}/wire"
        settings = {
            "scene.source": camera,
            "gaze.source": gaze.format(inputs),
            "environment.cache": str(inputs / "environment"),
            "sinks.events": str(folder / "events.ndjson"),
            "sinks.publish": publish,
            "live.control": str(self.control),
        }
        overrides = [f"{key}='{value}'" for key, value in settings.items()]
        overrides += ["sinks.allow_plaintext=true", "redact.recall_hz=2", "redact.recall_size_px=320", *more]
        command = [sys.executable, "-m", "edge.cli", "run", *(word for o in overrides for word in ("--set", o))]
        self.subscriber = Subscriber(publish, ("score", "health", "mark", "stream"))
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait(self, condition: Callable[[Message], bool]) -> Message:
        """Receive until a message fulfils `condition`."""
        give_up = time.monotonic() + LIMIT_S
        seen: dict[str, object] = {}
        while time.monotonic() < give_up:
            message = self.subscriber.receive(0.2)
            if message is not None:
                seen[message.topic] = message.payload
                if condition(message):
                    return message
            elif self.process.poll() is not None:
                break
        self.process.kill()
        raise AssertionError(f"{self.process.communicate()}; last seen {seen}")

    def end(self, *, by: signal.Signals | None = None) -> tuple[str, str]:
        """Stop it, by the control socket or a signal; return what it said."""
        if by is None:
            assert ask(self.control, cmd="stop")["ok"]
        else:
            self.process.send_signal(by)
        return self.process.communicate(timeout=LIMIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.subscriber.close()


@pytest.fixture
def device(inputs: Path, tmp_path: Path) -> Iterator[Callable[..., Device]]:
    started: list[Device] = []

    def start(camera: str, *more: str, **options: str) -> Device:
        started.append(Device(tmp_path, inputs, camera, *more, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def scored(message: Message) -> bool:
    return message.topic == "score" and not message.payload["score"]["reason"]


def state(*names: str) -> Callable[[Message], bool]:
    return lambda message: message.topic == "health" and message.payload["state"] in names


def unscored(reason: str) -> Callable[[Message], bool]:
    return lambda message: message.topic == "score" and message.payload["score"]["reason"] == reason


def clip(data: Path) -> tuple[str, ...]:
    return ("--clip", str(data / "faces" / "WolfgangLanger_Pexels.mp4"), "--seconds", "5")


def assert_reruns(folder: Path) -> int:
    path = folder / "events.ndjson"
    outcome, scores = rerun(events.read_log(path), str(path))
    assert outcome.complete and outcome.identical, outcome.differences[:3]
    return len(scores)


def test_a_device_outlives_its_camera_and_its_log_reruns_bit_for_bit(device, serve, data):
    camera = serve("mjpeg", *clip(data))
    runtime = device(camera.url)
    runtime.wait(scored)
    camera.stop()
    lost = runtime.wait(state("degraded", "failed"))
    assert lost.payload["reasons"][0]["component"] == "scene"
    time.sleep(1)  # longer than a picture may take: what comes now must be health alone
    runtime.subscriber.receive(0)
    camera.go_on()
    runtime.wait(state("ready"))
    runtime.wait(scored)
    assert ask(runtime.control, cmd="mark", text="lights on")["ok"]
    assert runtime.wait(lambda m: m.topic == "mark").payload == {"text": "lights on"}
    camera.kill()
    absent = runtime.wait(state("failed"))
    assert "Connection refused (the same fault again; still trying)" in absent.payload["reasons"][0]["reason"]
    camera.start()
    runtime.wait(state("ready"))
    runtime.wait(scored)
    status = ask(runtime.control, cmd="status")["status"]
    assert {s["name"] for s in status["streams"]} == {"scene", "gaze"} and status["frames"] > 0
    out, _ = runtime.end(by=signal.SIGTERM)
    assert runtime.process.returncode == 0 and "frames," in out
    assert assert_reruns(runtime.folder) > 0
    kinds = [event.kind for event in events.read_log(runtime.folder / "events.ndjson")]
    assert kinds[0] == "session" and kinds[-1] == "end" and {"mark", "gaze", "fixation", "health"} <= set(kinds)


@pytest.fixture
def stream() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that offer LSL streams; each says a line once it does."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, *map(str, arguments)]
        running.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout is not None
        assert running[-1].stdout.readline()
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_gaze_and_eeg_over_lsl_calibrated_lost_and_found(device, serve, stream, inputs, data, tmp_path):
    name = f"test-{uuid.uuid4().hex[:12]}"
    outlet = ("-m", "host_tools", "simulate", "--gaze", inputs / "gaze.csv", "--name", name, "--source-id", "")
    eye = stream(*outlet)
    stream("tests/helpers/lsl_outlet.py", f"{name}-eeg", "eeg", "eeg", "128")
    write_calibration(tmp_path / "calibration.json", CALIBRATION)
    runtime = device(
        serve("mjpeg", *clip(data)).url,
        f"gaze.calibration='{tmp_path}/calibration.json'",
        f"aux.streams=['lsl:{name}-eeg']",
        gaze=f"lsl:{name}",
    )
    runtime.wait(scored)
    health = runtime.wait(state("ready")).payload
    assert (health["gaze_calibration"]["device"], health["gaze_calibration"]["accuracy_deg"]) == ("simulated", 0.25)
    streams = {row["name"]: row for row in ask(runtime.control, cmd="status")["status"]["streams"]}
    assert streams[f"aux:{name}-eeg"]["declared_hz"] == 128 and not streams[f"aux:{name}-eeg"]["silent"]
    eye.kill()
    lost = runtime.wait(state("degraded"))
    assert {"component": "gaze", "level": "degraded"}.items() <= lost.payload["reasons"][0].items()
    stream(*outlet)
    runtime.wait(state("ready"))
    runtime.wait(scored)
    runtime.end()
    assert assert_reruns(runtime.folder) > 0
    log = list(events.read_log(runtime.folder / "events.ndjson"))
    assert log[0].payload["gaze"]["simulated"]
    said = [event.payload["what"] for event in log if event.kind == "stream" and event.payload["name"] == "gaze"]
    assert {"time_correction", "no_source_id", "silent", "back"} <= set(said)
    eeg = [row[0] for event in log if event.kind == "aux" for row in event.payload["channels"]]
    assert all(b - a == 1 for a, b in pairwise(eeg)) and len(eeg) > 100


def test_sessions_are_started_and_stopped_on_command_and_rerun_bit_for_bit(device, serve, data, study):
    """The first session begins with the run, the second in its middle: both are whole, and so is the event log."""
    record = {"record.dir": study.recordings, "record.consent": study.consent(), "keys.dir": study.ring.folder}
    options = [*(f"{key}='{value}'" for key, value in record.items()), "record.min_free_mb=0"]
    runtime = device(serve("mjpeg", *clip(data)).url, *options)
    runtime.wait(scored)
    assert ask(runtime.control, cmd="record", action="start") == {"ok": False, "error": "a recording is already on"}
    assert ask(runtime.control, cmd="record", action="stop")["ok"]
    assert not ask(runtime.control, cmd="record", action="stop")["ok"]
    (first,) = sessions(study.recordings)
    runtime.wait(scored)
    started = ask(runtime.control, cmd="record", action="start")
    folders = {paths.folder for paths in sessions(study.recordings)}
    assert started["ok"] and folders == {Path(started["session"]), first.folder}
    for _ in range(3):
        runtime.wait(scored)
    runtime.end()
    made = sessions(study.recordings)
    assert len(made) == 2
    for paths in made:
        assert verify(paths, identity=session_identity(paths, study.identity)).state == "complete"
    second = next(paths for paths in made if paths.name != first.name)  # both may have begun in the same second
    log = list(read_events(second.folder, study.identity))
    outcome, scores = rerun(log, "session")
    assert outcome.complete and outcome.identical and scores, outcome.differences[:3]
    assert_reruns(runtime.folder)


def test_no_score_from_gaze_that_has_ended(device, serve, data):
    runtime = device(serve("mjpeg", *clip(data)).url, gaze="paced:{}/short.csv")
    runtime.wait(lambda m: m.topic == "score")
    runtime.wait(unscored("stale"))
    assert runtime.wait(state("degraded")).payload["reasons"][0]["component"] == "gaze"
    for _ in range(5):
        runtime.wait(unscored("stale"))
    runtime.end()
    log = list(events.read_log(runtime.folder / "events.ndjson"))
    newest = max(row[1] for e in log if e.kind in ("score", "gaze") for row in e.payload["gaze"] if row[5])
    values = [e for e in log if e.kind == "score" and not e.payload["score"]["reason"]]
    assert all(e.t_ns - newest <= 200e6 for e in values)
    assert_reruns(runtime.folder)


def test_no_score_from_a_frozen_picture(device, serve):
    camera = serve("mjpeg", "--size", "640x360", "--freeze-after", "60")
    runtime = device(camera.url, "scene.frozen_ms=400")
    reasons = runtime.wait(lambda m: state("degraded")(m) and "frozen" in m.payload["reasons"][0]["reason"])
    assert reasons.payload["reasons"][0]["component"] == "scene"
    for _ in range(5):
        assert runtime.wait(lambda m: m.topic == "score").payload["score"]["reason"] == "stale"
    runtime.end()
    assert_reruns(runtime.folder)


def test_gaze_over_lsl_goes_and_comes_back(device, serve, data, inputs):
    """The outlet is killed and started again as another process; its stream then has another identity."""
    simulate = [sys.executable, "-m", "host_tools", "simulate", "--gaze", f"{inputs}/gaze.csv", "--name", "EmoGazeLost"]
    outlet = subprocess.Popen(simulate, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runtime = device(serve("mjpeg", *clip(data)).url, gaze="lsl:EmoGazeLost")
    try:
        runtime.wait(scored)
        outlet.kill()
        outlet.wait()
        runtime.wait(unscored("stale"))
        lost = runtime.wait(state("degraded"))
        assert lost.payload["reasons"][0]["component"] == "gaze"
        outlet = subprocess.Popen(simulate, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        runtime.wait(state("ready"))
        runtime.wait(scored)
        runtime.end()
    finally:
        outlet.kill()
        outlet.wait()
    kinds = [e.payload["what"] for e in events.read_log(runtime.folder / "events.ndjson") if e.kind == "stream"]
    assert {"silent", "back", "time_correction"} <= set(kinds)
    assert_reruns(runtime.folder)


def test_a_face_camera_gives_the_wearers_emotion_and_may_go(device, serve, data):
    scene, face = serve("mjpeg", *clip(data)), serve("mjpeg", *clip(data))
    runtime = device(scene.url, f"face_camera.source='{face.url}'")
    seen = runtime.wait(lambda m: m.topic == "score" and bool(m.payload["emotion"]))
    assert seen.payload["emotion"]["subject"] == "wearer"
    face.kill()
    lost = state("degraded", "failed")  # on a busy machine for other reasons as well
    runtime.wait(lambda m: lost(m) and any(reason["component"] == "face" for reason in m.payload["reasons"]))
    fixed = runtime.wait(lambda m: scored(m) and m.payload["score"]["weights"] == "fixed")
    assert fixed.payload["score"]["weights_emotion"] == ""
    runtime.end()
    assert_reruns(runtime.folder)


def test_a_paced_clip_runs_to_its_end_and_reruns(device, data, tmp_path, monkeypatch):
    """And tells systemd when it is ready, that it turns, and that it ends."""
    said: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(0.2)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        runtime = device(f"paced:{data}/faces/WolfgangLanger_Pexels.mp4", "scene.end_s=2")
        while runtime.process.poll() is None:
            with suppress(TimeoutError):
                said.append(systemd.recv(1000).decode().partition("\n")[0])
        with suppress(TimeoutError):
            while True:
                said.append(systemd.recv(1000).decode().partition("\n")[0])
    out, _ = runtime.process.communicate(timeout=LIMIT_S)
    assert said.count("READY=1") == 1 and "STOPPING=1" in said
    assert "WATCHDOG=1" in said[said.index("READY=1") :]
    assert runtime.process.returncode == 0 and "scores, mean FCC" in out
    assert assert_reruns(runtime.folder) > 0


@pytest.mark.long
def test_a_gaze_stream_that_never_comes_is_said_once_and_ends_with_4(device, serve, stream):
    name = f"test-{uuid.uuid4().hex[:12]}"
    runtime = device(serve("mjpeg", "--size", "640x360").url, gaze=f"lsl:{name}")
    waiting = runtime.wait(state("degraded")).payload
    assert not waiting["started"]
    assert waiting["reasons"][0]["reason"] == f"lsl:{name}: no such stream is offered"
    stream("tests/helpers/lsl_outlet.py", f"{name}-other", "", "gaze", "100")
    time.sleep(5)  # it looks every four seconds, and there is another stream now
    out, errors = runtime.end()
    assert runtime.process.returncode == 4
    assert out == f"ended before the first score; gaze: lsl:{name}: no such stream is offered\n"
    assert errors.count("no such stream is offered") == 1


def one_line(process: subprocess.Popen) -> str:
    """Return the error line of a runtime that ends by itself, and check that it is one."""
    _, errors = process.communicate(timeout=LIMIT_S)
    lines = [line for line in errors.splitlines() if line.startswith("emogaze: ")]
    assert process.returncode == 1 and len(lines) == 1 and "Traceback" not in errors, errors
    return lines[0]


def test_a_camera_that_opens_and_never_delivers(device, serve):
    camera = serve("mjpeg", "--count", "0")
    runtime = device(camera.url, "scene.open_ms=1000")
    line = one_line(runtime.process)
    assert re.fullmatch(rf"emogaze: {camera.url}: .+ \(tried \d+ times\)", line)


def test_a_second_runtime_and_a_port_in_use_are_one_line_each(device, inputs, serve, tmp_path):
    camera = serve("mjpeg", "--size", "640x360")
    first = device(camera.url)
    first.wait(state("ready", "degraded"))
    command = [sys.executable, "-m", "edge.cli", "run", "--camera", camera.url, "--gaze", f"paced:{inputs}/gaze.csv"]
    second = subprocess.run(
        [*command, "--set", f"live.control='{first.control}'"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert second.returncode == 1
    said = f"emogaze: live.control: another runtime (process {first.process.pid}) runs on this device; "
    assert second.stderr.startswith(said) and len(second.stderr.splitlines()) == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ("--set", "live.control=off", "--set", f"sinks.metrics='{address}'")
        third = subprocess.run(
            [*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    assert third.returncode == 1
    assert f"sinks.metrics: can't listen on {address}: Address already in use" in third.stderr
    first.end()


@pytest.mark.parametrize(
    ("camera", "gaze", "said"),
    [
        ("paced:{data}/faces/WolfgangLanger_Pexels.mp4", "{}/gaze.csv", "is a recording, but the camera is live"),
        ("{data}/faces/WolfgangLanger_Pexels.mp4", "paced:{}/gaze.csv", "is a recording, but gaze is live"),
        ("csi://zero", "paced:{}/gaze.csv", "names no sensor"),
    ],
    ids=["recorded gaze", "recorded pictures", "no sensor"],
)
def test_sources_that_do_not_fit_are_one_line(device, data, camera, gaze, said):
    assert said in one_line(device(camera.format(data=data), gaze=gaze).process)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (SourceStatus("opening"), ("ok", "")),
        (SourceStatus("delivering", newest_ns=5, changed_ns=5), ("ok", "")),
        (SourceStatus("stalled", "silent"), ("degraded", "stalled: silent")),
        (SourceStatus("absent", "gone", same_fault=1), ("degraded", "absent: gone")),
        (SourceStatus("absent", "gone", same_fault=2), ("failed", "absent: gone (the same fault again; still trying)")),
        (SourceStatus("refused", "answers 404", same_fault=2), ("failed", "refused: answers 404")),
        (
            SourceStatus("delivering", newest_ns=3_000_000_000, changed_ns=900_000_000),
            ("degraded", "frozen: the picture doesn't change"),
        ),
    ],
    ids=lambda v: v.state + str(v.same_fault) if isinstance(v, SourceStatus) else "",
)
def test_how_a_camera_is_judged(status, expected):
    assert judge_camera(status, frozen_ms=2000) == expected


def test_a_camera_that_is_not_there_is_named_while_gaze_is_looked_for_and_the_run_can_be_stopped(device):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    runtime = device(f"http://127.0.0.1:{port}/", gaze=f"lsl:nobody-{uuid.uuid4().hex[:12]}")

    def names_the_camera(message: Message) -> bool:
        reasons = {r["component"]: r["reason"] for r in message.payload.get("reasons", [])}
        return "can't be reached: Connection refused" in reasons.get("scene", "")

    runtime.wait(names_the_camera)
    assert ask(runtime.control, cmd="mark", text="x") == {"ok": False, "error": "the runtime is still starting"}
    runtime.end()
    assert runtime.process.returncode == 4
    assert json.dumps(list(runtime.folder.glob("events*"))) == "[]"


def test_a_signal_that_comes_while_the_live_part_is_imported_is_obeyed(inputs: Path, tmp_path: Path) -> None:
    code = (
        "import signal, edge.capture as capture, edge.cli as cli\n"
        "ask = capture.is_live\n"
        "capture.is_live = lambda scene: (signal.raise_signal(signal.SIGTERM), ask(scene))[1]\n"
        "cli.main()"
    )
    settings = {"scene.source": "http://127.0.0.1:9/", "gaze.source": f"paced:{inputs}/gaze.csv"}
    settings["live.control"] = str(tmp_path / "c.sock")
    words = [word for key, value in settings.items() for word in ("--set", f"{key}='{value}'")]
    command = [sys.executable, "-c", code, "run", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout.startswith("ended before the first score"), done.stderr
