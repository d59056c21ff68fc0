"""Wiring: sources, stages and sinks are opened from the settings, and frames are fed through the two recipes.

Here a file's clock rules: every cadence, hold and deadline counts in presentation time, inference is synchronous, and
the same files give the same events.
"""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from edge import __version__, events
from edge.capture import open_capture
from edge.capture.base import FrameInfo, FrameSource
from edge.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from edge.config import Config
from edge.environment import Environments
from edge.errors import ConfigError, SourceError
from edge.gaze.mapping import Mapping, open_mapping
from edge.gaze.sources import may_uncover, open_gaze
from edge.gaze.sources.base import GazeSource
from edge.governor import Governor
from edge.outputs import (
    Emitter,
    not_recorded,
    open_sinks,
    public_settings,
    recorded_to,
    refused_sinks,
    without_sinks,
)
from edge.pipeline import RedactPipeline, ScorePipeline, Step
from edge.privacy import Redactor
from edge.profiling import StageTimer
from edge.records import Fixation, Frame, RedactedFrame, Telemetry
from edge.stages import NetworkStages
from edge.stopping import StopSignal
from edge.summary import Summary, written_at_end
from edge.telemetry import TelemetrySource, open_telemetry

DECLARED_SLACK_S = 1.0  #: by which a clip may last longer than it declares
#: Takes pictures and how many there should be (None: nobody knows), and gives them one by one.
Watch = Callable[[Iterator[Frame], int | None], Iterator[Frame]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a run, opened."""

    scene: FrameSource
    gaze: GazeSource
    face_camera: FrameSource | None
    telemetry: TelemetrySource | None


def run(
    config: Config,
    *,
    on_step: Callable[[Step], None] | None = None,
    timer: StageTimer | None = None,
    stop: StopSignal | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Run the whole pipeline over file sources and return what it did.

    Parameters
    ----------
    config : Config
    on_step : callable, optional
        Gets what the score recipe found, picture by picture.
    timer : StageTimer, optional
    stop : StopSignal, optional
        Ends the run after the picture in work: what was found by then is written whole, and `stopped` in the summary
        and in the `end` event says that there would have been more.
    watch : callable, optional
        Wraps the pictures and their expected number, e.g. to show progress.

    Raises
    ------
    EmoGazeError
        A source, artefact, cache or sink can't be used; nothing that looks whole is left behind.
    """
    with ExitStack() as stack:
        scene = stack.enter_context(open_capture(config.scene, "scene"))
        face_camera = open_face_camera(config, stack)
        gaze = stack.enter_context(open_gaze(config.gaze))
        if gaze.info.live:
            fix = f'play the clip as if live: scene.source = "paced:{config.scene.source}"'
            raise ConfigError("scene.source", "is a recording, but gaze is live", fix=fix)
        refuse_apart(config, scene.info, gaze.span_ns)
        size = (scene.info.width, scene.info.height)
        mapping = open_mapping(gaze, config.gaze, size)
        for doubt in filter(None, (gaze.doubt, mapping.lack)):
            print(f"emogaze: {config.gaze.source} {doubt}", file=sys.stderr)
        inputs = Inputs(scene, gaze, face_camera, load_telemetry(config, stack, live=False))
        timer = timer or StageTimer()
        stages = NetworkStages(config, timer)
        stack.callback(stages.close)
        environment = load_environment(config, stages)
        refused = refused_sinks(config)
        config = without_sinks(config, refused)
        summary = Summary(
            simulated_gaze=gaze.info.simulated,
            refused_sinks=refused,
            events=config.sinks.events,
            video=config.sinks.video,
            summary=config.sinks.summary,
        )
        stack.enter_context(written_at_end(summary, config))
        header = session_header(config, scene, gaze, mapping, stages, environment)
        sinks = open_sinks(config, header, stack)
        summary.recording, summary.not_recorded = recorded_to(config, header), not_recorded(header)
        score = score_recipe(config, mapping, stages, environment, gaze.info.hz_declared, timer)()
        redact = redact_recipe(config, mapping, stages, timer)
        emitter = Emitter(sinks)
        emitter.event("session", 0, header)
        loop = FileLoop(config, score, redact, stages, emitter, summary, timer)
        loop.run(inputs, on_step, stop or StopSignal(), watch)
        summary.model, summary.provider = stages.embedder_model.manifest.name, stages.embedder_model.active
    return summary


def refuse_apart(config: Config, info: FrameInfo, span_ns: tuple[int, int] | None) -> None:
    """Refuse at once gaze that can't lie within the clip; the loop refuses what only decoding shows.

    Raises
    ------
    SourceError
    """
    if span_ns is None:
        return
    first_s, last_s = (t_ns / NS_PER_S for t_ns in span_ns)
    declared_s = info.n_frames / info.declared_hz if info.n_frames and info.declared_hz else math.inf
    end_s = min(config.scene.end_s or math.inf, declared_s)
    if last_s < config.scene.start_s or first_s > end_s + DECLARED_SLACK_S:
        raise no_overlap(config, end_s)


def no_overlap(config: Config, end_s: float) -> SourceError:
    """Return what is said of gaze that lies outside the clip's played part, which ends at `end_s` (inf: not known)."""
    span = f"{config.scene.start_s:g} to {end_s:.3f} s" if math.isfinite(end_s) else f"{config.scene.start_s:g} s on,"
    return SourceError(
        config.gaze.source,
        "no gaze sample lies within the clip's time",
        expected=f"samples from {span} of the clip",
        fix="check time_unit and offset_ms",
    )


class FileLoop:
    """Feed frames and gaze of file sources through the recipes, in presentation time."""

    def __init__(
        self,
        config: Config,
        score: ScorePipeline,
        redact: RedactPipeline,
        stages: NetworkStages,
        emitter: Emitter,
        summary: Summary,
        timer: StageTimer,
    ) -> None:
        self._config, self._score, self._redact, self._stages = config, score, redact, stages
        self._emitter, self._summary, self._timer = emitter, summary, timer

    def run(
        self,
        inputs: Inputs,
        on_step: Callable[[Step], None] | None,
        stop: StopSignal,
        watch: Watch | None,
    ) -> None:
        wait_ns = self._config.gaze.wait_ms * NS_PER_MS
        start_ns = round(self._config.scene.start_s * NS_PER_S)
        scene, telemetry, faces = inputs.scene, inputs.telemetry, NewestFace(inputs.face_camera)
        t_ns, overlaps = 0, False
        frames = self._read(scene, stop)
        for frame in watch(frames, self._expected(scene.info)) if watch else frames:
            raw_gaze = inputs.gaze.read_until(frame.t_ns + wait_ns)
            overlaps = overlaps or any(sample.t_ns >= start_ns for sample in raw_gaze)
            state = telemetry.at(frame.t_ns) if telemetry else None
            step = self._step(frame, raw_gaze, faces.until(frame.t_ns), state)
            t_ns = frame.t_ns
            if on_step:
                on_step(step)
        self._summary.stopped, self._summary.scene_note = stop.name, scene.info.note
        if stop.name:
            self._finish(t_ns)
            return
        if not self._summary.frames:
            raise SourceError(self._config.scene.source, "holds no picture in the given span")
        if not overlaps:
            raise no_overlap(self._config, t_ns / NS_PER_S)
        self._finish(t_ns)

    def _read(self, scene: FrameSource, stop: StopSignal) -> Iterator[Frame]:
        while not stop.name:
            with self._timer.stage("capture"):
                frame = scene.read()
            if frame is None:
                return
            yield frame

    def _expected(self, info: FrameInfo) -> int | None:
        """Return how many pictures lie in the played part, as far as the clip declares it."""
        played = self._config.scene
        if not info.n_frames or not info.declared_hz:
            return info.n_frames
        last = min(info.n_frames, round(played.end_s * info.declared_hz) or info.n_frames)
        return max(0, last - round(played.start_s * info.declared_hz))

    def _step(self, frame: Frame, raw_gaze: list[Any], face_frame: Frame | None, telemetry: Telemetry | None) -> Step:
        before = self._stages.inference_ns
        start = monotonic_ns()
        step = self._score.score(frame, raw_gaze, now_ns=frame.t_ns, face_frame=face_frame, telemetry=telemetry)
        payload = step_to_plain(frame, step)
        spent = monotonic_ns() - start
        inference = self._stages.inference_ns - before
        self._timer.add("score_path", spent)
        self._timer.add("score_path_without_inference", spent - inference)
        with self._timer.stage("sinks"):
            if step.switched:
                self._emitter.event("precision", frame.t_ns, choice_to_plain(step))
            self._emitter.event("score", frame.t_ns, payload)
            for fixation in step.ended:
                self._fixation(fixation)
        self._summary.count_step(step)
        for picture in self._redact.redact(frame, step.faces, step.fixation):
            self._picture(picture)
        return step

    def _fixation(self, fixation: Fixation) -> None:
        self._summary.fixations += 1
        self._emitter.event("fixation", fixation.end_ns, events.to_plain(fixation) or {})

    def _picture(self, picture: RedactedFrame) -> None:
        self._summary.count_picture(picture)
        with self._timer.stage("sinks"):
            self._emitter.picture(picture)

    def _finish(self, t_ns: int) -> None:
        for picture in self._redact.finish():
            self._picture(picture)
        for fixation in self._score.finish():
            self._fixation(fixation)
        summary = self._summary
        summary.latency_ms = self._timer.summary()
        counts = {"frames": summary.frames, "gaze_samples": summary.gaze_samples, "fixations": summary.fixations}
        said = {"stopped": summary.stopped, "scene_note": summary.scene_note}
        self._emitter.event("end", t_ns, {**counts, **{name: text for name, text in said.items() if text}})


def step_to_plain(frame: Frame, step: Step) -> dict[str, Any]:
    """Return the payload of a `score` event: all that a rerun needs, and what came of it."""
    return {
        "frame_id": frame.frame_id,
        "width": frame.width,
        "height": frame.height,
        "gaze": events.gaze_to_plain(step.raw_gaze),
        "gaze_px": step.gaze_px,
        "fixation": events.to_plain(step.fixation),
        "faces": [events.to_plain(face) for face in step.faces],
        "features": events.features_to_plain(step.features),
        "embedding": {"reason": step.embedded.reason, "skipped": list(step.embedded.skipped)},
        "emotion": events.to_plain(step.emotion),
        "telemetry": events.to_plain(step.telemetry),
        "precision": choice_to_plain(step),
        "score": events.to_plain(step.score),
    }


def choice_to_plain(step: Step) -> dict[str, Any]:
    """Return the governor's choice as plain values; empty without a ladder."""
    return {"rung": step.choice.rung, "reasons": list(step.choice.reasons)} if step.choice else {}


def session_header(
    config: Config,
    scene: FrameSource,
    gaze: GazeSource,
    mapping: Mapping,
    stages: NetworkStages,
    environment: Environments | None,
) -> dict[str, Any]:
    """Return the payload of the `session` event: versions, settings, sources, models and cache."""
    models = [
        {"name": m.manifest.name, "role": m.manifest.role, "sha256": m.manifest.sha256, "active": m.active}
        for m in stages.models
    ]
    return {
        "schema": events.SCHEMA,
        "version": events.VERSION,
        "emogaze": __version__,
        "python": platform.python_version(),
        "advisory": True,
        "config": public_settings(config),
        "scene": asdict(scene.info),
        "gaze": asdict(gaze.info),
        "geometry": msgspec.to_builtins(mapping.geometry),
        "gaze_calibration": msgspec.to_builtins(mapping.calibration),
        "models": models,
        "environment": environment.identity if environment else None,
    }


def open_face_camera(config: Config, stack: ExitStack) -> FrameSource | None:
    if config.face_camera.source in ("", "scene"):
        return None
    return stack.enter_context(open_capture(config.face_camera, "face"))


def load_telemetry(config: Config, stack: ExitStack, *, live: bool) -> TelemetrySource | None:
    """Open the configured telemetry; `stack` closes it."""
    source = open_telemetry(config.telemetry, live=live)
    return stack.enter_context(source) if source is not None else None


def score_recipe(
    config: Config,
    mapping: Mapping,
    stages: NetworkStages,
    environment: Environments | None,
    gaze_hz: float,
    timer: StageTimer,
) -> Callable[[], ScorePipeline]:
    """Return what makes a score recipe in its first state; all of one run share the governor of its precision."""
    governor = Governor(stages.ladder, config.governor, config.score.deadline_ms) if stages.ladder else None

    def new_score() -> ScorePipeline:
        return ScorePipeline(config, mapping, stages, environment, governor=governor, gaze_hz=gaze_hz, timer=timer)

    return new_score


def redact_recipe(config: Config, mapping: Mapping, stages: NetworkStages, timer: StageTimer) -> RedactPipeline:
    """Return the redact recipe of a run."""
    redactor = Redactor(config.redact, mapping.px_per_deg, recall=stages.recall is not None)
    return RedactPipeline(redactor, stages.recall, may_uncover=may_uncover(config.gaze.source), timer=timer)


def load_environment(config: Config, stages: NetworkStages) -> Environments | None:
    if not config.environment.cache:
        return None
    manifests = [model.manifest for model in stages.embedders]
    return Environments.load(Path(config.environment.cache), manifests, embedding=config.score.embedding)


class NewestFace:
    """The newest picture of a face camera's file that is not later than a given time."""

    def __init__(self, camera: FrameSource | None) -> None:
        self._camera = camera
        self._newest: Frame | None = None
        self._next = camera.read() if camera else None

    def until(self, t_ns: int) -> Frame | None:
        while self._camera and self._next is not None and self._next.t_ns <= t_ns:
            self._newest, self._next = self._next, self._camera.read()
        return self._newest
