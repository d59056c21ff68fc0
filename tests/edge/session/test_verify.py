"""The four states, told apart at every kind of boundary; and what a reader keeps of each."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from edge.errors import RecordingError
from edge.keys import KeyRing
from edge.session.age import CHUNK, TAG, AgeFile
from edge.session.layout import SessionPaths
from edge.session.read import Gap, KeyUnusableError, read_events, read_items, session_identity
from edge.session.retention import end_session, purge, withdraw
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
    assert verify(session).state == state(session, study) == "shortened"


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
    "emptied": (lambda lines: [], "damaged"),
    "first-line-cut": (lambda lines: [lines[0][:50]], "damaged"),
}


@pytest.mark.parametrize(("change", "expected"), CHAIN_CHANGES.values(), ids=CHAIN_CHANGES)
def test_what_happens_to_the_chain(study, change, expected):
    paths = study.record(1200, size=2000, segment_mb=0.5, flush_ms=50)
    change_chain(paths, change)
    assert verify(paths).state == expected


def test_a_missing_chain_is_damage(session):
    session.chain.unlink()
    verdict = verify(session)
    assert (verdict.state, "nothing of this session is signed" in verdict.problems[0]) == ("damaged", True)


def flip_key(paths: SessionPaths, offset: int) -> None:
    content = bytearray(paths.key.read_bytes())
    content[offset] ^= 1
    paths.key.write_bytes(content)


def spell_share(paths: SessionPaths, letter: bytes, other: bytes) -> None:
    """Change a letter of the first recipient's share, to `other` if it is `letter` already."""
    content = bytearray(paths.key.read_bytes())
    content[60:61] = other if content[60:61] == letter else letter
    paths.key.write_bytes(content)


KEY_CHANGES: dict[str, tuple[Callable[[SessionPaths], object], str]] = {
    "missing": (lambda paths: paths.key.unlink(), "missing"),
    "empty": (lambda paths: paths.key.write_bytes(b""), "damaged"),
    "cut-in-the-header": (lambda paths: paths.key.write_bytes(paths.key.read_bytes()[:100]), "damaged"),
    "other-file": (lambda paths: paths.key.write_bytes(b"hello\n" * 90), "damaged"),
    "letter-of-a-share": (lambda paths: spell_share(paths, b"A", b"B"), "replaced"),
    "share-that-is-no-base64": (lambda paths: spell_share(paths, b"*", b"*"), "damaged"),
    "bit-of-the-payload": (lambda paths: flip_key(paths, -1), "replaced"),
    "cut-in-the-payload": (lambda paths: paths.key.write_bytes(paths.key.read_bytes()[:-5]), "replaced"),
}


@pytest.mark.parametrize(("change", "state"), KEY_CHANGES.values(), ids=KEY_CHANGES)
def test_a_session_that_nobody_can_open_is_damaged(session, study, change, state):
    assert (verify(session).state, verify(session).key) == ("complete", "there")
    change(session)
    verdict = verify(session)
    assert (verdict.state, verdict.key) == ("damaged", state)
    assert session.key.name in verdict.problems[0]
    with pytest.raises(KeyUnusableError):
        session_identity(session, study.identity)


def test_a_session_whose_key_was_deleted_on_purpose_is_told_apart(session, study):
    end_session(session, study.ring, reason="consent 0123 was withdrawn", by="S-01")
    verdict = verify(session)
    assert (verdict.state, verdict.key) == ("complete", "deleted")
    assert verdict.problems[-1].endswith("consent 0123 was withdrawn")
    session.tombstone.write_text(session.tombstone.read_text().replace("0123", "4567"))
    assert "the device didn't sign this" in verify(session).problems[-1]
    session.tombstone.write_text("{")
    assert "can't be read" in verify(session).problems[-1]


def test_a_tombstone_signed_after_the_key_was_rotated(session, study):
    study.ring.rotate("signing")
    end_session(session, study.ring, reason="retention time of 3 days", by="retention")
    assert "didn't sign" in verify(session).problems[-1]
    assert "didn't sign" not in verify(session, trusted=list(study.ring.signers().values())).problems[-1]


def test_a_key_file_encrypted_anew_is_proven_by_an_identity(session, study, tmp_path):
    import pyrage

    new = pyrage.x25519.Identity.generate()
    own = session_identity(session, study.identity)
    session.key.write_bytes(pyrage.encrypt(f"{own}\n".encode(), [new.to_public()]))
    (tmp_path / "new.txt").write_text(str(new))
    assert verify(session).state == "damaged"
    verdict = verify(session, identity=session_identity(session, tmp_path / "new.txt"))
    assert (verdict.state, verdict.key) == ("complete", "replaced")


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


def test_a_session_of_a_newer_version_does_not_stop_withdrawal_of_the_others(study):
    consent = study.consent()
    old, new = (study.record(3, consent=str(consent)) for _ in range(2))
    change_chain(new, lambda lines: [lines[0].replace(b'"format":1', b'"format":9'), *lines[1:]])
    with pytest.raises(RecordingError, match=r"newer version.*: 1 session\(s\) were ended.*withdraw it again"):
        withdraw(study.recordings, json.loads(consent.read_text())["id"], study.ring, by="S-01")
    assert (old.key.exists(), new.key.exists()) == (False, True)
    with pytest.raises(RecordingError, match=r"newer version.*: 0 session\(s\) were ended.*purge again"):
        purge(study.recordings, study.ring, days=1)


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
