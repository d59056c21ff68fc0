"""The commands end to end, as a device and a study use them."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from edge.cli import main
from edge.errors import RecordingError
from edge.records import Event, RedactedFrame
from edge.session.read import open_log, read_events


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def emogaze(monkeypatch, capsys) -> Callable[..., Done]:
    """Run the command line in this process, as `emogaze ARGUMENTS` with EMOGAZE_KEYS set."""

    def call(*arguments: object, keys: Path) -> Done:
        monkeypatch.setenv("EMOGAZE_KEYS", str(keys))
        monkeypatch.setattr(sys, "argv", ["emogaze", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out = capsys.readouterr()
        return Done(int(ended.value.code or 0), out.out, out.err)

    return call


def test_from_keys_to_consent(emogaze, tmp_path):
    import pyrage

    keys = tmp_path / "keys"
    assert "made signing and wire" in emogaze("keys", "new", keys=keys).stdout
    assert emogaze("keys", "operator", "-o", tmp_path / "op.key", keys=keys).returncode == 0
    emogaze("keys", "trust", "operators", "clinic", tmp_path / "op.pub", keys=keys)
    for name in ("study", "escrow"):
        public = pyrage.x25519.Identity.generate().to_public()
        assert emogaze("keys", "recipient", name, public, keys=keys).returncode == 0
    client = emogaze("keys", "client", "tablet", "-o", tmp_path / "tablet.key", keys=keys)
    assert "hand it to tablet" in client.stdout
    listed = json.loads(emogaze("keys", "list", "--json", keys=keys).stdout)["keys"]
    assert sorted(k["use"] for k in listed) == ["client", "operator", "recipient", "recipient", "signing", "wire"]
    assert not any(k["problem"] for k in listed)
    record = tmp_path / "consent.json"
    options = ("--subject", "S-01", "--by", "dr-a", "--key", tmp_path / "op.key", "-o", record)
    assert emogaze("consent", "new", "--purposes", "scores,gaze", *options, keys=keys).returncode == 0
    checked = emogaze("consent", "check", record, keys=keys)
    assert "yes gaze" in checked.stdout
    assert "no  features" in checked.stdout
    wrong = emogaze("consent", "new", "--purposes", "everything", *options, keys=keys)
    assert wrong.returncode == 2
    assert "purposes: expected some of" in wrong.stderr.replace("\n", " ")
    audit = emogaze("session", "audit", keys=keys)
    assert audit.returncode == 0
    assert " keys_client " in audit.stdout


@pytest.fixture
def recorded(study):
    return record(study, [np.full((48, 64, 3), 40 * i, np.uint8) for i in range(5)])


def record(study, images: list[np.ndarray]) -> Path:
    with study.open() as sink:
        for i, image in enumerate(images):
            sink.event(Event(i, i * 10, i * 10, "score", {"score": {"fcc": i / 4}, "source": "cam-serial-77"}))
            sink.picture(RedactedFrame(i, i * 33_333_333, image, "cam", "scene", ()))
    return next(study.recordings.glob("*Z-*"))


def test_verify_exits_with_the_state(emogaze, study, recorded):
    done = emogaze("session", "verify", recorded, "-i", study.identity, keys=study.ring.folder)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, f"{recorded.name}: complete")
    segment = next(recorded.glob("*.mcap.age"))
    segment.write_bytes(segment.read_bytes()[:-10])
    done = emogaze("session", "verify", recorded, "--json", keys=study.ring.folder)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (5, "shortened")


def test_a_wrong_identity_is_one_line(emogaze, study, recorded):
    done = emogaze("session", "verify", recorded, "-i", study.operator, keys=study.ring.folder)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "holds no age identity" in done.stderr


def test_verify_with_an_identity_judges_a_damaged_key_file(emogaze, study, recorded, tmp_path):
    key = next(recorded.glob("*.key.age"))
    whole = key.read_bytes()
    for content, state in ((whole[:-3] + b"abc", "replaced"), (whole[:40], "damaged"), (None, "missing")):
        key.unlink()
        if content is not None:
            key.write_bytes(content)
        done = emogaze("session", "verify", recorded, "-i", study.identity, "--json", keys=study.ring.folder)
        found = json.loads(done.stdout)
        assert (done.returncode, found["state"], found["key"], found["chunks_checked"]) == (4, "damaged", state, False)
    key.write_bytes(whole)
    emogaze("keys", "identity", "-o", tmp_path / "stranger.txt", keys=study.ring.folder)
    done = emogaze("session", "verify", recorded, "-i", tmp_path / "stranger.txt", keys=study.ring.folder)
    assert (done.returncode, "isn't encrypted to the identity" in done.stderr) == (1, True)


def test_list(emogaze, study, recorded):
    line = emogaze("session", "list", study.recordings, keys=study.ring.folder).stdout
    assert recorded.name in line
    assert "closed" in line
    (one,) = json.loads(emogaze("session", "list", study.recordings, "--json", keys=study.ring.folder).stdout)[
        "sessions"
    ]
    assert (one["session"], one["segments"], one["end"], one["key"]) == (recorded.name, 1, "close", "there")


def test_a_folder_that_is_not_there_is_no_empty_list(emogaze, study, tmp_path):
    done = emogaze("session", "list", tmp_path / "nowhere", keys=study.ring.folder)
    assert done.returncode == 1 and "no such folder" in done.stderr


def test_a_log_that_is_not_there_is_not_called_encrypted(tmp_path):
    with pytest.raises(RecordingError, match="no such event log or session"):
        next(open_log(tmp_path / "events.ndjson", None))
    table = tmp_path / "table.csv"
    table.touch()
    with pytest.raises(RecordingError, match=r"table\.csv: is no session"):
        next(open_log(table, None))


def test_a_withdrawn_consent_does_not_pass_the_check(emogaze, tmp_path):
    keys, record, recordings = tmp_path / "keys", tmp_path / "consent.json", tmp_path / "recordings"
    recordings.mkdir()
    emogaze("keys", "operator", "-o", tmp_path / "op.key", keys=keys)
    emogaze("keys", "trust", "operators", "clinic", tmp_path / "op.pub", keys=keys)
    made = ("--subject", "S-01", "--purposes", "scores", "--by", "dr-a", "--key", tmp_path / "op.key", "-o", record)
    emogaze("consent", "new", *made, keys=keys)
    check = ("consent", "check", record, "--recordings", recordings)
    assert emogaze(*check, keys=keys).returncode == 0
    consent = json.loads(emogaze("consent", "check", record, "--json", keys=keys).stdout)["id"]
    emogaze("consent", "withdraw", consent, "--recordings", recordings, "--by", "S-01", keys=keys)
    done = emogaze(*check, keys=keys)
    assert done.returncode == 1 and "was withdrawn" in done.stderr


def test_an_identity_made_here_opens_a_session_and_stays_secret(emogaze, study, tmp_path):
    made = emogaze("keys", "identity", "-o", tmp_path / "third.txt", keys=study.ring.folder)
    assert made.stdout.startswith("age1")
    assert (tmp_path / "third.txt").stat().st_mode & 0o777 == 0o600
    assert emogaze("keys", "identity", "-o", tmp_path / "third.txt", keys=study.ring.folder).returncode == 1
    study.ring.add_recipient("third", made.stdout.strip())
    paths = study.record(3)
    assert len(list(read_events(paths.folder, tmp_path / "third.txt"))) == 3


def test_info(emogaze, study, recorded):
    outside = emogaze("session", "info", recorded, keys=study.ring.folder).stdout
    assert "S-01" not in outside
    inside = json.loads(
        emogaze("session", "info", recorded, "-i", study.escrow, "--json", keys=study.ring.folder).stdout
    )
    assert (inside["events"], inside["pictures"], inside["subject"]) == ({"score": 5}, {"scene": 5}, "S-01")


@pytest.fixture
def export(emogaze, study, recorded) -> Callable[[Path], Done]:
    return lambda output: emogaze(
        *("session", "export", recorded, "-i", study.identity, "-o", output), keys=study.ring.folder
    )


def test_export_to_csv_and_parquet(emogaze, export, study, recorded, tmp_path):
    import pyarrow.parquet

    assert "5 rows" in export(tmp_path / "a.csv").stdout
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert [float(row["score.fcc"]) for row in rows] == [0, 0.25, 0.5, 0.75, 1]
    export(tmp_path / "a.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet")["score.fcc"].to_pylist() == [0, 0.25, 0.5, 0.75, 1]
    audit = emogaze("session", "audit", keys=study.ring.folder).stdout
    assert audit.count(" export ") == 2


def test_export_to_mp4_keeps_times(emogaze, export, study, recorded, tmp_path):
    import av

    assert "5 pictures" in export(tmp_path / "a.mp4").stdout
    assert (tmp_path / "a.mp4").stat().st_mode & 0o777 == 0o600
    with av.open(str(tmp_path / "a.mp4")) as container:
        frames = list(container.decode(video=0))
    assert [round(frame.time * 30) for frame in frames] == [0, 1, 2, 3, 4]
    assert abs(int(frames[3].to_ndarray(format="rgb24").mean()) - 120) < 6


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ndjson", ".mp4"])
@pytest.mark.parametrize(("state", "code"), [("torn", 3), ("shortened", 5)])
def test_an_export_of_an_incomplete_session_says_so(emogaze, study, tmp_path, suffix, state, code):
    noise = np.random.default_rng(0).integers(0, 256, (8, 320, 320, 3), np.uint8)
    recorded = record(study, list(noise))  # several chunks: the first ones outlive a cut
    if state == "torn":  # killed before it was closed: the last line isn't there
        chain = next(recorded.glob("*.chain"))
        chain.write_bytes(b"".join(chain.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        segment = next(recorded.glob("*.mcap.age"))
        segment.write_bytes(segment.read_bytes()[:-10])
    output = tmp_path / f"a{suffix}"
    done = emogaze("session", "export", recorded, "-i", study.identity, "-o", output, keys=study.ring.folder)
    assert done.returncode == code
    assert done.stderr.startswith(f"the session is {state}: ") and done.stderr.count("\n") == 1
    assert output.exists() and "not encrypted" in done.stdout


def test_export_refuses_what_it_cannot_do(emogaze, export, study, recorded, tmp_path):
    assert "is of no known format" in export(tmp_path / "a.xls").stderr
    done = emogaze(
        *("session", "export", recorded, "-i", study.identity, "-o", tmp_path / "a.csv", "--kind", "gaze"),
        keys=study.ring.folder,
    )
    assert "holds no events of kind 'gaze'" in done.stderr
    assert not (tmp_path / "a.csv").exists()


def test_anonymise_prints_what_it_removed(emogaze, study, recorded, tmp_path):
    output = tmp_path / "a.ndjson"
    done = emogaze("session", "anonymise", recorded, "-i", study.identity, "-o", output, keys=study.ring.folder)
    assert "removed source: 5" in done.stdout
    assert "serial-77" not in output.read_text()
    assert len(output.read_text().splitlines()) == 5


def test_recover_writes_plain_mcap(emogaze, study, recorded, tmp_path):
    from mcap.reader import make_reader

    done = emogaze("session", "recover", recorded, "-i", study.identity, "-o", tmp_path / "out", keys=study.ring.folder)
    assert "5 events, 5 pictures" in done.stdout
    with next((tmp_path / "out").glob("*.mcap")).open("rb") as file:
        assert len(list(make_reader(file).iter_messages())) == 10


def test_withdraw(emogaze, study, recorded):
    consent = json.loads(next(recorded.glob("*.chain")).read_bytes().splitlines()[0])["consent"]
    done = emogaze(
        *("consent", "withdraw", consent, "--recordings", study.recordings, "--by", "S-01"), keys=study.ring.folder
    )
    assert "1 session(s) can't be opened any more" in done.stdout
    assert "flash may keep" in done.stdout
    again = emogaze("session", "info", recorded, "-i", study.identity, keys=study.ring.folder)
    assert (again.returncode, "its key was deleted" in again.stderr) == (1, True)
