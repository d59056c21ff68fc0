"""The whole pipeline on a real clip with simulated gaze: determinism, rerun, and what happens to bad input."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import msgspec
import pytest

from edge import events
from edge.app import run
from edge.config import Config, SinksConfig, load
from edge.environment import EnvironmentInfo
from edge.errors import DataError, EmoGazeError
from edge.gaze.geometry import Camera
from edge.gaze.simulator import free_looks, simulate, write_csv
from edge.ladder import Ladder, Rung, write_ladder
from edge.stopping import stop_on_signals
from edge.summary import Summary
from host_tools.rerun import rerun

SEED, HZ = 3, 200.0


@pytest.fixture(scope="module")
def inputs(data: Path, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the gaze and the environment cache of the clip."""
    folder = tmp_path_factory.mktemp("inputs")
    clip = data / "faces" / "WolfgangLanger_Pexels.mp4"
    (folder / "clip.mp4").symlink_to(clip)
    camera = Camera(width_px=640, height_px=360, hfov_deg=60.0).complete()
    write_csv(folder / "gaze.csv", simulate(free_looks(6.0, SEED), HZ, SEED), seed=SEED, hz=HZ, camera=camera)
    (folder / "environment").symlink_to(environment)
    return folder


def settings(inputs: Path, output: Path, *more: str, preset: str = "") -> Config:
    paths = {
        "scene.source": inputs / "clip.mp4",
        "gaze.source": inputs / "gaze.csv",
        "environment.cache": inputs / "environment",
        "sinks.events": output / "events.ndjson",
        "sinks.video": output / "redacted.mp4",
        "sinks.summary": output / "summary.json",
    }
    overrides = [f"{key}='{path}'" for key, path in paths.items()]
    overrides += ["scene.start_s=2", "scene.end_s=3.5", "sinks.allow_plaintext=true", "face_camera.source=scene"]
    return load(overrides=[*overrides, *more], preset=preset)


@pytest.fixture(scope="module")
def first(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    output = tmp_path_factory.mktemp("first")
    return output, run(settings(inputs, output))


def without_emit_times(path: Path, output: Path) -> list[dict]:
    lines = [json.loads(line) for line in path.read_text().replace(str(output), "OUT").splitlines()]
    return [{key: value for key, value in line.items() if key != "t_emit_ns"} for line in lines]


def test_same_files_give_the_same_events(inputs: Path, first: tuple[Path, Summary], tmp_path: Path) -> None:
    told = []
    run(settings(inputs, tmp_path), watch=lambda frames, total: told.append(total) or frames)
    again = without_emit_times(tmp_path / "events.ndjson", tmp_path)
    assert again == without_emit_times(first[0] / "events.ndjson", first[0])
    assert told == [first[1].frames], "the pictures of the played part"


def test_rerun_gives_every_score_bit_for_bit(first: tuple[Path, Summary]) -> None:
    path = first[0] / "events.ndjson"
    outcome, scores = rerun(events.read_log(path), str(path))
    assert outcome.complete and outcome.identical, outcome.differences
    assert outcome.scores == len(scores) == first[1].frames > 30
    assert first[1].scores > 10
    with pytest.raises(DataError, match=r"holds no cache of mobilenet_v2-fp32, .*--cache"):
        rerun(events.read_log(path), str(path), cache=first[0])


def test_rerun_notices_a_score_that_was_altered(first: tuple[Path, Summary], tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    lines = (first[0] / "events.ndjson").read_text().splitlines()
    for number, line in enumerate(lines):
        event = json.loads(line)
        if event["kind"] == "score" and event["payload"]["score"]["fcc_now"] is not None:
            event["payload"]["score"]["fcc_now"] += 1e-16 + 1e-12
            lines[number] = json.dumps(event)
            break
    path.write_text("\n".join(lines) + "\n")
    outcome, _ = rerun(events.read_log(path), str(path))
    assert outcome.scores - outcome.scores_equal == 1
    assert "fcc_now was" in outcome.differences[0]


def test_rerun_notices_lines_that_were_doubled_swapped_or_removed(first: tuple[Path, Summary], tmp_path: Path) -> None:
    lines = (first[0] / "events.ndjson").read_text().splitlines()
    scores = [i for i, line in enumerate(lines) if '"kind":"score"' in line]
    doubled = [*lines[: scores[5] + 1], *lines[scores[5] :]]
    swapped = list(lines)
    swapped[scores[5]], swapped[scores[5] + 1] = swapped[scores[5] + 1], swapped[scores[5]]
    removed = [line for i, line in enumerate(lines) if i != scores[5]]
    found = []
    for altered in (doubled, swapped, removed):
        path = tmp_path / "events.ndjson"
        path.write_text("\n".join(altered) + "\n")
        outcome, _ = rerun(events.read_log(path), str(path))
        assert "the log is whole" not in outcome.notes()
        found.append((outcome.out_of_order > 0, outcome.missing_events))
    assert found == [(True, 0), (True, 1), (False, 1)]


def test_every_picture_left_as_video(first: tuple[Path, Summary]) -> None:
    import av

    with av.open(str(first[0] / "redacted.mp4")) as container:
        frames = sum(1 for _ in container.decode(video=0))
    assert frames == first[1].frames
    summary = json.loads((first[0] / "summary.json").read_text())
    assert summary["frames"] == frames
    assert summary["faces_covered"] <= summary["faces_seen"] > 0
    assert set(summary["latency_ms"]["score_path_without_inference"]) == {"n", "p50", "p90", "p99", "max"}


def test_a_run_that_is_stopped_ends_well_and_says_so(inputs: Path, tmp_path: Path) -> None:
    import av

    with stop_on_signals() as stop:
        summary = run(settings(inputs, tmp_path), on_step=lambda step: signal.raise_signal(signal.SIGTERM), stop=stop)
    assert (summary.frames, summary.stopped) == (1, "SIGTERM")
    assert summary.lines()[0].startswith("stopped early by SIGTERM")
    assert f"written: {tmp_path / 'summary.json'}" in summary.lines()
    assert json.loads((tmp_path / "summary.json").read_text())["stopped"] == "SIGTERM"
    last = list(events.read_log(tmp_path / "events.ndjson"))[-1]
    assert (last.kind, last.payload["stopped"]) == ("end", "SIGTERM")
    with av.open(str(tmp_path / "redacted.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == 1


def test_gaze_without_a_valid_sample_is_said(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (inputs / "gaze.csv").read_text().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("t,"))
    lost = [line.split(",")[0] + "," * lines[head].count(",") for line in lines[head + 1 :]]
    (tmp_path / "lost.csv").write_text("\n".join([*lines[: head + 1], *lost]) + "\n")
    given = settings(inputs, tmp_path, f"gaze.source='{tmp_path / 'lost.csv'}'", "scene.end_s=2.1")
    assert run(given).scores == 0
    assert f"none of its {len(lost)} samples is valid" in capsys.readouterr().err


def test_clinical_preset_starts_no_file_sink_and_says_so(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run(settings(inputs, tmp_path, "sinks.allow_plaintext=false", preset="clinical"))
    assert sorted(summary.refused_sinks) == ["events", "summary", "video"]
    assert list(tmp_path.iterdir()) == []
    assert "sinks.events is not started: it would write in the clear" in capsys.readouterr().err
    assert summary.faces_covered == summary.faces_seen > 0


def shifted_gaze(folder: Path, start_s: float) -> str:
    path = folder / "shifted.csv"
    rows = "".join(f"{start_s + i / 50},10,10\n" for i in range(50))
    path.write_text("# units: px\n# frame: scene_px\nt,x,y\n" + rows)
    return str(path)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        pytest.param("scene.source=nowhere.mp4", "nowhere.mp4", id="no-clip"),
        pytest.param("gaze.source=nowhere.csv", "nowhere.csv", id="no-gaze"),
        pytest.param("scene.start_s=500", "no picture", id="empty-span"),
        pytest.param("environment.cache=nowhere", "nowhere", id="no-cache"),
        pytest.param("models.embedder=nothing-fp32", "nothing-fp32", id="no-model"),
        pytest.param("score.embedding=raw", "another embedding", id="other-embedding"),
        pytest.param("sinks.allow_plaintext=false", "in the clear", id="plaintext-refused"),
        pytest.param("sinks.events=/dev/null", "is there and is no file", id="device"),
        pytest.param("sinks.events=/tmp", "is there and is no file", id="folder"),
        pytest.param("gaze.offset_ms=nan", "must be a finite number", id="nan"),
        pytest.param("sinks.events=/proc/none/events.ndjson", "can't be written", id="unwritable"),
        pytest.param("sinks.summary=/proc/none/summary.json", "can't be written", id="unwritable-summary"),
    ],
)
def test_bad_input_ends_in_one_line_and_leaves_nothing_whole(
    inputs: Path, tmp_path: Path, override: str, says: str
) -> None:
    with pytest.raises(EmoGazeError) as caught:
        run(settings(inputs, tmp_path, override))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "events.ndjson").exists()
    assert not (tmp_path / "redacted.mp4").exists()
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize(
    ("start_s", "left"),
    [
        pytest.param(100.0, [], id="long after it"),
        pytest.param(-9.0, [], id="before it"),
        pytest.param(0.9, [], id="before the part that is played"),
        pytest.param(2.9, ["events.ndjson.part", "redacted.part.mp4"], id="just after it"),  # only decoding shows it
    ],
)
def test_gaze_that_does_not_overlap_the_clip(inputs: Path, tmp_path: Path, start_s: float, left: list[str]) -> None:
    geometry = "camera = {width_px = 640, height_px = 360, hfov_deg = 60.0}"
    more = (f"gaze.source='{shifted_gaze(tmp_path, start_s)}'", f"gaze.geometry='{geometry}'", "gaze.time_unit=s")
    more = (*more, "scene.end_s=2.1")
    with pytest.raises(EmoGazeError, match="no gaze sample lies within the clip's time"):
        run(settings(inputs, tmp_path, *more))
    assert {path.name for path in tmp_path.iterdir()} - {"shifted.csv"} == set(left)


def test_sinks_are_off_by_default() -> None:
    assert not any(getattr(SinksConfig(), name) for name in ("events", "video", "summary"))


def test_the_precision_follows_the_battery_and_its_cache_follows(inputs: Path, artefacts: Path, tmp_path: Path) -> None:
    models, ladder, telemetry = tmp_path / "models", tmp_path / "ladder.json", tmp_path / "telemetry.ndjson"
    twin = twin_artefact(artefacts, models)
    rungs = (Rung(artefact="mobilenet_v2-fp32", latency_ms=9, drift=0), Rung(artefact=twin, latency_ms=3, drift=0.01))
    write_ladder(ladder, Ladder(machine="test", rungs=rungs))
    telemetry.write_text('{"t_s": 0, "battery_percent": 80}\n{"t_s": 2.7, "battery_percent": 20}\n')
    environment = twin_cache(inputs / "environment", tmp_path / "environment", twin)
    more = {
        "models.dir": models,
        "governor.ladder": ladder,
        "telemetry.source": telemetry,
        "environment.cache": environment,
    }
    overrides = [f"{key}='{path}'" for key, path in more.items()]
    run(settings(inputs, tmp_path, *overrides, "governor.min_side_px=360"))
    log = list(events.read_log(tmp_path / "events.ndjson"))
    switches = [event for event in log if event.kind == "precision"]
    assert [event.payload for event in switches] == [{"rung": 1, "reasons": ["battery"]}]
    scores = [event for event in log if event.kind == "score"]
    for event in scores:
        expected = twin if event.t_ns >= switches[0].t_ns else "mobilenet_v2-fp32"
        score = event.payload["score"]
        assert score["reason"] or score["model_id"].startswith(f"{expected}@")
        assert score["reason"] != "model_mismatch"
    ids = [event.payload["frame_id"] for event in scores]
    assert ids == list(range(ids[0], ids[0] + len(ids))), "a switch costs no frame"
    assert rerun(iter(log), "log")[0].identical


def twin_artefact(artefacts: Path, folder: Path) -> str:
    """Fill `folder` with the artefacts and a second one of the embedder, under another name."""
    name = "mobilenet_v2-twin"
    folder.mkdir()
    for artefact in artefacts.iterdir():
        (folder / artefact.name).symlink_to(artefact)
    (folder / name).mkdir()
    for file in (artefacts / "mobilenet_v2-fp32").iterdir():
        (folder / name / file.name).symlink_to(file)
    description = json.loads((folder / name / "model.json").read_text())
    (folder / name / "model.json").unlink()
    (folder / name / "model.json").write_text(json.dumps({**description, "name": name}))
    return name


def twin_cache(environment: Path, folder: Path, twin: str) -> Path:
    """Copy an environment and give it a second cache, of the twin: it has the same weights, and so the same vectors."""
    shutil.copytree(environment, folder)
    part = shutil.copytree(folder / "mobilenet_v2-fp32", folder / twin)
    text = (part / "env.json").read_text()
    info = msgspec.json.decode(text.replace('"mobilenet_v2-fp32', f'"{twin}'), type=EnvironmentInfo)
    (part / "env.json").write_bytes(msgspec.json.encode(info.sealed()))
    return folder
