"""A sink behind its queue: what a slow, full or failing one costs, and how its losses are counted."""

from __future__ import annotations

import threading
import time

import numpy as np

from edge.errors import SinkError
from edge.live.queued_sink import QueuedSink
from edge.records import Event, RedactedFrame
from edge.sinks.base import Sink


def mark(seq):
    return Event(seq, 0, 0, "mark", {})


def picture(frame_id):
    return RedactedFrame(frame_id, 0, np.zeros((4, 4, 3), np.uint8), "cam", "scene", ())


class SlowDisk(Sink):
    """A sink whose disk is held up until `go` is set, and then full if asked."""

    name = "slow"

    def __init__(self, full=False):
        self.go, self.full = threading.Event(), full
        self.events, self.pictures, self.closed = [], [], False

    def event(self, event):
        self.go.wait()
        if self.full:
            raise SinkError("events", "can't be written: No space left on device")
        self.events.append(event.seq)

    def picture(self, frame):
        self.pictures.append(frame.frame_id)

    def close(self):
        self.closed = True


def test_a_slow_sink_costs_no_time_and_its_losses_are_counted():
    disk = SlowDisk()
    sink = QueuedSink(disk, max_events=10, max_pictures=2)
    start = time.monotonic()
    for k in range(20):
        sink.event(mark(k))
        sink.picture(picture(k))
    assert time.monotonic() - start < 2
    sink.event(Event(20, 0, 0, "end", {}))
    disk.go.set()
    sink.close()
    assert disk.closed and sink.error is None
    # one event may already have been taken out of the queue before it filled
    assert len(disk.events) - 1 + sink.dropped_events == 20 and disk.events[-1] == 20
    assert disk.events[:10] == list(range(10))
    assert disk.pictures[-2:] == [18, 19] and len(disk.pictures) + sink.dropped_pictures == 20


def test_a_full_disk_is_kept_as_the_sinks_error():
    disk = SlowDisk(full=True)
    sink = QueuedSink(disk, max_events=10, max_pictures=2)
    disk.go.set()
    sink.event(mark(1))
    sink.close()
    assert str(sink.error) == "events: can't be written: No space left on device"
    assert disk.closed
    sink.event(mark(2))
    assert sink.dropped_events == 1


def test_a_sink_that_fails_while_it_closes_has_an_error(caplog):
    class Unfinished(SlowDisk):
        def close(self):
            raise FileNotFoundError("events.ndjson.part")

    sink = QueuedSink(Unfinished(), max_events=10, max_pictures=2)
    sink.close()
    assert "FileNotFoundError" in str(sink.error)
    assert "events.ndjson.part" in caplog.text
