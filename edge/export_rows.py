"""Events as rows of a table: one value a cell, one name a column.

An event holds lists (gaze samples, faces) and vectors (features) beside its plain values. Lists become tables of their
own, of the kinds `gaze` and `faces`; vectors stay in the NDJSON export, which holds everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from edge.records import Event

Row = dict[str, Any]
Payload = dict[str, Any]
#: Columns of a gaze sample, in the order of `edge.events.gaze_to_plain`.
GAZE = ("sample", "t_ns", "x", "y", "confidence", "valid", "pupil_mm", "openness")
REPEATED = {"score.frame_id", "score.t_ns"}  #: what a score says again of its event
#: Short lists with a meaning of each place.
PLACES = {"gaze_px": ("x", "y"), "box": ("x", "y", "w", "h")}


def rows(events: Iterable[Event], kind: str) -> tuple[list[Row], list[str]]:
    """Return one row for each event of a kind, and the names of what doesn't fit into cells.

    Kinds `gaze` and `faces` have one row for each sample, and for each face of a redacted picture.
    """
    left_out: dict[str, None] = {}
    if kind in _TABLES:
        return [row for event in events for row in _TABLES[kind](event)], []
    found = []
    for event in events:
        if event.kind == kind:
            row: Row = {"seq": event.seq, "t_ns": event.t_ns, "t_emit_ns": event.t_emit_ns}
            for name, value in _cells(event.payload, left_out):
                if name not in REPEATED:
                    row[name if name not in row else f"payload.{name}"] = value
            found.append(row)
    return [{name: value for name, value in row.items() if name not in left_out} for row in found], list(left_out)


def columns(table: Iterable[Row]) -> list[str]:
    """Return the columns of a table, each once. A part that some events lack is no column beside its own parts."""
    names = dict.fromkeys(name for row in table for name in row)
    parents = {name.rpartition(".")[0] for name in names}
    return [name for name in names if name not in parents]


def _cells(values: Payload, left_out: dict[str, None], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = prefix + key
        if isinstance(value, dict) and key != "features":
            yield from _cells(value, left_out, f"{name}.")
        elif isinstance(value, list | tuple) and key in PLACES and len(value) == len(PLACES[key]):
            yield from ((f"{name}.{place}", part) for place, part in zip(PLACES[key], value, strict=True))
        elif isinstance(value, dict | list | tuple):
            left_out[name] = None
        else:
            yield name, value


def _gaze(event: Event) -> Iterator[Row]:
    for sample in event.payload.get("gaze") or () if event.kind in ("score", "gaze") else ():
        yield dict(zip(GAZE, sample, strict=True))


def _faces(event: Event) -> Iterator[Row]:
    if event.kind == "picture":
        for face in event.payload.get("faces") or ():
            yield {"t_ns": event.t_ns, "frame_id": event.payload["frame_id"], **dict(_cells(face, {}))}


_TABLES: dict[str, Callable[[Event], Iterator[Row]]] = {"gaze": _gaze, "faces": _faces}
