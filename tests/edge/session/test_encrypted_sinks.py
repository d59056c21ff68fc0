"""Event logs and clips that aren't sessions: encrypted by their name, and under consent."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edge.errors import KeyFileError, SinkError
from edge.outputs import refused_sinks
from edge.records import Event, RedactedFrame
from edge.session.cipherfile import CipherFile
from edge.sinks import ndjson, video


def with_sinks(study, **sinks):
    config = study.config()
    return msgspec.structs.replace(config, sinks=msgspec.structs.replace(config.sinks, **sinks))


def decrypted(study, path: Path, who: str = "identity") -> bytes:
    return subprocess.run(["age", "-d", "-i", getattr(study, who), path], capture_output=True, check=True).stdout


@pytest.mark.parametrize("who", ["identity", "escrow"])
def test_an_event_log(study, tmp_path, who):
    path = tmp_path / "events.ndjson.age"
    with ndjson.open_sink(with_sinks(study, events=str(path)), {}) as sink:
        for event in [*study.events(50, 3000), Event(50, 0, 0, "end", {})]:
            sink.event(event)
    assert b"fcc" not in path.read_bytes()
    lines = decrypted(study, path, who).splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(51))


def test_a_clip(study, tmp_path):
    import av

    path = tmp_path / "clip.mp4.age"
    with video.open_sink(with_sinks(study, video=str(path)), {}) as sink:
        for i in range(10):
            image = np.full((48, 64, 3), 20 * i, np.uint8)
            sink.picture(RedactedFrame(i, i * 40_000_000, image, "cam", "scene", ()))
    (tmp_path / "clip.mp4").write_bytes(decrypted(study, path))
    with av.open(str(tmp_path / "clip.mp4")) as container:
        assert len(list(container.decode(video=0))) == 10
    assert [p.name for p in tmp_path.glob("*.part*")] == []


def test_they_need_consent_and_two_recipients(study, tmp_path, capsys):
    wanted = with_sinks(study, events=str(tmp_path / "a.ndjson.age"), video=str(tmp_path / "a.mp4.age"))
    assert refused_sinks(wanted) == []
    without = msgspec.structs.replace(wanted, record=msgspec.structs.replace(wanted.record, consent=""))
    assert sorted(refused_sinks(without)) == ["events", "video"]
    assert "names no consent record" in capsys.readouterr().err
    (study.ring.folder / "recipients.txt").unlink()
    with pytest.raises(KeyFileError, match="names 0 recipient"):
        ndjson.open_sink(wanted, {})


def test_a_disk_that_fails_is_said_by_write_or_close(study):
    recipients = list(study.ring.recipients().values())
    file = CipherFile(io.FileIO("/dev/full", "w"), recipients)

    def fill() -> None:
        for _ in range(100):
            file.write(bytes(100_000))

    with pytest.raises(OSError, match=r"No space|encryption failed"):
        fill()
    with pytest.raises(OSError, match=r"No space|encryption failed"):
        file.close()


def test_an_unknown_kind_of_clip_is_refused(study, tmp_path):
    with pytest.raises(SinkError, match="unknown kind of clip"):
        video.open_sink(with_sinks(study, video=str(tmp_path / "clip.avi.age")), {})
