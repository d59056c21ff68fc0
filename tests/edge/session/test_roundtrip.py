"""A session is written, opened by the `age` program and the mcap library, and read back to the bit."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader

from edge.records import Event, RedactedFrame
from edge.session.info import describe
from edge.session.layout import SessionPaths
from edge.session.read import read_events, read_items, read_metadata, session_identity
from edge.session.segment import Picture
from edge.session.verify import verify
from tests.conftest import missing


def age_decrypt(paths: SessionPaths, identity: Path, segment: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Open a session as somebody without our code does: `age` twice."""
    if not shutil.which("age"):
        missing("age", "the program is not installed")
    opened = subprocess.run(["age", "-d", "-i", identity, paths.key], capture_output=True, check=True).stdout
    own = paths.folder.parent / "own-identity.txt"
    own.write_bytes(opened)
    return subprocess.run(["age", "-d", "-i", own, paths.segment(segment)], capture_output=True, check=False)


@pytest.mark.parametrize("who", ["identity", "escrow"])
def test_age_and_mcap_open_a_session(study, who):
    paths = study.record(300)
    done = age_decrypt(paths, getattr(study, who))
    assert done.returncode == 0, done.stderr
    reader = make_reader(io.BytesIO(done.stdout))
    messages = [json.loads(message.data) for _, channel, message in reader.iter_messages() if channel.topic == "/score"]
    assert [m["seq"] for m in messages] == list(range(300))
    assert messages[3]["payload"]["fcc"] == 0.1 * 3  # the same bits
    schemas = {schema.name: json.loads(schema.data) for schema in reader.get_summary().schemas.values()}
    assert "t_emit_ns" in schemas["emogaze.Event"]["properties"]


def test_our_reader_gives_the_same_events(study):
    paths = study.record(300)
    assert list(read_events(paths.folder, study.identity)) == study.events(300)
    verdict = verify(paths, identity=session_identity(paths, study.identity))
    assert (verdict.state, verdict.chunks_checked) == ("complete", True)


def test_segments_rotate_and_read_as_one(study):
    paths = study.record(800, size=2000, segment_mb=0.25)
    assert len(paths.segments()) >= 3
    assert list(read_events(paths.folder, study.identity)) == study.events(800, 2000)
    verdict = verify(paths, identity=session_identity(paths, study.identity))
    assert (verdict.state, verdict.problems) == ("complete", [])
    assert age_decrypt(paths, study.identity, segment=2).returncode == 0


def test_pictures_are_compressed_and_come_back(study):
    image = np.zeros((48, 64, 3), np.uint8)
    image[:, 32:] = 200
    with study.open() as sink:
        sink.picture(RedactedFrame(7, 70, image, "cam", "scene", ()))
        sink.picture(RedactedFrame(8, 80, image, "cam", "face", (), withheld=True, reason="late"))
    folder = next(study.recordings.glob("*Z-*"))
    first, second = [item for item in read_items(folder, study.identity) if isinstance(item, Picture)]
    import cv2

    decoded = cv2.imdecode(np.frombuffer(first.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert np.abs(decoded.astype(int) - image).mean() < 2
    assert (first.frame_id, first.role, second.role, second.withheld, second.reason) == (
        7,
        "scene",
        "face",
        True,
        "late",
    )


def test_a_picture_that_is_not_redacted_is_refused(study):
    from edge.records import Frame

    with study.open() as sink, pytest.raises(TypeError, match="RedactedFrame"):
        sink.picture(Frame(1, 1, np.zeros((4, 4, 3), np.uint8), "cam"))


def test_nothing_on_the_device_opens_it(study):
    """Every file that the device holds is tried as an identity; the plain text is in none of its files."""
    paths = study.record(50)
    device = [p for p in [*study.ring.folder.rglob("*"), *study.recordings.rglob("*")] if p.is_file()]
    for path in device:
        assert b"AGE-SECRET-KEY" not in path.read_bytes()
        done = subprocess.run(["age", "-d", "-i", path, paths.key], capture_output=True, check=False)
        assert done.returncode != 0
        assert b'"fcc"' not in path.read_bytes()


def test_each_session_has_its_own_recipient(study):
    one, two = study.record(1), study.record(1)
    assert session_identity(one, study.identity) != session_identity(two, study.identity)


def test_metadata_holds_consent_and_clock_pair(study):
    paths = study.record(1)
    metadata = read_metadata(paths.folder, study.identity)
    assert json.loads(metadata["emogaze.consent"]["json"])["subject"] == "S-01"
    assert int(metadata["emogaze.segment"]["unix_ns"]) > int(metadata["emogaze.segment"]["monotonic_ns"]) > 0
    assert b"S-01" not in paths.chain.read_bytes()


def test_info_counts_what_is_there_and_notices_a_clock_that_steps_back(study):
    with study.open() as sink:
        for seq, t in enumerate([10, 20, 5, 30]):
            sink.event(Event(seq, t, t, "score", {"fcc": 0.5}))
    folder = next(study.recordings.glob("*Z-*"))
    facts = describe(SessionPaths(folder), study.identity)
    assert (facts["events"], facts["clock_steps_back"], facts["end"]) == ({"score": 4}, 1, "close")
    assert "subject" not in describe(SessionPaths(folder))
