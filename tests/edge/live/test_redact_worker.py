"""Redaction in its thread: it never makes the loop wait, and what it can't keep up with is dropped, never uncovered."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from edge.config import Config, LiveConfig, RedactConfig
from edge.live.redact_worker import Cadence, RedactWorker
from edge.pipeline import RedactPipeline
from edge.privacy import Redactor
from edge.records import Face, Frame

MS = 1_000_000
CONFIG = Config(redact=RedactConfig(recall_hz=0, cover="solid", max_wait_ms=200), live=LiveConfig(queue_pictures=5))
FACE = Face((20.0, 20.0, 16.0, 16.0), 0.9)


def frame(number):
    image = np.random.default_rng(number).integers(0, 255, (64, 64, 3), np.uint8)
    return Frame(number, number * 33 * MS, image, "cam")


class SlowRecall:
    """A recall detector that is at work until `go` is set, and then has found `faces`."""

    def __init__(self, faces):
        self.faces, self.searched = faces, []
        self.at_work, self.go = threading.Event(), threading.Event()

    def __call__(self, picture):
        self.searched.append(picture.frame_id)
        self.at_work.set()
        self.go.wait()
        return self.faces


def worker(recall, left):
    return RedactWorker(RedactPipeline(Redactor(CONFIG.redact), recall), left.append, CONFIG)


def test_a_slow_recall_pass_makes_nobody_wait_loses_the_oldest_and_uncovers_nothing():
    recall, left = SlowRecall([FACE]), []
    redaction = worker(recall, left)
    redaction.take(frame(0), [FACE], None)
    recall.at_work.wait()
    start = time.monotonic()
    for number in range(1, 20):
        redaction.take(frame(number), [FACE], None)
    assert time.monotonic() - start < 2
    recall.go.set()
    redaction.close()
    assert redaction.error is None and redaction.dropped == 14
    assert [picture.frame_id for picture in left] == [0, 15, 16, 17, 18, 19]
    assert not any(picture.image[24:34, 24:34].any() for picture in left)


def test_what_waits_too_long_goes_even_if_it_is_little():
    recall, left = SlowRecall([]), []
    redaction = worker(recall, left)
    redaction.take(frame(0), [], None)
    recall.at_work.wait()
    for number in (1, 2, 7, 8):  # picture 1 waits for 231 ms
        redaction.take(frame(number), [], None)
    recall.go.set()
    redaction.close()
    assert [picture.frame_id for picture in left] == [0, 2, 7, 8]


def test_one_pass_serves_the_pictures_that_piled_up_during_the_last():
    recall, left = SlowRecall([FACE]), []
    redaction = worker(recall, left)
    redaction.take(frame(0), [FACE], None)
    recall.at_work.wait()
    for number in range(1, 6):
        redaction.take(still(number), [FACE], None)
    recall.go.set()
    redaction.close()
    assert recall.searched == [0, 1, 5]  # 1: another scene than before
    assert [picture.frame_id for picture in left] == [0, 1, 2, 3, 4, 5] and redaction.dropped == 0


def still(number):
    return Frame(number, number * 33 * MS, frame(1).image, "cam")


@pytest.mark.parametrize(
    ("asked_hz", "every", "away", "hz", "reason"),
    [
        pytest.param(10, 3, (), 10, "", id="as-asked"),
        pytest.param(10, 5, (), 6, "recall at 6 Hz of 10", id="lowered"),
        pytest.param(0, 3, (), 10, "recall at 10 Hz of 30", id="every-picture-was-asked-for"),
        pytest.param(60, 1, (), 30, "", id="the-camera-gives-no-more"),
        pytest.param(10, 3, range(30, 90), 6, "", id="the-camera-was-away"),
    ],
)
def test_cadence(asked_hz, every, away, hz, reason):
    cadence, recalls = Cadence(asked_hz), 0
    for number in range(151):  # 5 s at 30 Hz; the first is where it begins
        if number not in away:
            recalls += number % every == 0
            cadence.add(number * 1000 * MS // 30 + 1, recalls)
    assert cadence.hz == pytest.approx(hz, rel=0.02) and cadence.reason == reason


def test_a_low_cadence_is_judged_over_twenty_passes():
    cadence = Cadence(0.5)
    for second in range(0, 40, 2):
        cadence.add(second * 1000 * MS, second // 2)
        assert not cadence.hz > 0
    cadence.add(40 * 1000 * MS, 20)
    assert cadence.hz == 0.5 and cadence.reason == ""


def test_what_is_not_done_in_time_at_the_end_does_not_leave_after_it():
    recall, left = SlowRecall([]), []
    redaction = worker(recall, left)
    redaction.take(frame(0), [], None)
    recall.at_work.wait()
    redaction.close(timeout_s=0)
    recall.go.set()
    redaction._thread.join()
    assert left == [] and redaction.error is None


def test_an_error_stops_the_pictures_and_is_kept():
    def broken(_):
        raise RuntimeError("the detector died")

    left = []
    redaction = worker(broken, left)
    redaction.take(frame(0), [FACE], None)
    redaction.close()
    assert str(redaction.error) == "the detector died" and left == []
