"""A live run with consent, encryption and CURVE together, commanded over the network."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from typer.testing import CliRunner

from edge.cli import app
from edge.errors import SinkError
from edge.gaze.geometry import Camera
from edge.gaze.simulator import free_looks, simulate, write_csv
from edge.keys import new_wire_pair
from edge.live.control import ask
from edge.session.layout import sessions
from edge.session.read import open_log, session_identity
from edge.session.verify import verify
from host_tools.rerun import rerun

ROOT = Path(__file__).parents[3]
LIMIT_S = 90


def wait_for_frames(control: Path, n: int) -> None:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            if ask(control, cmd="status")["status"]["frames"] >= n:
                return
        except (SinkError, KeyError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"no {n} frames within {LIMIT_S} s")


def test_a_recording_commanded_over_the_network(study, data, artefacts, tmp_path):
    camera = Camera(width_px=640, height_px=360, hfov_deg=60.0).complete()
    write_csv(tmp_path / "gaze.csv", simulate(free_looks(20.0, 5), 200.0, 5), seed=5, hz=200.0, camera=camera)
    public = new_wire_pair(study.root / "nurse.key")
    study.ring.trust("clients", "nurse", f"curve {public} control")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    settings = {
        "scene.source": f"paced:{data}/faces/WolfgangLanger_Pexels.mp4?loop",
        "gaze.source": f"paced:{tmp_path}/gaze.csv?loop",
        "record.dir": study.recordings,
        "record.consent": study.consent(),
        "keys.dir": study.ring.folder,
        "live.control": tmp_path / "c.sock",
        "live.control_address": address,
        "models.face_recall": "",
    }
    words = [w for key, value in settings.items() for w in ("--set", f"{key}='{value}'")]
    command = [sys.executable, "-m", "edge.cli", "run", *words, "--set", "record.min_free_mb=0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_frames(tmp_path / "c.sock", 20)
        nurse = ["--socket", address, "--key", str(study.root / "nurse.key"), "--device", study.ring.wire()[0]]
        for words in (["mark", "drug given"], ["status"], ["stop"]):
            done = CliRunner().invoke(app, ["control", *words, *nurse])
            assert done.exit_code == 0, done.output
        out, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    (session,) = sessions(study.recordings)
    assert f"written: {session.folder}" in out
    assert verify(session, identity=session_identity(session, study.identity)).state == "complete"
    log = list(open_log(session.folder, study.escrow))
    assert [e.payload["text"] for e in log if e.kind == "mark"] == ["drug given"]
    outcome, scores = rerun(log, "session")
    assert outcome.complete and outcome.identical and scores, outcome.differences[:3]
