"""Live cameras as real processes: every picture carries a counter, every loss is a real one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from edge.capture import camera, gstreamer, http, paced, rtsp
from edge.capture._child import back_off_s
from edge.capture._live import Faults, LiveSource, _Child
from edge.config import SceneConfig
from edge.errors import AbsentError, SourceError
from host_tools.serve_mjpeg import draw_counter, read_counter
from tests.conftest import missing

ROOT = Path(__file__).parents[3]
SMALL = ("--size", "640x360", "--count", "600")


def wait_for(source, condition, limit_s=20.0):
    """Read until `condition(source, newest frame or None)`; return the seconds that it took."""
    start = time.monotonic()
    while time.monotonic() - start < limit_s:
        frame = source.read(0.05)
        if condition(frame):
            return time.monotonic() - start
    raise AssertionError(f"still {source.status} after {limit_s} s")


def delivered(frame):
    return frame is not None


def children_of(pid):
    """List the running processes whose parent is `pid`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("value", [0, 1, 0b1011, 2**24 - 1])
def test_counter_survives_in_a_picture(value):
    image = np.full((32, 400, 3), 99, np.uint8)
    draw_counter(image, value)
    assert read_counter(image) == value


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 0.1), (2, 0.2), (3, 0.4), (4, 0.5), (50, 0.5)])
def test_back_off_grows_to_half_a_second(failures, pause_s):
    assert back_off_s(failures) == pytest.approx(pause_s)


def test_the_same_fault_is_counted_and_another_one_begins_anew():
    faults = Faults()
    counts = []
    for kind, text in [("absent", "refused"), ("absent", "refused"), ("stalled", "silent"), ("absent", "refused")]:
        faults.add(kind, text)
        counts.append(faults.same)
    assert counts == [1, 2, 1, 1]


def test_every_picture_comes_once_and_in_order_with_a_true_stamp(serve):
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url), "scene") as source:
        seen = []
        while len(seen) < 30:
            before = time.monotonic_ns()
            frame = source.read(5)
            assert frame is not None and before - 2e9 < frame.t_ns < time.monotonic_ns()
            seen.append((read_counter(frame.image), frame.frame_id, frame.t_ns))
        counters, ids, times = (np.diff(column) for column in zip(*seen, strict=True))
        assert (times > 0).all()
        # what a busy machine skipped before it got a number is missing in both, never repeated or swapped
        assert (counters >= ids).all() and (ids >= 1).all()
        assert (source.info.width, source.info.height) == (640, 360)


def test_the_newest_picture_wins_and_drops_are_counted(serve):
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url), "scene") as source:
        wait_for(source, delivered)
        time.sleep(0.5)
        frame = source.read(1)
        assert frame is not None and time.monotonic_ns() - frame.t_ns < 400e6
        assert source.status.dropped >= 5 and source.status.captured == frame.frame_id + 1
        source.count_from_here()
        time.sleep(0.2)
        assert source.read(1) is not None and source.status.dropped == 0  # nobody was there to take them


def test_what_arrives_while_a_picture_is_decoded_counts_too(serve):
    server = serve("mjpeg", *SMALL)
    with closing(http.open_reader(SceneConfig(source=server.url))) as reader:
        before, skipped = read_counter(reader.read()[1]), reader.skipped
        time.sleep(0.3)
        after = read_counter(reader.read()[1])
        assert 3 <= reader.skipped - skipped < after - before


def test_a_stopped_camera_is_noticed_and_comes_back(serve):
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url, silent_ms=300), "scene") as source:
        wait_for(source, delivered)
        server.stop()
        wait_for(source, lambda _: source.status.state == "stalled")
        wait_for(source, lambda _: source.status.same_fault == 1)  # reopened: the connection was given up
        server.go_on()
        assert wait_for(source, delivered) < 2
        assert source.status.state == "delivering"


def test_a_killed_camera_is_absent_until_it_is_started_again(serve):
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url), "scene") as source:
        wait_for(source, delivered)
        last = source.status.captured
        server.kill()
        wait_for(source, lambda _: source.status.state == "absent" and source.status.same_fault >= 2)
        server.start()
        assert wait_for(source, delivered) < 2
        assert source.status.captured > last  # numbers go on


def test_a_killed_reader_is_replaced(serve, caplog):
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url), "scene") as source:
        wait_for(source, delivered)
        (child,) = [p for p in children_of(os.getpid()) if p != server.process.pid]
        limits = Path(f"/proc/{child}/limits").read_text().splitlines()
        assert next(line.split()[4:6] for line in limits if "core file size" in line) == ["0", "0"]  # holds pictures
        os.kill(child, signal.SIGKILL)
        wait_for(source, lambda _: source.status.restarts == 1)
        wait_for(source, delivered)
    assert [r.getMessage() for r in caplog.records] == [f"{server.url}: its reader ended with signal SIGKILL"]


def test_a_stopped_reader_is_replaced_long_before_it_would_count_as_hung(serve):
    server = serve("mjpeg", "--count", "0")
    with http.open_source(SceneConfig(source=server.url, silent_ms=100, open_ms=60_000), "scene") as source:
        (child,) = [p for p in children_of(os.getpid()) if p != server.process.pid]
        os.kill(child, signal.SIGSTOP)
        wait_for(source, lambda _: source.status.restarts == 1)
        assert child not in children_of(os.getpid())


def test_a_hanging_reader_is_killed_and_replaced(serve, monkeypatch):
    monkeypatch.setattr(_Child, "stopped", False)  # one that hangs in a read doesn't look stopped
    server = serve("mjpeg", *SMALL)
    with http.open_source(SceneConfig(source=server.url, silent_ms=100), "scene") as source:
        wait_for(source, delivered)
        (child,) = [p for p in children_of(os.getpid()) if p != server.process.pid]
        os.kill(child, signal.SIGSTOP)
        wait_for(source, lambda _: source.status.restarts == 1)
        wait_for(source, delivered)
        assert child not in children_of(os.getpid())


def test_a_frozen_picture_is_told_by_its_age(serve):
    server = serve("mjpeg", *SMALL, "--freeze-after", "10")
    with http.open_source(SceneConfig(source=server.url), "scene") as source:
        wait_for(source, lambda _: source.status.newest_ns - source.status.changed_ns > 500e6)


def test_a_gray_camera_gives_three_equal_channels(serve):
    server = serve("mjpeg", *SMALL, "--gray")
    with http.open_source(SceneConfig(source=server.url), "face") as source:
        frame = source.read(10)
        assert frame is not None and frame.role == "face"
        assert (frame.image[..., 0] == frame.image[..., 2]).all()


def test_a_camera_that_opens_and_never_delivers_is_a_fault_of_its_own(serve):
    server = serve("mjpeg", "--count", "0")
    with http.open_source(SceneConfig(source=server.url, open_ms=300), "scene") as source:
        wait_for(source, lambda _: source.status.same_fault == 2)
        assert source.status.state == "stalled" and source.status.captured == 0
        assert "delivers no picture" in source.status.reason  # which deadline passes first is the machine's choice


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\n", "the camera answers 404 Not Found"),
        (b"HTTP/1.0 401 Unauthorized\r\n\r\n", "the camera answers 401 Unauthorized"),
        (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", "is no MJPEG camera.*got text/html"),
    ],
    ids=["no such path", "wrong password", "a web page"],
)
def test_what_waiting_cannot_mend_is_refused_after_two_tries(answer, said):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer, args=(listener, answer), daemon=True).start()
        url = f"http://user:secret@127.0.0.1:{listener.getsockname()[1]}/x"
        with http.open_source(SceneConfig(source=url), "scene") as source:
            with pytest.raises(SourceError, match=said) as caught:
                wait_for(source, delivered)
            assert source.status.state == "refused" and source.ended
            assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8x/", "http://a b/"], ids=["port", "space"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(SourceError, match=f"^{url}: is no address: "):
        http.open_reader(SceneConfig(source=url))


def _answer(listener, answer):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(answer)


def test_rtsp_delivers_and_comes_back_after_a_kill(serve):
    if not Path("/usr/lib/x86_64-linux-gnu/girepository-1.0/GstRtspServer-1.0.typelib").exists() and not list(
        Path("/usr/lib").glob("*/girepository-1.0/GstRtspServer-1.0.typelib")
    ):
        missing("rtsp", "gir1.2-gst-rtsp-server-1.0 isn't installed")
    server = serve("rtsp")
    with rtsp.open_source(SceneConfig(source=server.url), "scene") as source:
        wait_for(source, delivered)
        first, second = source.read(2), source.read(2)
        assert first is not None and second is not None
        assert 0 < read_counter(first.image) < read_counter(second.image)
        server.kill()
        wait_for(source, lambda _: source.status.state == "absent")
        server.start()
        wait_for(source, delivered)


@pytest.mark.parametrize(
    ("caps", "bgr"),
    [
        ("I420_10LE,width=641,height=479", (0, 0, 255)),
        ("GRAY16_LE,width=322,height=240", None),
        ("GRAY8,width=320,height=241", None),
    ],
    ids=["10 bits, odd size", "16-bit gray", "gray"],
)
def test_gstreamer_pictures(caps, bgr):
    if not shutil.which("gst-launch-1.0"):
        missing("gstreamer", "gst-launch-1.0 isn't installed")
    text = f"gst:videotestsrc is-live=true pattern=red ! video/x-raw,format={caps}"
    with gstreamer.open_source(SceneConfig(source=text), "scene") as source:
        frame = source.read(10)
        assert frame is not None
        width, height = (int(word.partition("=")[2]) for word in caps.split(",")[1:])
        assert frame.image.shape == (height, width, 3)
        pixels = frame.image.reshape(-1, 3)
        assert (pixels == pixels[0]).all()
        assert tuple(pixels[0]) == bgr if bgr else np.ptp(pixels[0].astype(int)) <= 2


def test_a_pipeline_that_cannot_be_is_refused_with_gstreamers_words():
    if not shutil.which("gst-launch-1.0"):
        missing("gstreamer", "gst-launch-1.0 isn't installed")
    with (
        gstreamer.open_source(SceneConfig(source="csi://0"), "scene") as source,
        pytest.raises(SourceError, match='no element "nvarguscamerasrc"'),
    ):
        wait_for(source, delivered)


def test_csi_shorthand_asks_for_size_and_rate():
    scene = SceneConfig(source="csi://1", width_px=1280, height_px=720, rate_hz=30)
    assert gstreamer.pipeline(scene) == (
        "nvarguscamerasrc sensor-id=1 ! video/x-raw(memory:NVMM),width=1280,height=720,framerate=30/1 "
        "! nvvidconv ! video/x-raw,format=BGRx"
    )


def test_a_paced_clip_takes_its_time_and_ends(data):
    clip = data / "faces" / "WolfgangLanger_Pexels.mp4"
    with paced.open_source(SceneConfig(source=f"paced:{clip}", end_s=1.0), "scene") as source:
        times = []
        while not source.ended:
            frame = source.read(5)
            times += [frame.t_ns] if frame else []
        assert source.status.captured == 24  # 23.976 pictures per second, the first at 0
        assert times[-1] - times[0] >= 22 / 23.976 * 1e9
        assert source.read(0) is None


def test_an_absent_device_is_named():
    with pytest.raises(AbsentError, match=r"^/dev/video97: no such camera is plugged in$"):
        camera.check_device(camera.device_path("97"))


def test_a_file_is_no_camera(tmp_path):
    (tmp_path / "video0").touch()
    with pytest.raises(SourceError, match="is no camera"):
        camera.check_device(tmp_path / "video0")


@pytest.mark.parametrize(
    ("source", "plugin"),
    [
        ("0", camera), ("/dev/video2", camera), ("/dev/v4l/by-id/usb-cam", camera), ("rtsp://10.0.0.2/a", rtsp),
        ("http://10.0.0.2/a", http), ("csi://0", gstreamer), ("gst:videotestsrc", gstreamer),
        ("v4l2src ! videoconvert", gstreamer), ("paced:a.mp4", paced),
    ],
)  # fmt: skip
def test_each_source_text_belongs_to_one_plugin(source, plugin):
    assert [m for m in (camera, gstreamer, http, paced, rtsp) if m.matches(source)] == [plugin]


def test_nothing_is_left_when_the_runtime_is_killed(serve):
    """A parent that gets SIGKILL takes its reader along, without a chance to say so."""
    server = serve("mjpeg", *SMALL)
    code = (
        "import time; from edge.config import SceneConfig; from edge.capture import http\n"
        f"source = http.open_source(SceneConfig(source={server.url!r}), 'scene')\n"
        "source.read(10); print('up', flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None and parent.stdout.readline() == "up\n"
    (reader,) = children_of(parent.pid)
    parent.kill()
    parent.communicate()
    give_up = time.monotonic() + 10
    while Path(f"/proc/{reader}").exists() and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not Path(f"/proc/{reader}").exists()


def test_closing_ends_the_child_and_frees_everything(serve):
    server = serve("mjpeg", *SMALL)
    before = len(os.listdir("/proc/self/fd"))
    source = LiveSource("http", SceneConfig(source=server.url), "scene")
    wait_for(source, delivered)
    source.close()
    source.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert children_of(os.getpid()) == [server.process.pid]
    assert source.read(0) is None
