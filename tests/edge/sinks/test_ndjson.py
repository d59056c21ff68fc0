from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edge.config import load
from edge.errors import SinkError
from edge.events import SCHEMA, VERSION, read_log
from edge.records import Event
from edge.sinks.base import Sink, require_redacted
from edge.sinks.ndjson import open_sink

HEADER = Event(0, 0, 0, "session", {"schema": SCHEMA, "version": VERSION})


def opened(path: Path) -> Sink:
    sink = open_sink(load(overrides=[f"sinks.events='{path}'"]), {})
    assert sink is not None
    return sink


def test_a_log_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    with opened(path) as sink:
        sink.event(HEADER)
        assert not path.exists()
        sink.event(Event(1, 5, 6, "end", {}))
    assert [event.kind for event in read_log(path)] == ["session", "end"]


def test_a_log_that_was_cut_off_does_not_look_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    with opened(path) as sink:
        sink.event(HEADER)
    assert not path.exists()
    assert [event.kind for event in read_log(tmp_path / "events.ndjson.part")] == ["session"]


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="can't be written"):
        opened(tmp_path / "file" / "events.ndjson")


def test_one_run_at_a_time_writes_a_log(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    with opened(path) as sink:
        sink.event(HEADER)
        with pytest.raises(SinkError, match="is being written by another run"):
            opened(path)
        sink.event(Event(1, 5, 6, "end", {}))
    assert len(list(read_log(path))) == 2


def test_what_a_killed_run_left_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    (tmp_path / "events.ndjson.part").write_text("x" * 10_000)
    with opened(path) as sink:
        sink.event(HEADER)
        sink.event(Event(1, 5, 6, "end", {}))
    assert len(list(read_log(path))) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_whose_part_went_away_is_not_finished(tmp_path: Path) -> None:
    sink = opened(tmp_path / "events.ndjson")
    sink.event(HEADER)
    sink.event(Event(1, 5, 6, "end", {}))
    (tmp_path / "events.ndjson.part").unlink()
    with pytest.raises(SinkError, match="can't be finished: No such file"):
        sink.close()


def test_off_by_default() -> None:
    assert open_sink(msgspec.convert({}, type(load())), {}) is None


def test_only_redacted_pictures_fit() -> None:
    with pytest.raises(TypeError, match="takes RedactedFrame, got str"):
        require_redacted("picture")
