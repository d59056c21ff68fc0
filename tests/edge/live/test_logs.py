"""Logs: their form, their limits, and a reader that never reads."""

from __future__ import annotations

import json
import logging
import os
import time

from edge.live.logs import QUEUE_LINES, Line, QueuedStderr, RateLimit

S = 1_000_000_000


def record(message, **fields):
    made = logging.LogRecord("edge.live.run", logging.WARNING, __file__, 1, message, None, None)
    made.fields = fields
    return made


def test_a_repeated_message_is_held_back_and_counted():
    now = [0]
    limit = RateLimit(clock=lambda: now[0])
    passed = []
    for now[0] in (0, S, 2 * S, 6 * S, 7 * S):
        made = record("camera silent")
        if limit.filter(made):
            passed.append((now[0] // S, getattr(made, "held_back", 0)))
    assert passed == [(0, 0), (6, 2)]
    assert limit.filter(record("another message"))


def test_a_line_of_json_holds_the_fields():
    values = json.loads(Line("json").format(record("camera silent", source="cam", age_ms=512)))
    assert {k: values[k] for k in ("level", "logger", "message", "source", "age_ms")} == {
        "level": "warning", "logger": "edge.live.run", "message": "camera silent", "source": "cam", "age_ms": 512,
    }  # fmt: skip


def test_a_line_of_text():
    line = Line("text").format(record("camera silent", source="cam"))
    assert line.partition(" ")[2] == "warning edge.live.run: camera silent source=cam"


def test_a_pipe_that_nobody_reads_costs_no_time_and_loses_only_lines():
    read_end, write_end = os.pipe()
    handler = QueuedStderr(write_end)
    handler.setFormatter(Line("text"))
    start = time.monotonic()
    for k in range(3 * QUEUE_LINES):
        handler.emit(record("x" * 200 + str(k)))
    handler.close()
    assert time.monotonic() - start < 5  # the writer is stuck in write() for ever
    os.close(read_end)  # lets it go
    handler.close()  # and it ends, before the descriptor can become another file's
    os.close(write_end)


def test_what_was_written_comes_out_in_order():
    read_end, write_end = os.pipe()
    handler = QueuedStderr(write_end)
    handler.setFormatter(Line("text"))
    for k in range(5):
        handler.emit(record(str(k)))
    handler.close()
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        assert [line.split()[-1] for line in lines] == list("01234")
