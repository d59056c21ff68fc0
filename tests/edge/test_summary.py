"""What a run tells of itself at its end, and the file in which it tells it."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest

from edge.config import Config, from_dict
from edge.errors import SinkError
from edge.summary import Summary, written_at_end


def config(path: Path) -> Config:
    return from_dict({"sinks": {"summary": str(path)}}, thing="test")


def test_a_sink_that_failed_is_said_and_not_called_written():
    summary = Summary(frames=1, events="e.ndjson", video="v.mp4", sink_errors={"events": "no space left"})
    assert summary.lines()[-2:] == ["written: v.mp4", "failed: sink events: no space left"]


def test_a_run_without_an_environment_says_how_to_get_one():
    hint = 'no score without an environment: `emogaze env build VIEWS -o DIR` makes a cache, environment.cache = "DIR"'
    assert any(line.startswith(hint) for line in Summary(frames=1, fcc_undefined={"no_environment": 1}).lines())
    assert not any(hint in line for line in Summary(frames=1, fcc_undefined={"no_fixation": 1}).lines())


@pytest.mark.parametrize("frames", [0, 1], ids=["before-the-first-score", "scored"])
def test_a_recording_that_did_not_start_is_in_the_last_lines(frames):
    summary = Summary(frames=frames, not_recorded="S-01.json: has expired")
    assert summary.lines()[-1] == "NOT RECORDED: S-01.json: has expired"
    assert not any("RECORDED" in line for line in Summary(frames=frames).lines())


def test_the_summary_is_there_once_the_run_has_ended_well(tmp_path):
    path, summary = tmp_path / "s.json", Summary()
    with written_at_end(summary, config(path)):
        summary.frames = 3
        assert not path.exists()
    assert json.loads(path.read_text())["frames"] == 3
    assert list(tmp_path.iterdir()) == [path]


def test_differential_privacy_leaves_what_follows_from_gaze_out_of_the_file(tmp_path):
    path = tmp_path / "s.json"
    settings = from_dict({"sinks": {"summary": str(path)}, "dp": {"epsilon": 1.0}}, thing="test")
    with written_at_end(Summary(frames=3, scores=2, fcc_mean=0.5, fixations=1), settings):
        pass
    told = json.loads(path.read_text())
    assert told["frames"] == 3
    assert not {"scores", "fcc_mean", "fixations", "fcc_undefined", "faces_covered"} & told.keys()


def test_a_run_that_failed_leaves_the_summary_of_the_one_before(tmp_path):
    path = tmp_path / "s.json"
    path.write_text("before")
    with pytest.raises(SystemExit), written_at_end(Summary(), config(path)):
        raise SystemExit(143)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_two_runs_do_not_write_one_summary(tmp_path):
    path = tmp_path / "s.json"
    with (
        written_at_end(Summary(frames=1), config(path)),
        pytest.raises(SinkError, match=r"s\.json: is being written by another run"),
        written_at_end(Summary(frames=2), config(path)),
    ):
        pass
    assert json.loads(path.read_text())["frames"] == 1


def test_a_full_disk_is_told_as_of_any_output_with_the_name_of_the_file(tmp_path):
    path, summary = tmp_path / "s.json", Summary(frames=1, summary=str(tmp_path / "s.json"))
    ignored, before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with written_at_end(summary, config(path)):
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # no file may grow beyond 10 bytes
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    problem = f"{path}: can't be finished: {os.strerror(27)}"
    assert summary.lines()[-1] == f"failed: sink summary: {problem}"
    assert list(tmp_path.iterdir()) == []


def test_a_summary_is_encrypted_by_its_name(study, tmp_path):
    path = tmp_path / "s.json.age"
    keys = {"dir": str(study.ring.folder)}
    with written_at_end(Summary(), from_dict({"sinks": {"summary": str(path)}, "keys": keys}, thing="test")):
        pass
    assert path.read_bytes().startswith(b"age-encryption.org/v1")
