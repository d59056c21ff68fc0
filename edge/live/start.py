"""The start of a live run: cameras, gaze and networks open side by side; status, stop and health work from the first.

A camera's child process imports and connects, the search for a gaze stream waits for the network, and networks load:
three things that don't need each other, so the slowest of them is the time to the first score.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing
from typing import Any, TypeVar

from edge import plugins
from edge.app import (
    load_environment,
    load_telemetry,
    open_face_camera,
    redact_recipe,
    score_recipe,
    session_header,
)
from edge.capture import open_capture
from edge.capture.base import FrameSource, public_name
from edge.clock import monotonic_ns, session_epoch
from edge.config import Config
from edge.errors import AbsentError, ConfigError, SourceError, StalledError
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import may_uncover, open_gaze
from edge.gaze.sources.base import GazeSource
from edge.live.aux_feed import AuxFeed
from edge.live.control import ControlServer
from edge.live.loop import Parts, queue_sink
from edge.live.redact_worker import RedactWorker
from edge.live.supervisor import Supervisor
from edge.outputs import Emitter, guard_sinks, not_recorded, recorded_to
from edge.profiling import StageTimer
from edge.records import Frame, RedactedFrame
from edge.stages import NetworkStages
from edge.summary import Summary

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Sinks that tell how the start goes; the others open once the sources are known.
EARLY = ("metrics", "publisher")
RETRY_S = 0.3
TURN_S = 0.01
LAST_WAIT_S = 10.0  #: a start that fails waits so long for networks: a process that ends while they load is aborted
TIMER_SAMPLES = 2000  #: of each stage: a run of days must not grow


class Stopped(Exception):  # noqa: N818 - no error: somebody's wish
    """The run was asked to stop before its loop began."""


class Start:
    """Opens what `edge.live.loop` turns over.

    Parameters
    ----------
    config : Config
        The run's settings.
    emitter : Emitter
        Gets the sinks as they open.
    supervisor : Supervisor
        Hears how the start goes.
    control : ControlServer or None
        Commands that come meanwhile: stop is obeyed, the others are refused.
    stop : threading.Event
        Ends the start when set.
    """

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
        self._picture: Frame | None = None
        self._search: Future[GazeSource] | None = None
        self._gaze: GazeSource | None = None

    def open(self, summary: Summary, stack: ExitStack) -> Parts:
        """Open everything that the loop needs; `stack` closes it.

        Raises
        ------
        Stopped
            Somebody asked for it.
        EmoGazeError
            Something can't be used that waiting won't mend.
        """
        config, supervisor, timer = self._config, self._supervisor, StageTimer(TIMER_SAMPLES)
        # Differential privacy stands before all sinks at once, so none of them can open early.
        early = () if config.dp.epsilon else EARLY
        self._open_sinks(early, {})
        supervisor.report()
        self._open_cameras(stack)
        self._search = _begin(self._open_gaze)
        stack.callback(self._close_gaze)
        supervisor.phase("building")
        stages = self._open_networks(timer, stack)
        environment = load_environment(config, stages)
        supervisor.phase("warming")
        picture = self._await(lambda: self._picture)
        self._warm(stages, picture, stack)
        scene, gaze = self._cameras["scene"], self._await(lambda: self._gaze)
        mapping = open_mapping(gaze, config.gaze, (picture.width, picture.height))
        if mapping.lack:
            log.warning("gaze: %s %s", public_name(config.gaze.source), mapping.lack)
        supervisor.calibration = mapping.calibration
        summary.simulated_gaze = gaze.info.simulated
        summary.model, summary.provider = stages.embedder_model.manifest.name, stages.embedder_model.active
        header = session_header(config, scene, gaze, mapping, stages, environment)
        self._open_session(header, early, summary)
        new_score = score_recipe(config, mapping, stages, environment, gaze.info.hz_declared, timer)
        recipe = redact_recipe(config, mapping, stages, timer)
        redact = stack.enter_context(closing(RedactWorker(recipe, self._emit_into(summary), config)))
        self._picture = None
        _freeze(stack)
        supervisor.phase("running")
        return Parts(
            config=config,
            scene=scene,
            face=self._cameras.get("face"),
            gaze=gaze,
            aux=stack.enter_context(closing(AuxFeed(config))) if config.aux.streams else None,
            telemetry=load_telemetry(config, stack, live=True),
            stages=stages,
            score=new_score(),
            new_score=new_score,
            redact=redact,
            emitter=self._emitter,
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

    def _open_session(self, header: dict[str, Any], early: Sequence[str], summary: Summary) -> None:
        """Open the other sinks and tell all of them what the session is."""
        header["epoch"] = dict(zip(("monotonic_ns", "unix_ns"), session_epoch(), strict=True))
        self._open_sinks([name for name in plugins.names("edge.sinks") if name not in early], header)
        summary.recording, summary.not_recorded = recorded_to(self._config, header), not_recorded(header)
        self._emitter.event("session", monotonic_ns(), header)
        if summary.not_recorded:
            self._supervisor.complain("recorder", "degraded", "no valid consent")  # which was said at the start

    def _emit_into(self, summary: Summary) -> Callable[[RedactedFrame], None]:
        emitter = self._emitter

        def emit(picture: RedactedFrame) -> None:
            summary.count_picture(picture)
            emitter.picture(picture)

        return emit

    def _open_cameras(self, stack: ExitStack) -> None:
        self._cameras["scene"] = stack.enter_context(open_capture(self._config.scene, "scene"))
        face = open_face_camera(self._config, stack)
        if face is not None:
            self._cameras["face"] = face
        for role, camera in self._cameras.items():
            log.info("%s: %s", role, camera.info.source)
        gaze = self._config.gaze.source
        pinned = "" if may_uncover(gaze) else "; not pinned by source_id and hostname: every face stays covered"
        log.info("gaze: %s%s", gaze, pinned)

    def _open_networks(self, timer: StageTimer, stack: ExitStack) -> NetworkStages:
        networks = _begin(lambda: NetworkStages(self._config, timer, live=True))
        stack.callback(_close_networks, networks)
        return self._wait(networks)

    def _warm(self, stages: NetworkStages, picture: Frame, stack: ExitStack) -> None:
        warm = _begin(lambda: stages.warm(picture))
        stack.callback(wait, [warm], LAST_WAIT_S)
        self._wait(warm)

    def _open_gaze(self) -> GazeSource:
        gaze = open_gaze(self._config.gaze)
        if gaze.info.live:
            return gaze
        gaze.close()
        fix = f'play it as if live: gaze.source = "paced:{self._config.gaze.source}"'
        raise ConfigError("gaze.source", "is a recording, but the camera is live", fix=fix)

    def _open_gaze_again(self) -> GazeSource:
        time.sleep(RETRY_S)
        return self._open_gaze()

    def _close_gaze(self) -> None:
        if self._search is not None and self._search.done() and self._search.exception() is None:
            self._search.result().close()

    def _await(self, look: Callable[[], T | None]) -> T:
        """Wait for a source; that it is missing shows as degraded, since nothing else holds up the start."""
        health = self._supervisor.health
        health.waiting = True
        while (found := look()) is None:
            time.sleep(TURN_S)
            self._turn()
        health.waiting = False
        return found

    def _wait(self, work: Future[T]) -> T:
        """Wait for what was begun while health, status and stop go on."""
        while not work.done():
            wait([work], TURN_S)
            self._turn()
        return work.result()

    def _turn(self) -> None:
        if self._stop.is_set():
            raise Stopped
        request = self._control.take() if self._control else None
        if request is not None and request.cmd == "stop":
            request.answer(pictures=0, scores=0)
            raise Stopped
        if request is not None:
            request.refuse("the runtime is still starting")
        for role, camera in self._cameras.items():
            self._attend_camera(role, camera)
        if self._gaze is None and self._search is not None and self._search.done():
            self._attend_gaze(self._search)
        now_ns = monotonic_ns()
        if self._supervisor.due(now_ns):
            statuses = {name: camera.status for name, camera in self._cameras.items()}
            self._supervisor.check(now_ns, {k: v for k, v in statuses.items() if v is not None})

    def _attend_gaze(self, search: Future[GazeSource]) -> None:
        """Take the gaze source, or look again for one that isn't there yet."""
        try:
            self._gaze = search.result()
        except (AbsentError, StalledError) as error:
            there = f"there is {error.got}; " if error.got else ""
            reason = f"{error.thing}: {error.problem}"
            self._supervisor.complain("gaze", "degraded", reason, f"{there}it is looked for until it comes")
            self._search = _begin(self._open_gaze_again)

    def _attend_camera(self, role: str, camera: FrameSource) -> None:
        """Take in what a camera says; a scene camera that opens twice and delivers nothing ends the run."""
        try:
            frame = camera.read(0)
        except SourceError:
            if role == "scene":
                raise
            return  # refused: its state says so, and scores go on without it
        if role != "scene":
            return
        if self._picture is None and frame is not None and camera.info.note:
            log.warning("scene: %s", camera.info.note)
        self._picture = frame or self._picture
        status = camera.status
        if self._picture is None and status and status.state == "stalled" and status.same_fault >= 2:
            raise StalledError(camera.info.source, f"{status.reason} (tried {status.same_fault} times)")
        if camera.ended and (self._picture is None or self._gaze is None):
            awaited = "its first picture" if self._picture is None else f"{self._config.gaze.source} was found"
            raise StalledError(camera.info.source, f"ended before {awaited}")


def _begin(work: Callable[[], T]) -> Future[T]:
    """Do `work` in a thread that doesn't outlive the process."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by `result`, in the thread that waits
            future.set_exception(error)

    threading.Thread(target=run, name="start", daemon=True).start()
    return future


def _freeze(stack: ExitStack) -> None:
    """Take what is there by now out of the garbage collector's sight until the run ends.

    A full collection would look at all of it, the functions and classes of every module: 15 to 50 ms without a score.
    """
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)


def _close_networks(networks: Future[NetworkStages]) -> None:
    wait([networks], LAST_WAIT_S)
    if networks.done() and networks.exception() is None:
        networks.result().close()
