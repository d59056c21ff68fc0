"""A live run follows the ladder by its telemetry, and embeds beside the score path; its log reruns bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from edge import events
from edge.gaze.geometry import Camera
from edge.gaze.simulator import free_looks, simulate, write_csv
from host_tools.rerun import rerun

ROOT = Path(__file__).parents[3]
HZ, SEED = 200.0, 5
LIMIT_S = 150  # the run takes some seconds; a busy machine must not fail a test


def test_the_precision_follows_the_battery_beside_the_score_path(data: Path, environment: Path, tmp_path: Path) -> None:
    """Both rungs are of one artefact, so that one cache serves them; the battery of the telemetry file is low."""
    rungs = [{"latency_ms": 9, "drift": 0, "threads": 1}, {"latency_ms": 5, "drift": 0.01, "threads": 2}]
    ladder, telemetry, gaze = (tmp_path / name for name in ("ladder.json", "telemetry.ndjson", "gaze.csv"))
    ladder.write_text(json.dumps({"machine": "test", "rungs": [{"artefact": "mobilenet_v2-fp32", **r} for r in rungs]}))
    telemetry.write_text('{"t_s": 0, "battery_percent": 20}')
    camera = Camera(width_px=640, height_px=360, hfov_deg=60.0).complete()
    write_csv(gaze, simulate(free_looks(20.0, SEED), HZ, SEED), seed=SEED, hz=HZ, camera=camera)
    settings = {
        "scene.source": f"paced:{data}/faces/WolfgangLanger_Pexels.mp4",
        "gaze.source": f"paced:{gaze}?loop",
        "environment.cache": environment,
        "sinks.events": tmp_path / "events.ndjson",
        "governor.ladder": ladder,
        "telemetry.source": telemetry,
        "models.face_recall": "",
        "live.control": tmp_path / "c.sock",
    }
    overrides = [f"{key}='{value}'" for key, value in settings.items()]
    overrides += [
        "scene.end_s=5",
        "sinks.allow_plaintext=true",
        "governor.min_side_px=360",
        "governor.asynchronous=true",
    ]
    command = [sys.executable, "-m", "edge.cli", "run", *(word for o in overrides for word in ("--set", o))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr

    log = list(events.read_log(tmp_path / "events.ndjson"))
    assert [e.payload for e in log if e.kind == "precision"] == [{"rung": 1, "reasons": ["battery"]}]
    scores = [e.payload for e in log if e.kind == "score"]
    embedded = [p for p in scores if p["features"]]
    assert embedded and all(p["embedding"]["reason"] == "" and not p["score"]["reason"] for p in embedded)
    # the first frame of a fixation can't have a result yet
    assert any(p["score"]["reason"] == "embedding_pending" for p in scores)
    outcome, again = rerun(iter(log), "log")
    assert outcome.identical and len(again) == len(scores)
