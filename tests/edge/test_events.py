from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from edge import events
from edge.errors import DataError
from edge.records import NAN, Event, Features, RawGaze


def test_features_keep_their_bits() -> None:
    rng = np.random.default_rng(0)
    local, scene = rng.normal(size=7).astype(np.float32), rng.normal(size=5).astype(np.float32)
    features = Features(3, 99, local, scene, "m", "fp32")
    back = events.features_from_plain(3, 99, events.features_to_plain(features))
    assert back is not None
    assert back.local.tobytes() == features.local.tobytes()
    assert back.global_.tobytes() == features.global_.tobytes()


def test_gaze_keeps_its_bits_and_its_nan() -> None:
    sample = RawGaze(5, 123, 0.1 + 0.2, NAN, 0.7, False)
    event = Event(0, 1, 2, "score", {"gaze": events.gaze_to_plain([sample])})
    line = events.encode(event)
    assert b"NaN" not in line
    back = events.gaze_from_plain(events._decoder.decode(line).payload["gaze"])[0]
    assert back.x == 0.1 + 0.2
    assert math.isnan(back.y)
    assert (back.seq, back.valid) == (5, False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"nonsense\n", "is no event", id="no-json"),
        pytest.param(
            events.encode(Event(0, 0, 0, "session", {"schema": events.SCHEMA, "version": 99})) + b"\n",
            "not an event log of this version",
            id="newer-version",
        ),
        pytest.param(events.encode(Event(0, 0, 0, "score", {})) + b"\n", "not an event log", id="no-header"),
    ],
)
def test_bad_log(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        list(events.read_log(path))


def test_missing_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.ndjson: can't be read: No such file"):
        list(events.read_log(tmp_path / "nothing.ndjson"))
