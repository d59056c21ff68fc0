"""A run on live sources: how it starts, on what it runs, and how it ends. The loop itself is `edge.live.loop`."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import cv2
from msgspec import to_builtins

from edge import plugins
from edge.app import (
    Emitter,
    Summary,
    guard_sinks,
    load_environment,
    load_telemetry,
    make_governor,
    open_face_camera,
    recorded_to,
    refused_sinks,
    session_header,
    without_sinks,
)
from edge.capture import open_capture
from edge.capture.base import FrameSource
from edge.clock import monotonic_ns, session_epoch
from edge.config import Config
from edge.errors import AbsentError, ConfigError, StalledError
from edge.files import write_json
from edge.gaze.base import GazeSource
from edge.gaze.calibration import read_calibration
from edge.gaze.geometry import read_geometry
from edge.gaze.mapping import make_mapping
from edge.gaze.sources import may_uncover, open_gaze
from edge.keys import KeyRing, keys_dir
from edge.live import logs
from edge.live.aux_feed import AuxFeed
from edge.live.control import ControlServer, default_path
from edge.live.loop import LiveLoop, Parts, queue_sink
from edge.live.redact_worker import RedactWorker
from edge.live.remote import RemoteControl
from edge.live.supervisor import Supervisor
from edge.pipeline import RedactPipeline, ScorePipeline, Step
from edge.privacy import Redactor
from edge.profiling import StageTimer
from edge.records import Frame, RedactedFrame
from edge.stages import NetworkStages

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Sinks that tell how the start goes; the others open once the sources are known.
EARLY = ("metrics", "publisher")
RETRY_S = 0.3
TIMER_SAMPLES = 2000  #: of each stage: a run of days must not grow


class Stopped(Exception):  # noqa: N818 - no error: somebody's wish
    """The run was asked to stop before its loop began."""


def run_live(config: Config, *, on_step: Callable[[Step], None] | None = None) -> Summary:
    """Run on live sources until stopped by a signal, the control socket or the end of a paced clip.

    Raises
    ------
    EmoGazeError
        Something can't be used that waiting won't mend; what was recorded by then is kept.
    """
    cv2.setNumThreads(1)  # loop, networks and redaction share few cores; a pool of threads per call makes none faster
    refused = refused_sinks(config)
    config = without_sinks(config, refused)
    summary = Summary(refused_sinks=refused, events=config.sinks.events, video=config.sinks.video)
    with ExitStack() as stack:
        stack.enter_context(closing(logs.set_up(config.live.log_level, config.live.log_format)))
        stop = _stop_on_signals(stack)
        emitter = Emitter([])
        supervisor = stack.enter_context(closing(Supervisor(config, emitter, summary)))
        control = _open_control(config, supervisor, stack)
        stack.callback(emitter.close)
        try:
            start = Start(config, emitter, supervisor, control, stop)
            LiveLoop(start.open(summary, stack), stop).run(on_step)
        except Stopped:
            log.info("stopped before the first score")
        except Exception as error:
            supervisor.complain("runtime", "failed", str(error))
            raise
    if config.sinks.summary:
        write_json(Path(config.sinks.summary), summary.as_dict())
    return summary


class Start:
    """The start: sources and models open side by side, and status, stop and health work from the first moment."""

    def __init__(
        self,
        config: Config,
        emitter: Emitter,
        supervisor: Supervisor,
        control: ControlServer | None,
        stop: threading.Event,
    ) -> None:
        self._config, self._emitter, self._supervisor = config, emitter, supervisor
        self._control, self._stop = control, stop
        self._cameras: dict[str, FrameSource] = {}

    def open(self, summary: Summary, stack: ExitStack) -> Parts:
        """Open everything that the loop needs; `stack` closes it."""
        config, emitter, supervisor = self._config, self._emitter, self._supervisor
        # Differential privacy stands before all sinks at once, so none of them can open early.
        early = () if config.dp.epsilon else EARLY
        self._open_sinks(early, {})
        supervisor.report()
        scene = stack.enter_context(open_capture(config.scene, "scene"))
        face = open_face_camera(config, stack)
        self._cameras = {"scene": scene} | ({"face": face} if face else {})
        supervisor.phase("building")
        timer = StageTimer(TIMER_SAMPLES)
        stages = self._beside(lambda: NetworkStages(config, timer, live=True))
        stack.callback(stages.close)
        environment = load_environment(config, stages)
        supervisor.phase("warming")
        gaze = stack.enter_context(self._find_gaze())
        picture = self._first_picture(scene)
        self._beside(lambda: stages.warm(picture))
        if scene.info.note:
            log.warning("scene: %s", scene.info.note)
        geometry = read_geometry(config.gaze.geometry) or gaze.geometry
        calibration = read_calibration(config.gaze.calibration)
        mapping = make_mapping(gaze.info, geometry, (picture.width, picture.height), calibration)
        supervisor.calibration = calibration
        summary.simulated_gaze = gaze.info.simulated
        summary.model, summary.provider = stages.embedder_model.manifest.name, stages.embedder_model.active
        header = session_header(config, scene, gaze, geometry, stages, environment)
        header["gaze_calibration"] = to_builtins(calibration)
        header["epoch"] = dict(zip(("monotonic_ns", "unix_ns"), session_epoch(), strict=True))
        self._open_sinks([name for name in plugins.names("edge.sinks") if name not in early], header)
        summary.recording = recorded_to(config, header)
        emitter.event("session", monotonic_ns(), header)
        if header.get("recording", {}).get("state") == "off":
            supervisor.complain("recorder", "degraded", header["recording"]["reason"])
        governor, hz = make_governor(config, stages), gaze.info.hz_declared

        def new_score() -> ScorePipeline:
            return ScorePipeline(config, mapping, stages, environment, governor=governor, gaze_hz=hz, timer=timer)

        redactor = Redactor(config.redact, mapping.px_per_deg, recall=stages.recall is not None)

        def emit(picture: RedactedFrame) -> None:
            summary.count_picture(picture)
            emitter.picture(picture)

        uncover = may_uncover(config.gaze.source)
        recipe = RedactPipeline(redactor, stages.recall, may_uncover=uncover, timer=timer)
        redact = stack.enter_context(closing(RedactWorker(recipe, emit)))
        supervisor.phase("running")
        return Parts(
            config=config,
            scene=scene,
            face=face,
            gaze=gaze,
            aux=stack.enter_context(closing(AuxFeed(config))) if config.aux.streams else None,
            telemetry=load_telemetry(config, stack, live=True),
            stages=stages,
            score=new_score(),
            new_score=new_score,
            redact=redact,
            emitter=emitter,
            supervisor=supervisor,
            control=self._control,
            summary=summary,
            timer=timer,
            header=header,
        )

    def _open_sinks(self, names: Sequence[str], header: dict[str, Any]) -> None:
        """Open the named sinks, each behind its queue and all behind what was agreed to."""
        limits, queued = self._config.live, []
        for name in names:
            sink = plugins.load("edge.sinks", name, setting="sinks").open_sink(self._config, header)
            if sink is not None:
                queued.append(queue_sink(sink, limits))
        self._supervisor.sinks += queued
        for guarded in guard_sinks([*queued], self._config, header) if queued else []:
            self._emitter.add(guarded)

    def _find_gaze(self) -> GazeSource:
        """Open the gaze source, and wait for one that isn't there yet."""
        while True:
            try:
                gaze = self._beside(lambda: open_gaze(self._config.gaze))
            except (AbsentError, StalledError) as error:
                self._supervisor.complain("gaze", "degraded", str(error))
                self._turns(RETRY_S)
                continue
            if not gaze.info.live:
                gaze.close()
                raise ConfigError(
                    "gaze.source",
                    "is a recording, but the camera is live",
                    fix=f'play it as if live: gaze.source = "paced:{self._config.gaze.source}"',
                )
            return gaze

    def _first_picture(self, scene: FrameSource) -> Frame:
        """Wait for the scene camera; one that opens twice and delivers nothing ends the run."""
        while (frame := scene.read(0.05)) is None:
            self._turn()
            status = scene.status
            if status and status.state == "stalled" and status.same_fault >= 2:
                raise StalledError(scene.info.source, f"{status.reason} (tried {status.same_fault} times)")
            if scene.ended:
                raise StalledError(scene.info.source, "ended before its first picture")
        return frame

    def _beside(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread while health, status and stop go on."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that waits
                errors.append(error)

        thread = threading.Thread(target=run, name="start", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.01)
            self._turn()
        if errors:
            raise errors[0]
        return results[0]

    def _turns(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.02)
            self._turn()

    def _turn(self) -> None:
        if self._stop.is_set():
            raise Stopped
        request = self._control.take() if self._control else None
        if request is not None and request.cmd == "stop":
            request.answer()
            raise Stopped
        if request is not None:
            request.refuse("the runtime is still starting")
        now_ns = monotonic_ns()
        if self._supervisor.due(now_ns):
            statuses = {name: camera.status for name, camera in self._cameras.items()}
            self._supervisor.check(now_ns, {k: v for k, v in statuses.items() if v is not None})


def _open_control(config: Config, supervisor: Supervisor, stack: ExitStack) -> ControlServer | None:
    if config.live.control == "off":
        if config.live.control_address:
            raise ConfigError("live.control_address", "needs the control socket", fix="don't set live.control to off")
        return None
    path = Path(config.live.control) if config.live.control else default_path()
    control = stack.enter_context(closing(ControlServer(path, supervisor.for_owner)))
    if config.live.control_address:
        ring = KeyRing(keys_dir(config.keys.dir))
        stack.enter_context(closing(RemoteControl(config.live.control_address, ring, control.respond)))
    return control


def _stop_on_signals(stack: ExitStack) -> threading.Event:
    """Return an event that SIGINT and SIGTERM set; a second one interrupts whatever is under way."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return stop

    def handle(number: int, _: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        stack.callback(signal.signal, number, signal.signal(number, handle))
    return stop
