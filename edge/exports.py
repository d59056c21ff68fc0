"""Copies of a session in formats that other programs read. They aren't encrypted: whoever exports keeps them safe."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edge.errors import RecordingError
from edge.events import encode
from edge.export_rows import Row, columns, rows
from edge.files import atomic_path, refuse_source
from edge.records import Event, RedactedFrame
from edge.session.read import Gap, read_events, read_items
from edge.session.segment import Picture, SegmentBody

#: Payload keys that name a person, a device or a place, or tie a session to the calendar.
IDENTIFYING = frozenset(
    (
        *("unix", "unix_ns", "created", "date", "host", "hostname", "user", "serial", "uid", "source_id", "source"),
        *("device", "path", "dir", "note", "config", "session", "recording"),
        *("command", "taken_by", "operator", "consent"),
    )
)
STEP_NS = 1_000_000  #: least distance of two pictures in an MP4


@dataclass(slots=True)
class Recovered:
    """What `recover` could read."""

    path: Path
    n_events: int = 0
    n_pictures: int = 0
    gaps: list[Gap] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exported:
    """How many rows, events or pictures were written, and what of the events doesn't fit into a table's cells."""

    n: int
    left_out: list[str] = field(default_factory=list)


def export(session: Path, identity: Path, output: Path, *, kind: str, role: str) -> Exported:
    """Export to the format that `output` ends in.

    Raises
    ------
    RecordingError
        An unknown format, a session that can't be read, or nothing of that kind in it.
    """
    tables: dict[str, Callable[[Path, list[Row]], int]] = {".csv": _write_csv, ".parquet": _write_parquet}
    left_out: list[str] = []
    refuse_source(output, identity)
    if output.suffix == ".mp4":
        n, what = _write_mp4(output, _pictures(session, identity, role)), f"pictures of the {role} camera"
    elif output.suffix in (*tables, ".ndjson"):
        with atomic_path(output) as part:
            if output.suffix in tables:
                table, left_out = rows(read_events(session, identity), kind)
                n, what = tables[output.suffix](part, table), f"events of kind {kind!r}"
            else:
                n, what = _write_ndjson(part, read_events(session, identity)), "event"
            if not n:
                raise _nothing_in(session, what)
    else:
        expected = ", ".join([*tables, ".ndjson", ".mp4"])
        raise RecordingError(str(output), "is of no known format", expected=expected, got=output.suffix)
    if not n:
        raise _nothing_in(session, what)
    return Exported(n, left_out)


def _nothing_in(session: Path, what: str) -> RecordingError:
    return RecordingError(
        str(session), f"holds no {what}", fix="`emogaze session info` lists what it holds, `verify` how whole it is"
    )


def anonymise(session: Path, identity: Path, output: Path) -> tuple[int, dict[str, int]]:
    """Write events without what names a person, device or date; return their number and what was removed how often."""
    removed: Counter[str] = Counter()
    n = 0
    refuse_source(output, identity)
    with atomic_path(output) as part, part.open("wb") as file:
        for event in read_events(session, identity):
            payload = _without_identity(event.payload, removed)
            file.write(encode(replace(event, payload=payload)) + b"\n")
            n += 1
    return n, dict(removed)


def recover(session: Path, identity: Path, output: Path) -> Recovered:
    """Write all events and pictures that can be read, past damage, into one plain MCAP file in folder `output`."""
    result = Recovered(output / f"{session.resolve().name}.recovered.mcap")
    with atomic_path(result.path) as part, part.open("wb") as file:
        body = SegmentBody(file)
        body.start({})
        for item in read_items(session, identity, tolerant=True):
            if isinstance(item, Event):
                body.add_event(item)
                result.n_events += 1
            elif isinstance(item, Picture):
                body.add_picture(item)
                result.n_pictures += 1
            else:
                result.gaps.append(item)
        body.finish()
    return result


def _pictures(session: Path, identity: Path, role: str) -> Iterator[Picture]:
    return (item for item in read_items(session, identity) if isinstance(item, Picture) and item.role == role)


def _write_csv(part: Path, table: list[Row]) -> int:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(table), extrasaction="ignore")
    writer.writeheader()
    writer.writerows(table)
    part.write_text(text.getvalue(), encoding="utf-8")
    return len(table)


def _write_parquet(part: Path, table: list[Row]) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RecordingError("Parquet", "needs pyarrow", fix="pip install 'emogaze-edge[host]'") from None

    values = {name: [row.get(name) for row in table] for name in columns(table)}
    pyarrow.parquet.write_table(pyarrow.table(values), part)
    return len(table)


def _write_ndjson(part: Path, events: Iterator[Event]) -> int:
    n = 0
    with part.open("wb") as file:
        for n, event in enumerate(events, start=1):  # noqa: B007 - n is the count
            file.write(encode(event) + b"\n")
    return n


def _write_mp4(output: Path, pictures: Iterator[Picture]) -> int:
    """Write H.264 at the recorded times, from the first picture on; a gap in them stays a gap."""
    import cv2
    import numpy as np

    from edge.sinks.video import VideoWriter

    n, origin, last = 0, 0, -STEP_NS
    writer = VideoWriter(output)
    try:
        for n, picture in enumerate(pictures, start=1):
            origin = picture.t_ns if n == 1 else origin
            # A clock that steps back must not stop the export: a picture then follows the one before it.
            last = max(picture.t_ns - origin, last + STEP_NS)
            image = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
            if image is None:
                raise RecordingError(f"picture {picture.frame_id}", "is no JPEG")
            writer.write(RedactedFrame(n, last, np.asarray(image, np.uint8), picture.source, "scene", ()))
    except BaseException:
        writer.close(whole=False)
        raise
    writer.close(whole=n > 0)
    return n


def _without_identity(value: Any, removed: Counter[str]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            if key in IDENTIFYING:
                removed[key] += 1
            else:
                kept[key] = _without_identity(inner, removed)
        return kept
    if isinstance(value, list):
        return [_without_identity(inner, removed) for inner in value]
    return value
