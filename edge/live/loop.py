"""The live loop: what happens in each turn, one method per line of it.

A turn waits for a picture, takes the gaze that has come, lets the picture wait up to `gaze.wait_ms` for its gaze, and
scores it. What is slow lives elsewhere: cameras in child processes, redaction and each sink in a thread of its own, all
behind bounded queues.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edge import events, plugins
from edge.app import choice_to_plain, step_to_plain
from edge.capture.base import FrameSource, SourceStatus
from edge.clock import NS_PER_MS, monotonic_ns
from edge.config import Config, LiveConfig, SceneConfig
from edge.errors import EmoGazeError, SourceError
from edge.gaze.sources.base import GazeSource, StreamNote
from edge.governor import Spent
from edge.live.aux_feed import AuxFeed, aux_payloads
from edge.live.control import ControlServer, Request
from edge.live.monitor import StreamMonitor
from edge.live.queued_sink import CLOSE_TIMEOUT_S, QueuedSink
from edge.live.redact_worker import RedactWorker
from edge.live.supervisor import Supervisor
from edge.outputs import Emitter, guard_sinks, recorded_to
from edge.pipeline import ScorePipeline, Step
from edge.profiling import StageTimer, summarise_ms
from edge.records import Fixation, Frame, RawGaze
from edge.sinks.base import Sink
from edge.stages import NetworkStages
from edge.summary import Summary
from edge.telemetry import TelemetrySource

log = logging.getLogger(__name__)

IDLE_S, WAITING_S = 0.02, 0.004  #: how long a turn waits for a picture; shorter while one waits for its gaze
WAITING_PICTURES = 4
GAZE_ALONE_NS = 500 * NS_PER_MS  #: gaze without pictures goes into events of its own this often
RECORDER_CLOSE_S = 40.0
RECENT = 30  #: pictures that the governor's idea of the time spent rests on


@dataclass
class Parts:
    """What the loop turns over, opened by `edge.live.run`."""

    config: Config
    scene: FrameSource
    face: FrameSource | None
    gaze: GazeSource
    aux: AuxFeed | None
    telemetry: TelemetrySource | None
    stages: NetworkStages
    score: ScorePipeline
    new_score: Callable[[], ScorePipeline]
    redact: RedactWorker
    emitter: Emitter
    supervisor: Supervisor
    control: ControlServer | None
    summary: Summary
    timer: StageTimer
    header: dict[str, Any]


def queue_sink(sink: Sink, limits: LiveConfig) -> QueuedSink:
    """Put a sink behind its queue; a recorder gets the time to bring what it took to the disk."""
    timeout_s = RECORDER_CLOSE_S if sink.name == "recorder" else CLOSE_TIMEOUT_S
    return QueuedSink(sink, limits.queue_events, limits.queue_pictures, close_timeout_s=timeout_s)


class LiveLoop:
    """Turns until `stop` is set or the scene has ended."""

    def __init__(self, parts: Parts, stop: threading.Event) -> None:
        self._p, self._stop = parts, stop
        config, supervisor = parts.config, parts.supervisor
        self._wait_ns = config.gaze.wait_ms * NS_PER_MS
        self._deadline_ns = config.score.deadline_ms * NS_PER_MS
        self._scene_monitor = supervisor.watch("scene", parts.scene.info.declared_hz, config.scene.silent_ms)
        self._gaze_monitor = supervisor.watch("gaze", parts.gaze.info.hz_declared, config.gaze.silent_ms)
        self._face_monitor: StreamMonitor | None = None
        if parts.face is not None:
            hz, silent_ms = parts.face.info.declared_hz, config.face_camera.silent_ms
            self._face_monitor = supervisor.watch("face", hz, silent_ms)
        self._size = (parts.scene.info.width, parts.scene.info.height)
        self._waiting: deque[Frame] = deque()
        self._gaze: list[RawGaze] = []
        self._gaze_stamps: deque[int] = deque([0], maxlen=256)
        self._face_frame: Frame | None = None
        self._gaze_since_ns = self._polled_ns = monotonic_ns()
        self._overrun = 0
        self._newest_id = -1
        self._on_step: Callable[[Step], None] | None = None

    def run(self, on_step: Callable[[Step], None] | None = None) -> None:
        """Turn until asked to stop or until the scene has ended; then finish what is under way."""
        self._on_step = on_step
        for camera in filter(None, (self._p.scene, self._p.face)):
            camera.count_from_here()
        while not self._stop.is_set() and not (self._p.scene.ended and not self._waiting):
            self._turn()
        self._finish()

    def _turn(self) -> None:
        frame = self._p.scene.read(WAITING_S if self._waiting else IDLE_S)
        self._take_gaze()
        self._take_face()
        if frame is not None:
            self._take_picture(frame)
        while self._waiting and self._is_due(self._waiting[0]):
            self._score(self._waiting.popleft())
        self._let_gaze_go_on_alone()
        self._supervise()
        self._obey()
        self._p.supervisor.notifier.turn()

    def _take_gaze(self) -> None:
        self._polled_ns = now_ns = monotonic_ns()
        samples = self._p.gaze.read_until(now_ns)
        for sample in samples:
            verdict = self._gaze_monitor.add(sample.t_ns, now_ns)
            self._gaze_stamps.append(sample.t_ns)
            if verdict in ("jump", "gap"):
                self._stream_event("gaze", verdict, sample.t_ns)
        self._gaze += samples
        for note in self._p.gaze.notes():
            self._note("gaze", note)

    def _take_aux(self) -> None:
        if self._p.aux is None:
            return
        samples, notes = self._p.aux.read()
        for payload in aux_payloads(samples).values():
            self._p.emitter.event("aux", payload["t_ns"][-1], payload)
        for note in notes:
            self._note("aux", note)
        supervisor, problem = self._p.supervisor, self._p.aux.problem
        supervisor.monitors = supervisor.monitors | self._p.aux.monitors  # anew: another thread may be reading it
        supervisor.complain("aux", "degraded" if problem else "ok", problem)

    def _take_face(self) -> None:
        camera, monitor = self._p.face, self._face_monitor
        if camera is None or monitor is None:
            return
        with suppress(SourceError):  # refused: its state says so, and scores go on without it
            frame = camera.read(0)
            if frame is not None:
                passed = frame.frame_id - self._face_frame.frame_id if self._face_frame else 1
                monitor.add(frame.t_ns, monotonic_ns(), passed)
                self._face_frame = frame

    def _take_picture(self, frame: Frame) -> None:
        if (frame.width, frame.height) != self._size:
            raise SourceError(
                frame.source,
                "changed its picture size, and with it what gaze means",
                expected="x".join(map(str, self._size)),
                got=f"{frame.width}x{frame.height}",
                fix="start again",
            )
        passed = frame.frame_id - self._newest_id
        self._newest_id = frame.frame_id
        if self._scene_monitor.add(frame.t_ns, monotonic_ns(), passed) == "gap":
            self._stream_event("scene", "gap", frame.t_ns)
        if len(self._waiting) >= WAITING_PICTURES:
            self._waiting.popleft()
            self._overrun += 1
        self._waiting.append(frame)

    def _is_due(self, frame: Frame) -> bool:
        """A picture is due when its gaze has come, has had its time to come, or can't be expected."""
        waited = monotonic_ns() - frame.t_ns >= self._wait_ns
        return waited or self._gaze_stamps[-1] >= frame.t_ns or self._gaze_monitor.silent(self._polled_ns)

    def _score(self, frame: Frame) -> None:
        p, start_ns, inference_ns = self._p, monotonic_ns(), self._p.stages.inference_ns
        samples, self._gaze = self._gaze, []
        withhold = "stale" if self._is_stale(frame, p.scene, p.config.scene) else ""
        face = self._fresh_face()
        step = p.score.score(
            frame,
            samples,
            now_ns=start_ns,
            face_frame=face,
            telemetry=p.telemetry.at(frame.t_ns) if p.telemetry else None,
            withhold=withhold,
            spent=self._spent(),
        )
        if step.switched:
            p.emitter.event("precision", frame.t_ns, choice_to_plain(step))
        payload = step_to_plain(frame, step)
        p.emitter.event("score", frame.t_ns, {**payload, "withhold": withhold} if withhold else payload)
        p.supervisor.newest = {key: payload[key] for key in ("score", "emotion", "fixation")}
        end_ns = monotonic_ns()
        p.timer.add("score_path", end_ns - start_ns)
        p.timer.add("score_path_without_inference", end_ns - start_ns - (p.stages.inference_ns - inference_ns))
        self._keep_time(frame, end_ns - frame.t_ns)
        self._end_fixations(step.ended)
        p.redact.take(frame, step.faces, step.fixation)
        p.summary.count_step(step)
        if not self._gaze_monitor.silent(self._polled_ns):
            p.supervisor.apart(min(abs(t_ns - frame.t_ns) for t_ns in self._gaze_stamps))
        if self._on_step:
            self._on_step(step)

    def _spent(self) -> Spent | None:
        """How long the pictures before took: the governor gives up precision when scores come late."""
        ages_ns, embed_ns = list(self._p.supervisor.latencies_ns)[-RECENT:], self._p.timer.samples_ns("embed")[-RECENT:]
        if not self._p.stages.ladder or len(ages_ns) < RECENT or not embed_ns:
            return None
        return Spent(summarise_ms(ages_ns)["p50"], summarise_ms(embed_ns)["p50"])

    def _is_stale(self, frame: Frame, camera: FrameSource, settings: SceneConfig) -> bool:
        """Whether a picture is too old, or comes from a camera whose picture doesn't change."""
        status, frozen_ns = camera.status, settings.frozen_after_ms * NS_PER_MS
        frozen = bool(status and frozen_ns and frame.t_ns - status.changed_ns > frozen_ns)
        return frozen or monotonic_ns() - frame.t_ns > settings.silent_ms * NS_PER_MS

    def _fresh_face(self) -> Frame | None:
        frame, camera = self._face_frame, self._p.face
        if frame is None or camera is None or self._is_stale(frame, camera, self._p.config.face_camera):
            return None
        return frame

    def _keep_time(self, frame: Frame, age_ns: int) -> None:
        self._p.supervisor.latencies_ns.append(age_ns)
        late_ns = age_ns - self._deadline_ns
        if late_ns > 0:
            self._p.summary.deadlines_missed += 1
            late = {"frame_id": frame.frame_id, "late_ms": late_ns / NS_PER_MS}
            self._p.emitter.event("deadline_missed", frame.t_ns, late)

    def _let_gaze_go_on_alone(self) -> None:
        """Without pictures gaze is followed and logged all the same, so that nothing of it is lost."""
        now_ns = monotonic_ns()
        if self._waiting or not self._gaze:
            self._gaze_since_ns = now_ns
        elif now_ns - self._gaze_since_ns > GAZE_ALONE_NS:
            self._follow_gaze_alone()

    def _follow_gaze_alone(self) -> None:
        samples, self._gaze = self._gaze, []
        self._gaze_since_ns = monotonic_ns()
        ended = self._p.score.follow(samples)[1]
        self._p.emitter.event("gaze", samples[-1].t_ns, {"gaze": events.gaze_to_plain(samples)})
        self._end_fixations(ended)

    def _end_fixations(self, ended: list[Fixation]) -> None:
        for fixation in ended:
            self._p.summary.fixations += 1
            self._p.emitter.event("fixation", fixation.end_ns, events.to_plain(fixation) or {})

    def _stream_event(self, name: str, what: str, t_ns: int) -> None:
        self._note(name, StreamNote(t_ns, what, {}))

    def _note(self, name: str, note: StreamNote) -> None:
        shown = {key: f"{value:.3g}" if isinstance(value, float) else value for key, value in note.detail.items()}
        detail = ", ".join(f"{key} {value}" for key, value in shown.items())
        log.info("%s: %s%s", name, note.kind, f" ({detail})" if detail else "")
        self._p.emitter.event("stream", note.t_ns, {"name": name, "what": note.kind, **note.detail})

    def _supervise(self) -> None:
        """Let everything be judged as of the moment when it was last asked: a busy loop is no silent stream."""
        p, now_ns = self._p, self._polled_ns
        if not p.supervisor.due(now_ns):
            return
        statuses = self._statuses()
        p.summary.frames_dropped = self._overrun + (statuses["scene"].dropped if "scene" in statuses else 0)
        p.summary.pictures_dropped = p.redact.dropped
        p.supervisor.recall = {"recall_hz": p.redact.cadence.hz, "recalls_postponed": p.redact.postponed}
        p.supervisor.check(now_ns, statuses)
        self._take_aux()
        if p.redact.error is not None:
            p.supervisor.complain("redaction", "failed", f"stopped: {p.redact.error!r}; no picture leaves any more")
        else:
            reason = p.redact.cadence.reason
            p.supervisor.complain("redaction", "degraded" if reason else "ok", reason)

    def _statuses(self) -> dict[str, SourceStatus]:
        cameras = {"scene": self._p.scene, "face": self._p.face}
        statuses = {name: camera.status for name, camera in cameras.items() if camera is not None}
        return {name: status for name, status in statuses.items() if status is not None}

    def _obey(self) -> None:
        request = self._p.control.take() if self._p.control else None
        if request is None:
            return
        if request.cmd == "stop":
            self._stop.set()
            request.answer(pictures=self._p.summary.frames, scores=self._p.summary.scores)
        elif request.cmd == "mark":
            self._p.emitter.event("mark", request.t_ns, {"text": request.values.get("text", "")})
            request.answer(t_ns=request.t_ns)
        else:
            self._record(request)

    def _record(self, request: Request) -> None:
        """Start a recording session, or end the one that is on; a session is finished beside the loop."""
        emitter = self._p.emitter
        running = next((sink for sink in emitter.sinks if sink.name == "recorder"), None)
        if request.values["action"] == "stop":
            if running is None:
                request.refuse("nothing is being recorded")
                return
            emitter.remove(running)
            self._p.supervisor.sinks = [s for s in self._p.supervisor.sinks if s.name != "recorder"]
            threading.Thread(target=running.close, name="close-recorder").start()
            request.answer()
        elif running is not None:
            request.refuse("a recording is already on")
        else:
            self._start_recording(request)

    def _start_recording(self, request: Request) -> None:
        header = dict(self._p.header)
        if self._p.config.dp.epsilon:
            request.refuse("differential privacy is on: start the run with record.dir set")
            return
        try:
            opened = plugins.load("edge.sinks", "recorder", setting="record").open_sink(self._p.config, header)
        except EmoGazeError as error:
            request.refuse(str(error))
            return
        if opened is None:
            request.refuse(header.get("recording", {}).get("reason", "record.dir is not set"))
            return
        # The recipe begins anew with the session, so that a rerun of it, and of any log, meets the same state.
        self._end_fixations(self._p.score.finish())
        self._p.emitter.event("restart", request.t_ns, {"cause": "recording"})
        self._p.score = self._p.new_score()
        queued = queue_sink(opened, self._p.config.live)
        self._p.supervisor.sinks.append(queued)
        for sink in guard_sinks([queued], self._p.config, header):
            self._p.emitter.add(sink, header)
        self._p.summary.recording, self._p.summary.not_recorded = recorded_to(self._p.config, header), ""
        request.answer(session=self._p.summary.recording)

    def _finish(self) -> None:
        p = self._p
        p.supervisor.notifier.stopping()
        p.redact.close()
        if self._gaze:
            self._follow_gaze_alone()
        self._end_fixations(p.score.finish())
        p.summary.latency_ms = p.timer.summary()
        counts = {"frames": p.summary.frames, "gaze_samples": p.summary.gaze_samples, "fixations": p.summary.fixations}
        p.emitter.event("end", monotonic_ns(), counts)
