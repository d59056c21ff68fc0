"""THE ORDER: what happens to a picture and its gaze, in two short recipes, `score` and `redact`.

No I/O, no clock and no thread lives here. Live, the stages are networks; in a rerun they hand back what was recorded;
the recipe is the same, and so are its scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge import fcc
from edge.adaptive import Embedded
from edge.clock import NS_PER_MS
from edge.config import Config
from edge.environment import Environments, Match, undefined
from edge.features import window_px
from edge.gaze.fixations import FixationDetector
from edge.governor import Choice, Governor, Spent
from edge.privacy import RedactionCounts, Redactor
from edge.profiling import StageTimer
from edge.records import (
    Emotion,
    Face,
    Features,
    Fixation,
    Frame,
    GazeSample,
    RawGaze,
    RedactedFrame,
    Score,
    Subject,
    Telemetry,
)


class Stages(Protocol):
    """What needs the picture itself: networks when live, recorded results in a rerun."""

    def faces(self, frame: Frame) -> list[Face]:
        """Find faces with the fast detector."""

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        """Embed the window around the fixation and the whole scene with the ladder's rung."""

    def emotion(self, frame: Frame, face: Face | None, subject: Subject) -> Emotion | None:
        """Classify a face; None if no classifier is configured."""


@dataclass(frozen=True, slots=True)
class Step:
    """All that the score recipe found for one scene frame."""

    raw_gaze: list[RawGaze]
    samples: list[GazeSample]
    ended: list[Fixation]
    fixation: Fixation | None
    faces: list[Face]
    embedded: Embedded
    emotion: Emotion | None
    telemetry: Telemetry | None
    choice: Choice | None
    score: Score

    @property
    def features(self) -> Features | None:
        """The embeddings that the score rests on."""
        return self.embedded.features

    @property
    def switched(self) -> bool:
        """Whether the governor changed the precision with this frame."""
        return self.choice is not None and self.choice.since_ns == self.score.t_ns

    @property
    def gaze_px(self) -> tuple[float, float] | None:
        """The newest valid gaze at the time of the frame, in scene pixels."""
        now = [s for s in self.samples if s.valid and s.t_ns <= self.score.t_ns and math.isfinite(s.x_px)]
        return (now[-1].x_px, now[-1].y_px) if now else None


class ScorePipeline:
    """The score recipe and the little state it needs: the fixation in progress, the window of scores.

    Parameters
    ----------
    config : Config
        The run's settings.
    mapping : callable
        RawGaze -> GazeSample, from `edge.gaze.mapping.make_mapping`.
    stages : Stages
        What looks at pictures.
    environment : Environments or None
        What is looked at is compared with it; without one every score is undefined (`no_environment`).
    governor : Governor or None
        Chooses the precision; without one it is always the first rung.
    gaze_hz : float
        Declared gaze rate, 0 if none.
    """

    def __init__(
        self,
        config: Config,
        mapping: Callable[[RawGaze], GazeSample],
        stages: Stages,
        environment: Environments | None,
        *,
        governor: Governor | None = None,
        gaze_hz: float = 0.0,
        timer: StageTimer | None = None,
    ) -> None:
        self.fixations = FixationDetector(config.fixations, gaze_hz)
        self.timer = timer or StageTimer()
        self._config = config
        self._mapping = mapping
        self._stages = stages
        self._environment = environment
        self._governor = governor
        self._window = fcc.FccWindow(config.score.window_s)
        self._last_valid_ns: int | None = None

    def score(
        self,
        frame: Frame,
        raw_gaze: Sequence[RawGaze],
        *,
        now_ns: int,
        face_frame: Frame | None = None,
        telemetry: Telemetry | None = None,
        withhold: str = "",
        spent: Spent | None = None,
    ) -> Step:
        """Score one scene frame.

        Parameters
        ----------
        frame : Frame
            The scene picture.
        raw_gaze : sequence of RawGaze
            The samples that came since the frame before, in order.
        now_ns : int
            The time at which the frame is scored, for its age.
        face_frame : Frame, optional
            The newest picture of the wearer, from a face camera.
        telemetry : Telemetry, optional
            The state of the machine.
        withhold : str
            Why this picture must not be scored (`stale`); the gaze is followed all the same.
        spent : Spent, optional
            How long the frames before took; a recording's clock doesn't know.
        """
        timed = self.timer.stage
        with timed("gaze"):
            samples, ended = self.follow(raw_gaze)
            fixation, why_none = (None, withhold) if withhold else self._current(frame.t_ns, now_ns)
        choice = self._governor.choose(frame, telemetry, spent) if self._governor else None
        with timed("faces"):
            faces = self._stages.faces(frame)
        with timed("features"):
            rung = choice.rung if choice else 0
            embedded = self._stages.embed(frame, fixation, rung) if fixation else Embedded(None, why_none)
        with timed("emotion"):
            emotion = None if withhold else self._emotion(frame, faces, face_frame, fixation)
        with timed("score"):
            match = self._match(embedded)
            score = self._score(frame, fixation, embedded.features, match, emotion, now_ns)
        return Step(list(raw_gaze), samples, ended, fixation, faces, embedded, emotion, telemetry, choice, score)

    def finish(self) -> list[Fixation]:
        """Return the fixations that only the end of the gaze stream ends."""
        return self.fixations.flush()

    def follow(self, raw_gaze: Sequence[RawGaze]) -> tuple[list[GazeSample], list[Fixation]]:
        """Follow gaze for which there is no picture; return the mapped samples and the fixations that ended."""
        samples = [self._mapping(raw) for raw in raw_gaze]
        ended: list[Fixation] = []
        for sample in samples:
            ended += self.fixations.add(sample)
            if sample.valid:
                self._last_valid_ns = sample.t_ns
        return samples, ended

    def _gaze_age_ns(self, t_ns: int) -> int:
        return -1 if self._last_valid_ns is None else max(0, t_ns - self._last_valid_ns)

    def _current(self, t_ns: int, now_ns: int) -> tuple[Fixation | None, str]:
        """Return the fixation in progress, or None and why.

        Gaze is absent, stale, stamped later than now (its clock isn't ours), or between two fixations.
        """
        age = self._gaze_age_ns(t_ns)
        if age < 0 or self._last_valid_ns is None:
            return None, "no_gaze"
        ahead_ms = self._config.gaze.wait_ms + self._config.live.sync_ms
        if self._last_valid_ns - now_ns > ahead_ms * NS_PER_MS:
            return None, "unsynchronised"
        if age > self._config.gaze.silent_ms * NS_PER_MS:
            return None, "stale"
        return self.fixations.current, "no_fixation"

    def _emotion(
        self, frame: Frame, faces: list[Face], face_frame: Frame | None, fixation: Fixation | None
    ) -> Emotion | None:
        """Classify the wearer where a camera sees them, else the person who is looked at."""
        if face_frame is not None:
            return self._stages.emotion(face_frame, largest_face(self._stages.faces(face_frame)), "wearer")
        if self._config.face_camera.source == "scene":
            return self._stages.emotion(frame, largest_face(faces), "wearer")
        return self._stages.emotion(frame, fixated_face(faces, fixation), "fixated")

    def _match(self, embedded: Embedded) -> Match:
        if embedded.features is None:
            return undefined(embedded.reason)
        if self._environment is None:
            return undefined("no_environment")
        return self._environment.match(embedded.features)

    def _score(
        self,
        frame: Frame,
        fixation: Fixation | None,
        features: Features | None,
        match: Match,
        emotion: Emotion | None,
        now_ns: int,
    ) -> Score:
        settings = self._config.score
        wearer = emotion.label if emotion and emotion.subject == "wearer" else ""
        alpha, beta, table = fcc.weights_for(settings.weights, wearer)
        now = fcc.fcc_now(match.sim_local, match.sim_global, alpha, beta)
        fixation_id = fixation.fixation_id if fixation else -1
        window = self._window.add(frame.t_ns, fixation_id, now)
        return Score(
            frame_id=frame.frame_id,
            t_ns=frame.t_ns,
            fixation_id=fixation_id,
            fcc_now=now,
            fcc=window,
            reason=match.reason,
            sim_local=match.sim_local,
            sim_global=match.sim_global,
            region=match.region,
            alpha=alpha,
            beta=beta,
            weights=table,
            weights_emotion=wearer,
            attention_source="retrieved",
            embedding=settings.embedding,
            window_px=window_px(frame.width, frame.height, settings.window),
            frame_age_ns=now_ns - frame.t_ns,
            gaze_age_ns=self._gaze_age_ns(frame.t_ns),
            model_id=features.model_id if features else "",
            precision=features.precision if features else "",
        )


class RedactPipeline:
    """The redact recipe: a picture in, and out come the pictures that are ready to leave, every other face covered.

    With `may_uncover` off no fixation uncovers a face: its source can't be trusted with that.
    """

    def __init__(
        self,
        redactor: Redactor,
        recall: Callable[[Frame], list[Face]] | None,
        *,
        may_uncover: bool = True,
        timer: StageTimer | None = None,
    ) -> None:
        self._redactor, self._may_uncover = redactor, may_uncover
        self._recall = recall
        self._timer = timer or StageTimer()

    @property
    def counts(self) -> RedactionCounts:
        """What was done so far."""
        return self._redactor.counts

    def redact(
        self, frame: Frame, faces: list[Face], fixation: Fixation | None, next_ns: int | None = None
    ) -> list[RedactedFrame]:
        """Take a frame with its fast faces and the fixation in progress; without one, every face is covered.

        `next_ns` is the time of the next frame if it waits already: see `Redactor.wants_recall`.
        """
        recall = None
        if self._recall is not None and self._redactor.wants_recall(frame, next_ns):
            with self._timer.stage("recall"):
                recall = self._recall(frame)
        gaze = (fixation.x_px, fixation.y_px) if fixation and self._may_uncover else None
        with self._timer.stage("cover"):
            return self._redactor.push(frame, faces, recall, gaze)

    def finish(self) -> list[RedactedFrame]:
        """Return the pictures that still wait; the last one gets a pass of the recall detector."""
        last = self._redactor.last_waiting
        recall = self._recall(last) if self._recall is not None and last is not None else None
        return self._redactor.flush(recall)


def largest_face(faces: Sequence[Face]) -> Face | None:
    """Return the face with the largest box: the person whom a face camera is there for."""
    return max(faces, key=lambda face: face.box[2] * face.box[3], default=None)


def fixated_face(faces: Sequence[Face], fixation: Fixation | None) -> Face | None:
    """Return the smallest face whose box holds the fixation."""
    if fixation is None:
        return None

    def holds(face: Face) -> bool:
        x, y, width, height = face.box
        return x <= fixation.x_px < x + width and y <= fixation.y_px < y + height

    return min(filter(holds, faces), key=lambda face: face.box[2] * face.box[3], default=None)
