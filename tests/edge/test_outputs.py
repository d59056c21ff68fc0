"""What stands between the pipeline and the sinks: consent, and differential privacy at the source."""

from __future__ import annotations

import ast
import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from kept_sink import Kept

from edge.config import Config, from_dict, load
from edge.consent import KINDS, SCORE_KEYS, new_consent
from edge.errors import SinkError
from edge.keys import KeyRing, new_signing_pair, read_private
from edge.outputs import guard_sinks, public_settings, refuse_overwriting, refused_sinks
from edge.records import Event


@pytest.fixture
def consent(tmp_path: Path) -> Path:
    new_signing_pair(tmp_path / "operator.key")
    KeyRing(tmp_path / "keys").trust("operators", "clinic", (tmp_path / "operator.pub").read_text())
    key = read_private(tmp_path / "operator.key")
    record = new_consent(key, "S-01", ["scores"], 1, "dr-a", now=datetime.now(timezone.utc))
    (tmp_path / "consent.json").write_text(json.dumps(record))
    return tmp_path / "consent.json"


def config(tmp_path: Path, **sections: dict) -> Config:
    return from_dict({"keys": {"dir": str(tmp_path / "keys")}, **sections}, thing="test")


def kept_of(settings: Config) -> list[str]:
    kept = Kept()
    for sink in guard_sinks([kept], settings, {}):
        for kind in ("session", "score", "fixation"):
            sink.event(Event(0, 0, 0, kind, {"gaze": [[1]], "score": {"fcc": 1.0}} if kind == "score" else {}))
    return [event.kind + "".join(f" {key}" for key in event.payload) for event in kept.events]


def test_without_a_consent_record_sinks_get_all(tmp_path):
    assert kept_of(config(tmp_path)) == ["session", "score gaze score", "fixation"]


def test_a_consent_limits_every_sink(tmp_path, consent):
    assert kept_of(config(tmp_path, record={"consent": str(consent)})) == ["session", "score score"]


def test_a_consent_that_cannot_be_used_allows_nothing(tmp_path, consent, capsys):
    consent.write_text(consent.read_text().replace("S-01", "S-02"))
    files = {"events": "e.ndjson", "video": "v.mp4", "summary": "s.json", "allow_plaintext": True}
    settings = config(tmp_path, record={"consent": str(consent)}, sinks=files)
    assert refused_sinks(settings) == ["events", "video"], "an empty log would look like one of a run"
    assert kept_of(settings) == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("emogaze: no sink gets anything: ")
    assert "was altered" in line


def test_a_clip_is_not_begun_if_pictures_were_not_agreed_to(tmp_path, consent, capsys):
    files = {"events": "e.ndjson", "video": "v.mp4", "allow_plaintext": True}
    assert refused_sinks(config(tmp_path, record={"consent": str(consent)}, sinks=files)) == ["video"]
    assert "sinks.video is not started: the consent is not to redacted_video" in capsys.readouterr().err


def test_all_that_a_missing_consent_stops_is_said_in_one_line(tmp_path, capsys):
    files = {"events": str(tmp_path / "e.ndjson.age"), "video": str(tmp_path / "v.mp4.age")}
    assert refused_sinks(config(tmp_path, sinks=files, record={"dir": str(tmp_path / "rec")})) == ["events", "video"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("emogaze: not started: sinks.events, sinks.video, the recording: record.consent: names no")


def test_privacy_at_the_source_stops_gaze_and_pictures(tmp_path, capsys):
    dp = {"epsilon": 1.0, "ledger": str(tmp_path / "ledger.jsonl")}
    assert kept_of(config(tmp_path, dp=dp)) == ["session"]
    files = {"events": "e.ndjson", "video": "v.mp4", "allow_plaintext": True}
    assert refused_sinks(config(tmp_path, dp=dp, sinks=files)) == ["video"]
    assert "under differential privacy no picture leaves" in capsys.readouterr().err


def dict_keys_and_event_kinds() -> tuple[set[str], set[str]]:
    """Return the keys of a score's payload and the kinds of all events, as the source code writes them."""
    keys, kinds = set(), set()
    for path in Path("edge").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "step_to_plain":
                keys |= {k.value for d in ast.walk(node) if isinstance(d, ast.Dict) for k in d.keys if k}
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "event":
                first = node.args[0] if node.args else None
                kinds |= {first.value} if isinstance(first, ast.Constant) else set()
    return keys, kinds


def test_every_event_and_key_falls_under_a_purpose(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    keys, kinds = dict_keys_and_event_kinds()
    assert {"score", "session", "mark", "gaze"} <= kinds
    assert kinds <= set(KINDS)
    assert {"features", "gaze"} <= keys
    assert keys - {"reason", "skipped"} <= set(SCORE_KEYS)


def test_headers_show_no_passwords_of_cameras():
    shown = public_settings(load(overrides=["scene.source='rtsp://me:secret@10.0.0.7/ch1'", "gaze.source='a.csv'"]))
    assert (shown["scene"]["source"], shown["gaze"]["source"]) == ("rtsp://10.0.0.7/ch1", "a.csv")
    assert "secret" not in json.dumps(shown)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"scene": "a.mp4", "video": "a.mp4"}, "itself, scene.source", id="scene"),
        pytest.param({"scene": "paced:a.mp4?loop", "video": "./a.mp4"}, "itself, scene.source", id="paced"),
        pytest.param({"scene": "a.part.mp4", "video": "a.mp4"}, "itself, scene.source", id="part"),
        pytest.param({"face_camera": "a.mp4", "video": "symbolic.mp4"}, "itself, face_camera.source", id="symlink"),
        pytest.param({"gaze": "g.csv", "events": "g.csv"}, "itself, gaze.source", id="gaze"),
        pytest.param({"gaze": "g.csv", "summary": "hard.csv"}, "itself, gaze.source", id="hard-link"),
        pytest.param({"environment": "d", "summary": "d/e.json"}, "in environment.cache", id="cache"),
        pytest.param({"scene": "paced:d", "events": "d/e.json"}, "one of the files in scene.source", id="pictures"),
        pytest.param({"scene": "d/sub", "video": "d/sub/b.mp4"}, "in scene.source", id="part-in-folder"),
        pytest.param({"gaze": "session:d?identity=i", "events": "hard.json"}, "in gaze.source", id="session"),
        pytest.param({"record": ".", "summary": "20260101T000000Z-0a/x.chain"}, "in record.dir", id="recordings"),
        pytest.param({"keys": "d", "summary": "d/e.json"}, "in keys.dir", id="keys"),
        pytest.param({"summary": "run.toml"}, "itself, the settings file", id="settings"),
        pytest.param({"events": "z.json", "summary": "new/../z.json"}, "summary = .* is sinks.events too", id="twins"),
    ],
)
def test_an_output_takes_the_place_of_nothing_that_is_read_or_written(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    for name in ("a.mp4", "a.part.mp4", "g.csv", "run.toml"):
        Path(name).write_text(name)
    Path("symbolic.mp4").symlink_to("a.mp4")
    Path("hard.csv").hardlink_to("g.csv")
    Path("d/sub").mkdir(parents=True)
    Path("d/e.json").touch()
    Path("d/sub/b.part.mp4").touch()
    Path("20260101T000000Z-0a").mkdir()
    Path("20260101T000000Z-0a/x.chain").touch()
    Path("hard.json").hardlink_to("d/e.json")
    sinks = {key: text for key, text in settings.items() if key in ("events", "video", "summary")}
    read = {key: settings[key] for key in settings.keys() - sinks.keys()}
    names = {"environment": "cache", "record": "dir", "keys": "dir"}
    sections = {key: {names.get(key, "source"): text} for key, text in read.items()}
    with pytest.raises(SinkError, match=message):
        refuse_overwriting(from_dict({**sections, "sinks": sinks}, thing="test"), Path("run.toml"))
    Path("out").mkdir()
    Path("out/s.json").touch()  # of a run before
    others = {"events": "e.ndjson", "video": "d/v.mp4", "summary": "out/s.json"}
    refuse_overwriting(from_dict({**sections, "sinks": others}, thing="test"), Path("run.toml"))


def test_a_clinical_run_told_to_write_in_the_clear_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sinks = {"events": "e.ndjson", "summary": "s.json", "allow_plaintext": True}
    assert refused_sinks(config(tmp_path, preset="clinical", sinks=sinks)) == []
    assert "in the clear, as sinks.allow_plaintext has it: sinks.events, sinks.summary" in capsys.readouterr().err
    assert refused_sinks(config(tmp_path, preset="bench", sinks=sinks)) == []
    assert "in the clear" not in capsys.readouterr().err
