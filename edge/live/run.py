"""A run on live sources, from its first moment to its end: `edge.live.start`, then `edge.live.loop`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import cv2

from edge.capture.base import public_name
from edge.config import Config
from edge.errors import ConfigError, StalledError
from edge.keys import KeyRing, keys_dir
from edge.live import logs
from edge.live.control import ControlServer, default_path
from edge.live.loop import LiveLoop
from edge.live.remote import RemoteControl
from edge.live.start import Start, Stopped
from edge.live.supervisor import Supervisor
from edge.outputs import Emitter, refused_sinks, without_sinks
from edge.pipeline import Step
from edge.stopping import StopSignal
from edge.summary import Summary, written_at_end

log = logging.getLogger(__name__)


def run_live(config: Config, stop: StopSignal, *, on_step: Callable[[Step], None] | None = None) -> Summary:
    """Run on live sources until stopped by a signal, the control socket or the end of a paced clip.

    Parameters
    ----------
    config : Config
    stop : StopSignal
        What a signal sets, of who has listened since before the imports: one that comes meanwhile counts too.
    on_step : callable, optional
        Gets what the score recipe found, picture by picture.

    Raises
    ------
    EmoGazeError
        Something can't be used that waiting won't mend; what was recorded by then is kept.
    """
    cv2.setNumThreads(1)  # loop, networks and redaction share few cores; a pool of threads per call makes none faster
    refused = refused_sinks(config)
    config = without_sinks(config, refused)
    sinks = config.sinks
    summary = Summary(refused_sinks=refused, events=sinks.events, video=sinks.video, summary=sinks.summary)
    with ExitStack() as stack:
        stack.enter_context(closing(logs.set_up(config.live.log_level, config.live.log_format)))
        stack.enter_context(written_at_end(summary, config))
        emitter = Emitter([])
        supervisor = stack.enter_context(closing(Supervisor(config, emitter, summary)))
        control = _open_control(config, supervisor, stack)
        stack.callback(lambda: summary.sink_errors.update(supervisor.sink_errors))
        stack.callback(emitter.close)
        try:
            start = Start(config, emitter, supervisor, control, stop.event)
            LiveLoop(start.open(summary, stack), stop.event).run(on_step)
            if not summary.frames and not stop.event.is_set():
                raise StalledError(public_name(config.scene.source), "ended before the first score")
        except Stopped:
            summary.missing = "; ".join(f"{c.component}: {c.reason}" for c in supervisor.health.complaints)
            log.info("stopped before the first score")
        except Exception as error:
            supervisor.fail(str(error))
            raise
    return summary


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
