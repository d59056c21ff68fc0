"""The four states, told apart at every kind of boundary; and what a reader keeps of each."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from edge.errors import RecordingError
from edge.keys import KeyRing
from edge.session.age import CHUNK, TAG, AgeFile
from edge.session.layout import SessionPaths
from edge.session.read import Gap, read_events, read_items, session_identity
from edge.session.verify import EXIT_CODES, verify

HEADER_AND_NONCE = 150  # more than half of an age header for one X25519 recipient


@pytest.fixture
def session(study) -> SessionPaths:
    """About 1.3 MB in one segment: closed, with its key."""
    return study.record(600, size=2000)


def unsigned(paths: SessionPaths) -> None:
    """Leave only the first line of the chain: nothing of the data is signed, as in the first second of a session."""
    paths.chain.write_bytes(paths.chain.read_bytes().splitlines(keepends=True)[0])


def cut(paths: SessionPaths, size: int) -> None:
    with paths.segment(0).open("r+b") as file:
        file.truncate(size)


def flip(paths: SessionPaths, offset: int) -> None:
    with paths.segment(0).open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def state(paths: SessionPaths, study) -> str:
    return verify(paths, identity=session_identity(paths, study.identity)).state


BOUNDARIES: dict[str, Callable[[int], int]] = {
    "empty": lambda at: 0,
    "in-the-header": lambda at: HEADER_AND_NONCE,
    "in-the-nonce": lambda at: at - 3,
    "before-the-first-chunk": lambda at: at,
    "in-the-first-chunk": lambda at: at + 100,
    "between-chunks": lambda at: at + 4 * (CHUNK + TAG),
    "in-a-tag": lambda at: at + 4 * (CHUNK + TAG) - 5,
    "one-byte-of-a-chunk": lambda at: at + 4 * (CHUNK + TAG) + 1,
}


@pytest.mark.parametrize("where", BOUNDARIES.values(), ids=BOUNDARIES)
def test_a_cut_after_the_newest_checkpoint_is_torn(session, study, where):
    at = AgeFile(session.segment(0), session_identity(session, study.identity)).payload_at
    unsigned(session)
    cut(session, where(at))
    assert state(session, study) == "torn"
    found = list(read_events(session.folder, study.identity))
    assert found == study.events(600, 2000)[: len(found)]
    assert len(found) < 600
    assert (len(found) > 100) == (where(at) > at + 3 * CHUNK)


@pytest.mark.parametrize("where", BOUNDARIES.values(), ids=BOUNDARIES)
def test_a_cut_before_the_newest_checkpoint_is_shortened(session, study, where):
    at = AgeFile(session.segment(0), session_identity(session, study.identity)).payload_at
    cut(session, where(at))
    assert verify(session).state == "shortened"


def test_a_missing_segment_is_shortened(session):
    session.segment(0).unlink()
    assert verify(session).state == "shortened"


@pytest.mark.parametrize(
    "offset", [5, 60, 300, 5 * CHUNK, -1], ids=["version", "share", "first-chunk", "middle", "end"]
)
def test_a_flipped_bit_in_signed_bytes_is_damage_without_any_key(session, offset):
    size = session.segment(0).stat().st_size
    flip(session, offset % size)
    assert verify(session).state == "damaged"


def test_unsigned_bytes_with_a_bad_chunk_before_a_good_one_are_damage(session, study):
    unsigned(session)
    flip(session, 3 * CHUNK)
    assert verify(session).state == "torn"  # without the key, nothing more can be said
    assert state(session, study) == "damaged"


def test_unsigned_last_chunk_bad_is_torn(session, study):
    unsigned(session)
    flip(session, session.segment(0).stat().st_size - 1)
    assert state(session, study) == "torn"


def test_swapped_chunks_are_damage(session, study):
    at = AgeFile(session.segment(0), session_identity(session, study.identity)).payload_at
    unsigned(session)
    content = bytearray(session.segment(0).read_bytes())
    one, two, three = (at + i * (CHUNK + TAG) for i in (1, 2, 3))
    content[one:two], content[two:three] = content[two:three], content[one:two]
    session.segment(0).write_bytes(content)
    assert state(session, study) == "damaged"


def test_added_bytes_are_damage(session):
    with session.segment(0).open("ab") as file:
        file.write(b"more")
    assert verify(session).state == "damaged"


def change_chain(paths: SessionPaths, change: Callable[[list[bytes]], list[bytes]]) -> None:
    paths.chain.write_bytes(b"".join(change(paths.chain.read_bytes().splitlines(keepends=True))))


CHAIN_CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "altered-line": (lambda lines: [lines[0], lines[1].replace(b'"size":', b'"size":1'), *lines[2:]], "damaged"),
    "dropped-line": (lambda lines: [lines[0], *lines[2:]], "damaged"),
    "swapped-lines": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "damaged"),
    "garbled-line": (lambda lines: [lines[0], b"\0" * 40 + b"\n", *lines[2:]], "damaged"),
    "cut-last-line": (lambda lines: [*lines[:-1], lines[-1][:50]], "torn"),
    "zeros-for-last-line": (lambda lines: [*lines[:-1], b"\0" * 200], "torn"),
    "dropped-last-line": (lambda lines: lines[:-1], "torn"),
    "gone": (lambda lines: [], "torn"),
}


@pytest.mark.parametrize(("change", "expected"), CHAIN_CHANGES.values(), ids=CHAIN_CHANGES)
def test_what_happens_to_the_chain(study, change, expected):
    paths = study.record(1200, size=2000, segment_mb=0.5, flush_ms=50)
    change_chain(paths, change)
    assert verify(paths).state == expected


def test_a_chain_signed_by_somebody_else_is_not_trusted(session, study, tmp_path):
    stranger = KeyRing(tmp_path / "stranger")
    stranger.create()
    own = list(study.ring.signers().values())
    assert verify(session, trusted=own).signer_known
    verdict = verify(session, trusted=list(stranger.signers().values()), need_trust=True)
    assert verdict.state == "damaged"
    assert "nobody here trusts" in verdict.problems[0]


def test_a_rotated_key_still_verifies_the_sessions_it_signed(session, study):
    study.ring.rotate("signing")
    assert verify(session, trusted=list(study.ring.signers().values()), need_trust=True).state == "complete"


def test_exit_codes():
    assert EXIT_CODES == {"complete": 0, "torn": 3, "damaged": 4, "shortened": 5}


def test_a_newer_version_is_refused_by_name(session):
    change_chain(session, lambda lines: [lines[0].replace(b'"format":1', b'"format":9')])
    with pytest.raises(RecordingError, match=r"newer version.*format 9"):
        verify(session)


def test_the_wrong_identity_is_one_clear_line(session, study, tmp_path):
    import pyrage

    wrong = tmp_path / "wrong.txt"
    wrong.write_text(str(pyrage.x25519.Identity.generate()))
    with pytest.raises(RecordingError, match="isn't encrypted to the identity in"):
        session_identity(session, wrong)
    wrong.write_text("hello")
    with pytest.raises(RecordingError, match="holds no age identity"):
        session_identity(session, wrong)


def test_a_folder_without_a_session(tmp_path):
    from edge.session.layout import find_session

    with pytest.raises(RecordingError, match="is no session"):
        find_session(tmp_path)


def test_recovery_goes_on_after_a_lost_chunk(study):
    """Flushes leave boundaries at which reading can start again; what is lost is said."""
    import time

    with study.open(flush_ms=50) as sink:
        for event in study.events(40):
            sink.event(event)
            time.sleep(0.02)
    paths = SessionPaths(next(study.recordings.glob("*Z-*")))
    assert AgeFile(paths.segment(0), session_identity(paths, study.identity)).count() > 8
    flip(paths, 4 * CHUNK)
    with pytest.raises(RecordingError, match="session recover"):
        list(read_events(paths.folder, study.identity))
    items = list(read_items(paths.folder, study.identity, tolerant=True))
    gaps = [item for item in items if isinstance(item, Gap)]
    kept = [item.seq for item in items if not isinstance(item, Gap)]
    assert len(gaps) == 1
    assert gaps[0].end > gaps[0].begin
    assert kept[0] == 0
    assert kept[-1] == 39
    assert 30 <= len(kept) < 40


def test_header_lines_are_json_with_sorted_keys(session):
    line = session.chain.read_bytes().splitlines()[0]
    assert json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")).encode() == line
