"""Switching rungs loses no frame; embedding beside the score path lets the newest fixation win."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from pixel_model import PixelModel

from edge.adaptive import AdaptiveEmbedder, AsynchronousEmbedder, Embedded
from edge.config import ScoreConfig
from edge.features import Embedder
from edge.records import Features, Fixation, Frame


def frame(i: int) -> Frame:
    image = np.full((80, 120, 3), 10 * i, np.uint8)
    return Frame(i, i * 40_000_000, image, "test")


def fixation(number: int, x: float = 50.0) -> Fixation:
    return Fixation(number, 0, 1, x, 40.0, 0.0, 0.0, 0.1, 5, "ongoing")


def test_every_frame_is_embedded_by_the_chosen_rung() -> None:
    models = [PixelModel(name=name) for name in ("best", "mid", "fast")]
    embedder = AdaptiveEmbedder([Embedder(model, ScoreConfig()) for model in models])
    assert all(model.batches == [1, 2] for model in models), "warm at both batch sizes before the first frame"
    rungs = [0, 0, 2, 2, 1, 0]
    seen = [embedder.embed(frame(i), fixation(1), rung) for i, rung in enumerate(rungs)]
    named = [e.features.model_id.split("@")[0] if e.features else "" for e in seen]
    assert named == ["best", "best", "fast", "fast", "mid", "best"]
    for i, embedded in enumerate(seen):
        assert embedded.features is not None
        np.testing.assert_array_equal(embedded.features.local, np.full(12, 10 * i, np.float32))
    assert embedder.models == models


def test_off_the_picture_has_a_reason() -> None:
    embedder = AdaptiveEmbedder([Embedder(PixelModel(), ScoreConfig())])
    assert embedder.embed(frame(0), fixation(1, x=-3.0), 0) == Embedded(None, "fixation_off_picture")


class Gate:
    """An embedding that waits until it is let through, and says when it has begun and ended."""

    def __init__(self) -> None:
        self.begun, self.go, self.done = threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        self.begun.release()
        assert self.go.acquire(timeout=10)
        self.done.release()
        vector = np.full(2, rung, np.float32)
        return Embedded(Features(frame.frame_id, frame.t_ns, vector, vector, "model", "fp32"))


def frame_of(embedded: Embedded) -> int | None:
    return embedded.features.frame_id if embedded.features else None


def settled(beside: AsynchronousEmbedder) -> None:
    """Wait until the thread has handed over its result: it then waits for the next task."""
    with beside._condition:
        assert beside._condition.wait_for(lambda: beside._result is not None or beside._failure is not None, timeout=10)


def test_the_newest_fixation_wins_and_skips_are_told() -> None:
    gate = Gate()
    beside = AsynchronousEmbedder(gate)
    assert beside.embed(frame(0), fixation(1), 0) == Embedded(None, "embedding_pending")
    assert gate.begun.acquire(timeout=10)
    assert beside.embed(frame(1), fixation(1), 0).skipped == ()
    late = beside.embed(frame(2), fixation(1), 2)
    assert (late.reason, late.skipped) == ("embedding_pending", (1,)), "frame 1 waited and made way for frame 2"
    gate.go.release()
    settled(beside)
    first = beside.embed(frame(3), fixation(1), 0)
    assert (frame_of(first), first.reason) == (0, "")
    gate.go.release(2)
    beside.close()


def test_a_result_counts_once_and_only_while_its_fixation_lasts() -> None:
    gate = Gate()
    gate.go.release(3)
    beside = AsynchronousEmbedder(gate)
    beside.embed(frame(0), fixation(1), 0)
    settled(beside)
    other = beside.embed(frame(1), fixation(2), 0)
    assert (frame_of(other), other.reason, other.skipped) == (None, "embedding_pending", (0,))
    settled(beside)
    assert frame_of(beside.embed(frame(2), fixation(2), 0)) == 1
    beside.close()
    beside.close()


def test_a_failure_on_the_thread_is_raised_by_the_next_call() -> None:
    def fails(frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        raise RuntimeError("the accelerator is gone")

    beside = AsynchronousEmbedder(fails)
    beside.embed(frame(0), fixation(1), 0)
    settled(beside)
    with pytest.raises(RuntimeError, match="accelerator is gone"):
        beside.embed(frame(1), fixation(1), 0)
    beside.close()
