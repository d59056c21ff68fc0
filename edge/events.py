"""The event log: what a step of the pipeline found, as plain values, and back.

An event holds all that a rerun needs: the gaze samples as their source gave them, the features as base64 float32, the
class probabilities, the telemetry. Floats keep their shortest exact form, so a rerun starts from the same bits; nan is
written as null.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edge.errors import DataError
from edge.files import decode_document
from edge.records import NAN, Emotion, Event, Face, Features, Fixation, RawGaze, Score, Telemetry

SCHEMA = "emogaze.events"
VERSION = 1

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """Return the event as one line of JSON, without the line end."""
    return _encoder.encode(event)


def read_log(path: Path) -> Iterator[Event]:
    """Yield the events of a log written by the ndjson sink.

    Raises
    ------
    DataError
        The file is missing, a line can't be read, or the log is of another version.
    """
    try:
        lines = path.open("rb")
    except OSError as error:
        raise DataError(str(path), f"can't be read: {error.strerror}", fix="name an events.ndjson") from error
    with lines:
        for number, line in enumerate(lines, start=1):
            try:
                event = decode_document(line, _decoder.decode)
            except msgspec.DecodeError as error:
                raise DataError(f"{path}, line {number}", f"is no event: {error}") from error
            if number == 1:
                check_header(event, str(path))
            yield event


def check_header(event: Event, thing: str) -> None:
    """Raise DataError unless `event` opens a log that this version can read."""
    got = event.payload.get("schema"), event.payload.get("version")
    if event.kind != "session" or got != (SCHEMA, VERSION):
        raise DataError(thing, "is not an event log of this version", expected=f"{SCHEMA} {VERSION}", got=f"{got}")


def features_to_plain(features: Features | None) -> dict[str, Any] | None:
    """Return features as plain values, the vectors as base64 of little-endian float32."""
    if features is None:
        return None
    return {
        "local": _vector_to_text(features.local),
        "global": _vector_to_text(features.global_),
        "model_id": features.model_id,
        "precision": features.precision,
    }


def features_from_plain(frame_id: int, t_ns: int, values: dict[str, Any] | None) -> Features | None:
    """Undo `features_to_plain`."""
    if values is None:
        return None
    local, global_ = (_vector_from_text(values[key]) for key in ("local", "global"))
    return Features(frame_id, t_ns, local, global_, values["model_id"], values["precision"])


def gaze_to_plain(samples: list[RawGaze]) -> list[list[Any]]:
    """Return gaze samples as rows: seq, t_ns, x, y, confidence, valid, pupil_mm, openness."""
    return [[s.seq, s.t_ns, s.x, s.y, s.confidence, s.valid, s.pupil_mm, s.openness] for s in samples]


def gaze_from_plain(rows: list[list[Any]]) -> list[RawGaze]:
    """Undo `gaze_to_plain`."""
    return [
        RawGaze(seq, t_ns, _number(x), _number(y), _number(confidence), valid, _number(pupil), _number(openness))
        for seq, t_ns, x, y, confidence, valid, pupil, openness in rows
    ]


def to_plain(record: Face | Fixation | Emotion | Score | Telemetry | None) -> dict[str, Any] | None:
    """Return a record of plain fields as a dict, or None."""
    return None if record is None else msgspec.to_builtins(record)


def face_from_plain(values: dict[str, Any]) -> Face:
    """Read a Face back from its dict."""
    return Face(**{**values, "box": tuple(values["box"])})


def emotion_from_plain(values: dict[str, Any] | None) -> Emotion | None:
    """Read an Emotion back from its dict."""
    return None if values is None else Emotion(**values)


def telemetry_from_plain(values: dict[str, Any] | None) -> Telemetry | None:
    """Read a Telemetry back from its dict."""
    return None if values is None else Telemetry(**values)


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)


def _vector_to_text(vector: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _vector_from_text(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")
