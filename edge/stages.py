"""The stages of the score recipe as networks: artefacts opened once, called once per frame."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edge.adaptive import AdaptiveEmbedder, AsynchronousEmbedder, Embedded
from edge.backends.base import Model, open_model
from edge.config import Config
from edge.emotion import EmotionClassifier
from edge.features import Embedder
from edge.ladder import read_ladder
from edge.profiling import StageTimer
from edge.records import Emotion, Face, Fixation, Frame, Subject
from edge.redaction import Detectors


class NetworkStages:
    """Open the artefacts that `config` names and run them.

    Raises
    ------
    ModelError
        An artefact is missing, altered, or fails its canary.
    BackendError
        No inference runtime here runs it.

    With a ladder (`governor.ladder`) every rung is loaded and warm; without one, `models.embedder` is the only rung. A
    live run with `governor.asynchronous` embeds on a thread of its own.
    """

    def __init__(self, config: Config, timer: StageTimer | None = None, *, live: bool = False) -> None:
        names = config.models
        self._redact = config.redact
        self._detectors = Detectors.open(names)
        with ThreadPoolExecutor(1) as beside:
            # It takes most memory, and the others find room in that; its first run is slow.
            warmed = beside.submit(self._detectors.warm, config.redact.recall_size_px)
            self.ladder = read_ladder(Path(config.governor.ladder)) if config.governor.ladder else None
            if self.ladder:
                self._embedder = AdaptiveEmbedder.open(self.ladder, names, config.score, timer)
            else:
                self._embedder = AdaptiveEmbedder([Embedder(open_model(names.embedder, names), config.score, timer)])
            self._emotion = EmotionClassifier(open_model(names.emotion, names)) if names.emotion else None
            warmed.result()
        self.recall = self._detectors.on_stream(config.redact)  #: on a frame; None where there is no recall detector
        asynchronous = live and config.governor.asynchronous
        self._beside = AsynchronousEmbedder(self._embedder.embed) if asynchronous else None

    @property
    def embedders(self) -> list[Model]:
        """The open embedders, one per rung of the ladder."""
        return self._embedder.models

    @property
    def embedder_model(self) -> Model:
        """The embedder of the first rung."""
        return self.embedders[0]

    @property
    def models(self) -> list[Model]:
        """The open models, the embedders first."""
        detectors = (self._detectors.fast, self._detectors.recall, self._emotion)
        return [*self.embedders, *(part.model for part in detectors if part is not None)]

    def faces(self, frame: Frame) -> list[Face]:
        return self._detectors.fast.detect(frame.image, self._redact.fast_score)

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        return (self._beside or self._embedder).embed(frame, fixation, rung)

    def emotion(self, frame: Frame, face: Face | None, subject: Subject) -> Emotion | None:
        if self._emotion is None:
            return None
        return self._emotion.classify(frame.image, face.box if face else None, frame.t_ns, subject)

    @property
    def inference_ns(self) -> int:
        """Time spent inside the inference runtimes so far, the recall detector's apart: it has its own deadline."""
        recall = self._detectors.recall
        return sum(m.inference_ns for m in self.models if recall is None or m is not recall.model)

    def warm(self, frame: Frame) -> None:
        """Run every network once on a picture: the first run is the slow one. The recall detector had its own."""
        middle = Fixation(-1, 0, 0, frame.width / 2, frame.height / 2, 0.0, 0.0, 0.0, 0, "ongoing")
        self.faces(frame)
        self._embedder.embed(frame, middle, 0)
        if self._emotion is not None:
            box = (0.0, 0.0, float(frame.width), float(frame.height))
            self._emotion.classify(frame.image, box, frame.t_ns, "wearer")

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()
        for model in self.models:
            model.close()
