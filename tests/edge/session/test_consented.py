"""No recording without consent, none beyond it, and none after it is withdrawn."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from edge.consent import consent_problem, read_consent
from edge.errors import KeyFileError, RecordingError
from edge.exports import export
from edge.keys import KeyRing
from edge.outputs import refused_sinks
from edge.records import Event, RedactedFrame
from edge.session.audit import append_audit, read_audit
from edge.session.layout import sessions
from edge.session.read import read_events, read_items
from edge.session.retention import purge, withdraw
from edge.session.segment import Picture
from edge.session.verify import verify
from edge.sinks.recorder import open_sink


@pytest.mark.parametrize("case", ["none-set", "missing", "expired", "altered", "withdrawn"])
def test_without_a_valid_consent_nothing_is_recorded_and_it_is_said(study, capsys, case):
    path = study.consent(now=datetime.now(timezone.utc) - timedelta(days=40) if case == "expired" else None)
    if case == "altered":
        path.write_text(path.read_text().replace("S-01", "S-02"))
    if case == "withdrawn":
        withdraw(study.recordings, json.loads(path.read_text())["id"], study.ring, by="S-01")
    setting = {"none-set": "", "missing": str(study.root / "nothing.json")}.get(case, str(path))
    header = {}
    refused_sinks(study.config(consent=setting))
    assert open_sink(study.config(consent=setting), header) is None
    assert header["recording"]["state"] == "off"
    (line,) = capsys.readouterr().err.splitlines()
    what = "no sink gets anything" if setting else "not started: the recording"
    assert line == f"emogaze: {what}: {header['recording']['reason']}"
    assert sessions(study.recordings) == []


def test_recording_that_is_not_asked_for_is_off(study):
    assert open_sink(study.config(dir=""), {}) is None


@pytest.mark.parametrize("missing", ["signing.key", "recipients.txt"])
def test_without_a_key_recording_refuses_to_start(study, missing):
    (study.ring.folder / missing).unlink()
    with pytest.raises(KeyFileError, match=missing):
        open_sink(study.config(), {})
    assert sessions(study.recordings) == []


def record_one(study, *purposes: str) -> dict:
    payload = {
        "score": {"fcc": 0.5, "fcc_now": 0.4, "frame_id": 3},
        "gaze": [[1, 5, 10.0, 20.0, 1.0, True, None, None]],
        "features": {"local": "AAAA", "global": "AAAA"},
        "fixation": {"x_px": 10.0},
    }
    with study.open(consent=str(study.consent(*purposes))) as sink:
        sink.event(Event(0, 1, 2, "score", payload))
        sink.event(Event(1, 1, 2, "a_kind_of_next_year", {"gaze": 1}))
        sink.event(Event(1, 1, 2, "fixation", {"x_px": 1.0}))
        sink.event(Event(1, 1, 2, "aux", {"stream": "EEG", "channels": [1.0]}))
        sink.picture(RedactedFrame(1, 1, np.zeros((16, 16, 3), np.uint8), "cam", "scene", ()))
    items = list(read_items(sessions(study.recordings)[-1].folder, study.identity))
    kinds = {item.kind if isinstance(item, Event) else "picture" for item in items}
    score = next((item.payload for item in items if isinstance(item, Event) and item.kind == "score"), {})
    return {"kinds": kinds, "keys": set(score)}


@pytest.mark.parametrize(
    ("purposes", "kinds", "keys"),
    [
        (["scores"], {"score"}, {"score"}),
        (["scores", "gaze"], {"score", "fixation"}, {"score", "gaze", "fixation"}),
        (["scores", "features"], {"score"}, {"score", "features"}),
        (["scores", "physiology"], {"score", "aux"}, {"score"}),
        (["scores", "redacted_video"], {"score", "picture"}, {"score"}),
        (["redacted_video"], {"picture"}, set()),
        (
            ["scores", "gaze", "features", "physiology"],
            {"score", "fixation", "aux", "a_kind_of_next_year"},
            {"score", "gaze", "fixation", "features"},
        ),
    ],
    ids=lambda value: "+".join(sorted(value)) or "nothing",
)
def test_only_what_was_agreed_to_is_kept(study, purposes, kinds, keys):
    found = record_one(study, *purposes)
    assert (found["kinds"], found["keys"]) == (kinds, keys)


def test_withdrawal_makes_sessions_unreadable_and_leaves_the_proof(study, tmp_path):
    consent = study.consent()
    other = study.record(3)
    mine = study.record(3, consent=str(consent))
    copy = tmp_path / "copy.csv"
    export(mine.folder, study.identity, copy, kind="score", role="scene")
    append_audit(study.ring, "export", session=mine.name, to=str(copy))
    (tombstone,) = withdraw(study.recordings, json.loads(consent.read_text())["id"], study.ring, by="S-01")
    assert tombstone["exports"] == [str(copy)]
    assert "flash may keep" in tombstone["flash_note"]
    with pytest.raises(RecordingError, match=r"its key was deleted: consent .* was withdrawn"):
        list(read_events(mine.folder, study.identity))
    assert verify(mine).state == "complete"
    assert len(list(read_events(other.folder, study.identity))) == 3


@pytest.mark.parametrize("damage", ["deleted", "altered", "unreadable"])
def test_a_withdrawal_says_which_session_it_cannot_judge_and_ends_the_others(study, damage):
    consent = study.consent()
    first, second = (study.record(1, consent=str(consent)) for _ in range(2))
    if damage == "unreadable":
        first.chain.unlink()
        first.chain.mkdir()  # root reads whatever its mode is, but no folder
    elif damage == "deleted":
        first.chain.unlink()
    else:
        first.chain.write_bytes(first.chain.read_bytes().replace(b"start", b"stort", 1))
    message = rf"{first.name}.*(lost or damaged|can't be read).*: 1 session\(s\) were ended"
    with pytest.raises(RecordingError, match=message):
        withdraw(study.recordings, json.loads(consent.read_text())["id"], study.ring, by="S-01")
    assert not second.key.exists()


def test_retention_ends_old_sessions_only(study):
    paths = study.record(1)
    created = json.loads(paths.chain.read_bytes().splitlines()[0])["created"]
    assert purge(study.recordings, study.ring, days=1, now_s=created + 86400 - 1) == []
    (ended,) = purge(study.recordings, study.ring, days=1, now_s=created + 86400 + 1)
    assert ended["reason"] == "retention time of 1 days"
    assert not paths.key.exists()
    assert purge(study.recordings, study.ring, days=0, now_s=created * 2) == []


def test_retention_names_a_session_that_it_cannot_judge_and_ends_the_others(study, caplog):
    lost, old = study.record(1), study.record(1)
    later = json.loads(old.chain.read_bytes().splitlines()[0])["created"] + 2 * 86400
    lost.chain.unlink()
    with pytest.raises(RecordingError, match=rf"{lost.name}.*lost or damaged: 1 session\(s\) were ended; the age of"):
        purge(study.recordings, study.ring, days=1, now_s=later)
    assert (lost.key.exists(), old.key.exists()) == (True, False)
    assert study.record(1, retention_days=1).key.exists(), "a new session starts all the same"
    assert lost.name in caplog.text


def test_the_audit_log_is_append_only_and_shows_tampering(study):
    for n in range(3):
        append_audit(study.ring, "test", number=n)
    study.ring.rotate("signing")
    append_audit(study.ring, "test", number=3)
    log = study.ring.folder / "audit.jsonl"
    assert [line["number"] for line in read_audit(study.ring).lines if line["kind"] == "test"] == [0, 1, 2, 3]
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:1] + whole[2:]))
    assert "doesn't follow" in read_audit(study.ring).problem
    log.write_bytes(b"".join(whole).replace(b'"number":1', b'"number":7'))
    assert "bad signature" in read_audit(study.ring).problem


def test_a_half_line_from_a_power_cut_does_not_break_the_log(study):
    append_audit(study.ring, "one")
    with (study.ring.folder / "audit.jsonl").open("ab") as file:
        file.write(b'{"kind":"tw')
    append_audit(study.ring, "three")
    chain = read_audit(study.ring)
    assert ([line["kind"] for line in chain.lines], chain.problem) == (["one", "three"], "")


def test_a_machine_without_a_signing_key_keeps_no_log(tmp_path):
    append_audit(KeyRing(tmp_path), "export")
    assert list(tmp_path.iterdir()) == []


def test_a_picture_needs_its_purpose(study):
    with study.open(consent=str(study.consent("scores"))) as sink:
        sink.picture(RedactedFrame(1, 1, np.zeros((16, 16, 3), np.uint8), "cam", "scene", ()))
    items = list(read_items(sessions(study.recordings)[-1].folder, study.identity))
    assert not any(isinstance(item, Picture) for item in items)


def test_withdrawal_stops_a_running_recording(study):
    consent = study.consent()
    with (
        pytest.raises(RecordingError, match=r"recording stopped: consent .* was withdrawn"),
        study.open(consent=str(consent), flush_ms=50) as sink,
    ):
        sink.event(study.events(1)[0])
        withdraw(study.recordings, json.loads(consent.read_text())["id"], study.ring, by="S-01")
        for event in study.events(6000):
            sink.event(event)
            time.sleep(0.01)


def test_a_running_recording_asks_whether_its_consent_still_holds(study):
    now = datetime.now(timezone.utc)
    path = study.consent(days=2, now=now)
    consent = read_consent(path, study.ring.operators(), now=now)
    assert consent_problem(study.recordings, consent, now=now) == ""
    later = now + timedelta(days=2)
    assert consent_problem(study.recordings, consent, now=later) == f"consent {consent.id} has expired"
    withdraw(study.recordings, consent.id, study.ring, by="S-01")
    assert consent_problem(study.recordings, consent, now=now) == f"consent {consent.id} was withdrawn"
