"""Recompute the scores of an event log with the runtime's own recipe, and compare them bit for bit.

The log holds the gaze samples as they came, the features as float32, the class probabilities and the faces. Mapping,
fixations, similarity, weights and FCC are computed again; what differs is listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edge import events
from edge.adaptive import Embedded
from edge.config import Config, from_dict
from edge.environment import EnvironmentCache, Environments
from edge.errors import DataError
from edge.files import plain
from edge.gaze.calibration import GazeCalibration
from edge.gaze.geometry import geometry_from
from edge.gaze.mapping import make_mapping
from edge.gaze.sources.base import GazeInfo
from edge.pipeline import ScorePipeline, Step
from edge.records import Emotion, Event, Face, Fixation, Frame, Score, Subject


@dataclass
class Rerun:
    """The outcome: how many scores and fixations there are, how many came out the same, and which did not."""

    scores: int = 0
    scores_equal: int = 0
    fixations: int = 0
    fixations_equal: int = 0
    complete: bool = False
    missing_events: int = 0
    out_of_order: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def identical(self) -> bool:
        same = self.scores == self.scores_equal and self.fixations == self.fixations_equal
        return same and not self.out_of_order

    def notes(self) -> list[str]:
        """Say whether the log is whole, and what speaks against it."""
        notes = []
        if self.out_of_order:
            notes.append(f"{self.out_of_order} events are doubled or out of order: the log was altered")
        if self.missing_events:
            notes.append(
                f"{self.missing_events} events are missing: dropped under load, left out by consent, or removed"
            )
        if not self.complete:
            notes.append("the log has no end: the run was cut off")
        return notes or ["the log is whole"]


class RecordedStages:
    """Stands in for the networks: hands back what the event log holds for the frame at hand."""

    def __init__(self) -> None:
        self._payload: dict[str, Any] = {}

    def load(self, payload: dict[str, Any]) -> None:
        self._payload = payload

    def faces(self, frame: Frame) -> list[Face]:
        return [events.face_from_plain(face) for face in self._payload["faces"]]

    def embed(self, frame: Frame, fixation: Fixation, rung: int) -> Embedded:
        features = events.features_from_plain(frame.frame_id, frame.t_ns, self._payload["features"])
        return Embedded(features, self._payload["embedding"]["reason"])

    def emotion(self, frame: Frame, face: Face | None, subject: Subject) -> Emotion | None:
        return events.emotion_from_plain(self._payload["emotion"])


def rerun(log: Iterable[Event], thing: str, *, cache: Path | None = None) -> tuple[Rerun, list[Score]]:
    """Recompute every score of `log`.

    Parameters
    ----------
    log : iterable of Event
        The events in order, the `session` event first.
    thing : str
        The log's name, for errors.
    cache : Path, optional
        The environment cache, if it no longer lies where the header says.

    Returns
    -------
    Rerun, list of Score
        The comparison, and the recomputed scores.
    """
    log = iter(log)
    header = next(log, None)
    if header is None:
        raise DataError(thing, "is empty", expected="a session event first")
    events.check_header(header, thing)
    stages = RecordedStages()
    pipeline = _pipeline(header.payload, stages, cache)
    outcome, scores = Rerun(), []
    ended: list[Fixation] = []
    seq = header.seq
    for event in log:
        outcome.missing_events += max(0, event.seq - seq - 1)
        outcome.out_of_order += event.seq <= seq
        seq = max(seq, event.seq)
        if event.kind == "score":
            try:
                step = _step(pipeline, stages, event)
            except (KeyError, TypeError) as error:
                raise DataError(f"{thing}, event {event.seq}", f"is no whole score event: {error!r}") from error
            ended += step.ended
            scores.append(step.score)
            _compare_score(outcome, event, step.score)
        elif event.kind == "restart":
            pipeline = _pipeline(header.payload, stages, cache)
        elif event.kind == "gaze":
            ended += pipeline.follow(events.gaze_from_plain(event.payload["gaze"]))[1]
        elif event.kind == "fixation":
            if not ended:
                ended += pipeline.finish()
            _compare_fixation(outcome, event, ended.pop(0) if ended else None)
        outcome.complete = event.kind == "end"
    return outcome, scores


def _pipeline(header: dict[str, Any], stages: RecordedStages, cache: Path | None) -> ScorePipeline:
    config: Config = from_dict(header["config"], thing="the log's settings")
    info = GazeInfo(**header["gaze"])
    size = (header["scene"]["width"], header["scene"]["height"])
    declared = header["geometry"]
    corrected = header.get("gaze_calibration")
    calibration = msgspec.convert(corrected, GazeCalibration) if corrected else None
    geometry = geometry_from(declared, thing="the log's geometry") if declared else None
    mapping = make_mapping(info, geometry, size, calibration)
    logged, environment = header["environment"], None
    if logged:
        folder = cache or Path(config.environment.cache)
        if gone := [name for name in logged if not (folder / name).is_dir()]:
            problem = f"holds no cache of {gone[0]}, with which the log was scored"
            raise DataError(str(folder), problem, fix="if it lies elsewhere now, name the folder with --cache")
        environment = Environments(EnvironmentCache.open(folder / name) for name in logged)
        if environment.identity != logged:
            raise DataError(str(folder), "is not the cache that the log was scored with", fix="name it with --cache")
    return ScorePipeline(config, mapping, stages, environment, gaze_hz=info.hz_declared)


def _step(pipeline: ScorePipeline, stages: RecordedStages, event: Event) -> Step:
    payload = event.payload
    stages.load(payload)
    blank = np.broadcast_to(np.uint8(0), (payload["height"], payload["width"], 3))
    frame = Frame(payload["frame_id"], event.t_ns, blank, "log")
    now_ns = event.t_ns + payload["score"]["frame_age_ns"]
    return pipeline.score(
        frame,
        events.gaze_from_plain(payload["gaze"]),
        now_ns=now_ns,
        telemetry=events.telemetry_from_plain(payload["telemetry"]),
        withhold=payload.get("withhold", ""),
    )


def _compare_score(outcome: Rerun, event: Event, score: Score) -> None:
    outcome.scores += 1
    differing = _differing(event.payload["score"], score)
    outcome.scores_equal += not differing
    if differing:
        outcome.differences.append(f"score of frame {score.frame_id}: {differing}")


def _compare_fixation(outcome: Rerun, event: Event, fixation: Fixation | None) -> None:
    outcome.fixations += 1
    differing = _differing(event.payload, fixation) if fixation else "missing"
    outcome.fixations_equal += not differing
    if differing:
        outcome.differences.append(f"fixation {event.payload['fixation_id']}: {differing}")


def _differing(logged: dict[str, Any], computed: Score | Fixation) -> str:
    """Name the fields that differ; nan is logged as null."""
    values = plain(events.to_plain(computed))
    pairs = ((key, logged.get(key), value) for key, value in values.items())
    return ", ".join(f"{key} was {old}, is {new}" for key, old, new in pairs if old != new)
