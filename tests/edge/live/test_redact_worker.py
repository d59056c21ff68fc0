"""Redaction in its thread: it never makes the loop wait, and what it can't keep up with is dropped, never uncovered."""

from __future__ import annotations

import threading
import time

import numpy as np

from edge.config import RedactConfig
from edge.live.redact_worker import QUEUE_PICTURES, RedactWorker
from edge.pipeline import RedactPipeline
from edge.privacy import Redactor
from edge.records import Face, Frame

MS = 1_000_000
FACE = Face((20.0, 20.0, 16.0, 16.0), 0.9)


def frame(number):
    image = np.random.default_rng(number).integers(0, 255, (64, 64, 3), np.uint8)
    return Frame(number, number * 33 * MS, image, "cam")


def test_a_slow_recall_pass_makes_nobody_wait_and_uncovers_nothing():
    go, left = threading.Event(), []
    frames = [frame(k) for k in range(3 * QUEUE_PICTURES)]

    def slow_recall(_):
        go.wait()
        return [FACE]

    redactor = Redactor(RedactConfig(recall_hz=0, cover="solid"))
    worker = RedactWorker(RedactPipeline(redactor, slow_recall), left.append)
    start = time.monotonic()
    for each in frames:
        worker.take(each, [FACE], None)
    assert time.monotonic() - start < 2
    go.set()
    worker.close()
    assert worker.error is None and worker.dropped >= len(frames) - QUEUE_PICTURES - 1
    assert len(left) + worker.dropped == len(frames)
    assert left[-1].frame_id == frames[-1].frame_id
    for picture in left:
        assert picture.withheld or not picture.image[24:34, 24:34].any()


def test_an_error_stops_the_pictures_and_is_kept():
    def broken(_):
        raise RuntimeError("the detector died")

    left = []
    worker = RedactWorker(RedactPipeline(Redactor(RedactConfig(recall_hz=0)), broken), left.append)
    worker.take(frame(0), [FACE], None)
    worker.close()
    assert str(worker.error) == "the detector died" and left == []
