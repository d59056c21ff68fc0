"""Embedding at the precision that the governor chose, and beside the score path where that is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edge.backends.base import Model, open_model
from edge.config import ModelsConfig, ScoreConfig
from edge.features import Embedder
from edge.ladder import Ladder
from edge.profiling import StageTimer
from edge.records import Features, Fixation, Frame


@dataclass(frozen=True, slots=True)
class Embedded:
    """Features of a fixation, or the reason why there are none; and the frames that were left out for newer ones."""

    features: Features | None
    reason: str = ""
    skipped: tuple[int, ...] = ()


OFF_PICTURE = Embedded(None, "fixation_off_picture")


class AdaptiveEmbedder:
    """All rungs of a ladder, loaded and warm, so that a switch costs no frame.

    Parameters
    ----------
    embedders : sequence of Embedder
        One per rung, in the ladder's order.
    """

    def __init__(self, embedders: Sequence[Embedder]) -> None:
        self._embedders = list(embedders)
        picture = np.zeros((224, 224, 3), np.uint8)
        for embedder in self._embedders:  # only the first run of each size is a slow one (measured on three runtimes)
            embedder.local([picture])
            embedder.local([picture, picture])

    @classmethod
    def open(
        cls, ladder: Ladder, models: ModelsConfig, score: ScoreConfig, timer: StageTimer | None = None
    ) -> AdaptiveEmbedder:
        """Open every rung's artefact on its inference runtime.

        Raises
        ------
        ModelError, BackendError
            A rung can't be run here: the ladder is another machine's, or old.
        """
        opened = (open_model(rung.artefact, rung.models(models)) for rung in ladder.rungs)
        return cls([Embedder(model, score, timer) for model in opened])

    @property
    def models(self) -> list[Model]:
        """The open models, one per rung."""
        return [embedder.model for embedder in self._embedders]

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        """Embed a fixation with one rung's artefact, which the features name."""
        features = self._embedders[rung].embed(frame, fixation.x_px, fixation.y_px)
        return Embedded(features) if features is not None else OFF_PICTURE


@dataclass(frozen=True, slots=True)
class _Task:
    frame: Frame
    fixation: Fixation
    rung: int


class AsynchronousEmbedder:
    """Embed on a thread of its own, so that no score waits for a network; the newest fixation wins.

    Each call hands over its frame, in place of one that still waits (which is then skipped), and takes the result that
    has come since the call before. A result counts once, and only while its fixation lasts.

    Parameters
    ----------
    embed : callable
        (frame, fixation, rung) -> Embedded; it runs on the thread.
    """

    def __init__(self, embed: Callable[[Frame, Fixation, int], Embedded]) -> None:
        self._embed = embed
        self._condition = threading.Condition()
        self._waiting: _Task | None = None
        self._result: tuple[_Task, Embedded] | None = None
        self._failure: BaseException | None = None
        self._skipped: list[int] = []
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="embed", daemon=True)
        self._thread.start()

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        """Hand over a frame and return the newest result: `embedding_pending` where none of this fixation came."""
        with self._condition:
            if self._failure is not None:
                raise self._failure
            if self._waiting is not None:
                self._skipped.append(self._waiting.frame.frame_id)
            self._waiting = _Task(frame, fixation, rung)
            self._condition.notify_all()
            result, self._result = self._result, None
            if result is not None and result[0].fixation.fixation_id != fixation.fixation_id:
                self._skipped.append(result[0].frame.frame_id)
                result = None
            skipped, self._skipped = tuple(self._skipped), []
        if result is None:
            return Embedded(None, "embedding_pending", skipped)
        return Embedded(result[1].features, result[1].reason, skipped)

    def close(self) -> None:
        """Stop the thread; what waits is dropped. May be called twice."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or self._waiting is not None)
                task, self._waiting = self._waiting, None
                if self._closed or task is None:
                    return
            try:
                embedded = self._embed(task.frame, task.fixation, task.rung)
            except Exception as error:  # noqa: BLE001 - raised again by the next call, on the caller's thread
                with self._condition:
                    self._failure = error
                    self._condition.notify_all()
                return
            with self._condition:
                if self._result is not None:
                    self._skipped.append(self._result[0].frame.frame_id)
                self._result = (task, embedded)
                self._condition.notify_all()
