"""Tables of events: one value a cell, one name a column; lists in tables of their own."""

from __future__ import annotations

from typing import Any

from edge.export_rows import columns, rows
from edge.records import Event


def score(seq: int, **payload: Any) -> Event:
    whole = {
        "frame_id": seq,
        "gaze": [[2 * seq, 10, 1.5, 2.5, 1.0, True, None, 0.5], [2 * seq + 1, 20, 3.5, 4.5, 1.0, False, None, 0.5]],
        "gaze_px": [7.0, 8.0],
        "embedding": {"reason": "", "skipped": []},
        "fixation": None,
        "features": {"local": "AAAA", "global": "AAAA"},
        "score": {"frame_id": seq, "t_ns": 100, "fcc": 0.5},
    }
    return Event(seq, 100, 105, "score", {**whole, **payload})


def test_scores_are_flat_and_name_what_they_leave_out() -> None:
    table, left_out = rows([score(0), score(1, fixation={"x_px": 3.0}, features=None, gaze_px=None)], "score")
    assert columns(table) == [
        *(
            "seq",
            "t_ns",
            "t_emit_ns",
            "frame_id",
            "gaze_px.x",
            "gaze_px.y",
            "embedding.reason",
            "score.fcc",
            "fixation.x_px",
        ),
    ]
    assert left_out == ["gaze", "embedding.skipped", "features"]
    assert (table[0]["gaze_px.y"], table[1]["fixation.x_px"]) == (8.0, 3.0)


def test_gaze_samples_and_faces_are_tables_of_their_own() -> None:
    face = {"box": [1, 2, 30, 40], "score": 0.9, "covered": True}
    log = [score(0), Event(1, 5, 5, "gaze", {"gaze": [[9, 30, 0, 0, 1.0, True, None, None]]}), score(2)]
    log.append(Event(3, 100, 110, "picture", {"frame_id": 2, "faces": [face, face]}))
    samples, _ = rows(log, "gaze")
    assert [row["sample"] for row in samples] == [0, 1, 9, 4, 5]
    assert samples[1] == {
        **{"sample": 1, "t_ns": 20, "x": 3.5, "y": 4.5},
        **{"confidence": 1.0, "valid": False, "pupil_mm": None, "openness": 0.5},
    }
    faces, _ = rows(log, "faces")
    assert len(faces) == 2
    assert columns(faces) == ["t_ns", "frame_id", "box.x", "box.y", "box.w", "box.h", "score", "covered"]


def test_a_payload_does_not_replace_what_an_event_says_of_itself() -> None:
    table, _ = rows([Event(4, 100, 110, "mark", {"t_ns": 7, "label": "a"})], "mark")
    assert table == [{"seq": 4, "t_ns": 100, "t_emit_ns": 110, "payload.t_ns": 7, "label": "a"}]
