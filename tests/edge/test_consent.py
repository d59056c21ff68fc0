"""Consent unlocks recording, limits what is kept, and can be withdrawn."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from kept_sink import Kept

from edge.consent import ConsentError, LimitedSink, limit_event, new_consent, read_consent
from edge.keys import KeyRing, new_signing_pair, read_private
from edge.records import Event

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    new_signing_pair(tmp_path / "operator.key")
    return tmp_path / "operator.key"


@pytest.fixture
def ring(tmp_path: Path, operator: Path) -> KeyRing:
    ring = KeyRing(tmp_path / "keys")
    ring.trust("operators", "clinic", operator.with_suffix(".pub").read_text())
    return ring


@pytest.fixture
def record(tmp_path: Path, operator: Path) -> Path:
    body = new_consent(read_private(operator), "S-01", ["scores", "gaze"], 10, "dr-a", now=NOW)
    path = tmp_path / "consent.json"
    path.write_text(json.dumps(body))
    return path


def test_a_good_record_is_read(record, ring):
    consent = read_consent(record, ring.operators(), now=NOW)
    assert (consent.subject, consent.purposes, consent.taken_by) == ("S-01", {"scores", "gaze"}, "dr-a")
    assert consent.expires == NOW + timedelta(days=10)
    assert (consent.allows("gaze"), consent.allows("features")) == (True, False)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("purposes", ["scores", "features"], "was altered"),
        ("expires", "2036-05-01T12:00:00Z", "was altered"),
        ("operator", "0" * 16, "doesn't trust"),
        ("signature", "AAAA", "was altered"),
        ("signature", "?", "was altered"),
        ("version", 2, "newer version"),
        ("schema", "other", "is no consent record"),
    ],
    ids=["purposes", "expiry", "operator", "signature", "no-base64", "version", "schema"],
)
def test_an_altered_record_is_refused(record, ring, key, value, message):
    body = json.loads(record.read_text())
    record.write_text(json.dumps({**body, key: value}))
    with pytest.raises(ConsentError, match=message):
        read_consent(record, ring.operators(), now=NOW)


def test_a_device_whose_clock_is_a_little_behind_takes_a_consent_of_now(record, ring):
    assert read_consent(record, ring.operators(), now=NOW - timedelta(minutes=4)).issued == NOW


@pytest.mark.parametrize(
    ("days", "message"),
    [(-1, "not valid yet"), (-0.004, "not valid yet"), (10, "has expired"), (11, "has expired")],
    ids=["early", "six-minutes-early", "edge", "late"],
)
def test_outside_its_time_it_is_refused(record, ring, days, message):
    with pytest.raises(ConsentError, match=message):
        read_consent(record, ring.operators(), now=NOW + timedelta(days=days))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such"),
        ("", "is no consent"),
        ("{", "is no consent"),
        ("[1]", "is no consent"),
        ("[" * 5000, "is no consent"),
    ],
    ids=["missing", "empty", "cut", "list", "deep"],
)
def test_a_corrupt_record_is_one_clear_line(tmp_path, ring, content, message):
    path = tmp_path / "c.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConsentError, match=message):
        read_consent(path, ring.operators(), now=NOW)


@pytest.mark.parametrize(
    ("subject", "purposes", "days"),
    [("S-01", [], 1), ("S-01", ["all"], 1), ("Jane Doe", ["scores"], 1), ("S-01", ["scores"], 0)],
    ids=["no-purpose", "unknown-purpose", "a-name", "no-time"],
)
def test_wrong_arguments(operator, subject, purposes, days):
    with pytest.raises(ValueError, match="expected"):
        new_consent(read_private(operator), subject, purposes, days, "dr-a", now=NOW)


def test_the_end_is_told_without_what_was_not_agreed_to():
    end = Event(7, 1, 2, "end", {"fixations": 3})
    assert limit_event(end, {"scores"}) == end
    assert limit_event(end, {"gaze"}) == Event(7, 1, 2, "end", {})


def test_a_sink_gets_nothing_more_once_the_consent_does_not_hold(caplog):
    now_ns, problem, kept = [0], [""], Kept()
    sink = LimitedSink(kept, {"scores"}, lambda: problem[0], clock=lambda: now_ns[0])
    for at_s, what in ((0.5, "withdrawn"), (1.5, "withdrawn"), (2.5, "withdrawn")):
        problem[0] = what
        sink.event(Event(0, 0, 0, "mark", {"at_s": at_s}))
        now_ns[0] = round(at_s * 1e9)
    sink.event(Event(1, 0, 0, "end", {"frames": 3}))
    assert [event.payload for event in kept.events] == [{"at_s": 0.5}, {"at_s": 1.5}, {}]
    assert [record.getMessage() for record in caplog.records] == [f"sink {kept.name} gets nothing more: withdrawn"]
