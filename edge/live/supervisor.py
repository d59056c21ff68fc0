"""Watches over a live run: judges sources, sinks and synchronisation; tells health, events, logs and systemd."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from edge.capture.base import SourceStatus
from edge.clock import NS_PER_MS, NS_PER_S, Clock, monotonic_ns
from edge.config import Config
from edge.gaze.calibration import GazeCalibration
from edge.live.health import Health, Level, Phase
from edge.live.monitor import StreamMonitor
from edge.live.notify import SystemdNotifier
from edge.live.queued_sink import QueuedSink
from edge.outputs import Emitter
from edge.profiling import summarise_ms
from edge.records import NAN
from edge.summary import Summary

log = logging.getLogger(__name__)

CHECK_NS = 50 * NS_PER_MS
REPORT_NS = NS_PER_S
SYNC_FEWEST = 45  #: pictures before it is judged: one and a half seconds at 30 Hz
RATE_SAMPLES, RATE_TOLERANCE = 150, 0.1
SYNC_WINDOW = 150  #: pictures that the synchronisation is judged by


class Supervisor:
    """Keeps the health of one live run.

    Parameters
    ----------
    config : Config
        The run's settings.
    emitter : Emitter
        Where `health` and `stream` events go.
    summary : Summary
        The run's counts, for status and reports.
    """

    def __init__(self, config: Config, emitter: Emitter, summary: Summary, clock: Clock = monotonic_ns) -> None:
        self.health = Health()
        self.notifier = SystemdNotifier()
        self.monitors: dict[str, StreamMonitor] = {}
        self.sinks: list[QueuedSink] = []  #: as they were opened, before anything stands in front of them
        self.calibration: GazeCalibration | None = None
        self.newest: dict[str, Any] = {}  #: the newest score with its emotion and fixation, as plain values
        self.latencies_ns: deque[int] = deque(maxlen=300)
        #: passes of the recall detector per second, lately, and how many were put off to a later picture
        self.recall: dict[str, float] = {"recall_hz": NAN, "recalls_postponed": 0}
        self._config, self._emitter, self._summary, self._clock = config, emitter, summary, clock
        self._statuses: dict[str, SourceStatus] = {}
        self._apart_ns: deque[int] = deque(maxlen=SYNC_WINDOW)
        self._compared: set[str] = set()
        self._next_check_ns = self._next_report_ns = 0
        self._started_ns = clock()

    def phase(self, phase: Phase) -> None:
        """Enter a phase of the start."""
        self.health.advance(phase)
        log.info("%s", phase if phase != "running" else self.health.summary)
        if phase == "running":
            self.notifier.ready(self.health.summary)
        self.report()

    def watch(self, name: str, declared_hz: float, silent_ms: int) -> StreamMonitor:
        """Begin to follow a stream's time."""
        self.monitors[name] = StreamMonitor(name, declared_hz, silent_ms)
        return self.monitors[name]

    def complain(self, component: str, level: Level, reason: str, detail: str = "") -> None:
        """Raise, change or (`ok`) take back a complaint; a change is reported at once.

        `detail` goes into the log beside the reason; another detail of the same reason is no change.
        """
        before = self.health.summary
        if not self.health.report(component, level, reason, self._clock()):
            return
        said = log.info if level == "ok" else log.warning
        said("%s: %s%s", component, reason if level != "ok" else "is back", f"; {detail}" if detail else "")
        if self.health.summary != before:
            self.report()

    def fail(self, reason: str) -> None:
        """Note what ends the run; who started it says so in its last line."""
        self.health.report("runtime", "failed", reason, self._clock())
        self.report()

    def apart(self, distance_ns: int) -> None:
        """Note how far the nearest gaze sample was from a picture that was scored."""
        self._apart_ns.append(distance_ns)

    def due(self, now_ns: int) -> bool:
        """Whether `check` should be called, twenty times a second."""
        if now_ns < self._next_check_ns:
            return False
        self._next_check_ns = now_ns + CHECK_NS
        return True

    def check(self, now_ns: int, cameras: dict[str, SourceStatus]) -> None:
        """Judge everything once; report each second."""
        for name, status in cameras.items():
            self._statuses[name] = status
            self.complain(name, *judge_camera(status, self._frozen_ms(name)))
        if "gaze" in self.monitors:
            silent = self.monitors["gaze"].silent(now_ns)
            self.complain("gaze", "degraded" if silent else "ok", "silent")
        self.complain("synchronisation", *self._judge_synchronisation())
        for name, error in self.sink_errors.items():
            self.complain(f"sink {name}", "degraded", error)
        if now_ns >= self._next_report_ns:
            self._compare_rates(now_ns)
            self.report()

    def _compare_rates(self, now_ns: int) -> None:
        """Say once which streams don't keep the rate that they declare: a driver may ignore what it was asked for."""
        for name, monitor in self.monitors.items():
            if name in self._compared or not monitor.declared_hz:
                continue
            stats = monitor.stats(now_ns)
            if stats.samples >= RATE_SAMPLES:
                self._compared.add(name)
                if abs(stats.measured_hz / stats.declared_hz - 1) > RATE_TOLERANCE:
                    log.warning("%s: declares %.1f Hz, gives %.1f", name, stats.declared_hz, stats.measured_hz)

    def report(self) -> None:
        """Send a `health` event, and tell systemd."""
        now_ns = self._clock()
        self._next_report_ns = now_ns + REPORT_NS
        self._emitter.event("health", now_ns, self.status())
        self.notifier.status(self.health.summary)

    def status(self) -> dict[str, Any]:
        """Return health, streams, sinks and counts as plain values."""
        now_ns = self._clock()
        streams = []
        for name, monitor in self.monitors.items():
            row = monitor.stats(now_ns).as_dict()
            if status := self._statuses.get(name):
                row |= {"dropped": status.dropped, "restarts": status.restarts, "state": status.state}
            streams.append(row)
        sinks = {s.name: {"dropped": s.dropped, "error": str(s.error or "")} for s in self.sinks}
        summary = self._summary
        return {
            **self.health.as_dict(),
            "uptime_s": (now_ns - self._started_ns) / NS_PER_S,
            "frames": summary.frames,
            "scores": summary.scores,
            "fcc_undefined": dict(summary.fcc_undefined),
            "deadlines_missed": summary.deadlines_missed,
            "pictures_dropped": summary.pictures_dropped,
            **self.recall,
            "score_age_ms": summarise_ms(list(self.latencies_ns)),
            "synchronisation_ms": self._apart_p95_ms(),
            "gaze_calibration": self._describe_calibration(),
            "streams": streams,
            "sinks": sinks,
        }

    @property
    def sink_errors(self) -> dict[str, str]:
        """What failed of the outputs, by sink."""
        return {sink.name: str(sink.error) for sink in self.sinks if sink.error is not None}

    def for_owner(self) -> dict[str, Any]:
        """Return the status for the control socket, whose other end is the device's owner: with the newest score."""
        private = bool(self._config.dp.epsilon)
        return {**self.status(), "publish": self._config.sinks.publish, "newest": {} if private else self.newest}

    def _describe_calibration(self) -> dict[str, Any] | None:
        known = self.calibration
        if known is None:
            return None
        fields = ("device", "model", "accuracy_deg", "worst_deg", "n_validation")
        return {"age_s": known.age_s(), **{field: getattr(known, field) for field in fields}}

    def close(self) -> None:
        self.notifier.stopping()
        self.notifier.close()

    def _frozen_ms(self, name: str) -> int:
        return (self._config.face_camera if name == "face" else self._config.scene).frozen_after_ms

    def _judge_synchronisation(self) -> tuple[Level, str]:
        if "gaze" in self.monitors and self.monitors["gaze"].silent(self._clock()):
            self._apart_ns.clear()  # gaze that comes back isn't judged by the pictures that went without it
        if len(self._apart_ns) < SYNC_FEWEST:
            return "ok", ""
        limit_ms = self._config.live.sync_ms
        beyond = self._apart_p95_ms() > limit_ms
        return ("degraded", f"gaze and pictures are more than {limit_ms:g} ms apart") if beyond else ("ok", "")

    def _apart_p95_ms(self) -> float:
        ordered = sorted(self._apart_ns)
        return ordered[int(0.95 * (len(ordered) - 1))] / NS_PER_MS if ordered else float("nan")


def judge_camera(status: SourceStatus, frozen_ms: int) -> tuple[Level, str]:
    """Return level and reason of a camera's state.

    Lost is degraded; lost again in the same way without a picture in between is another matter, failed.
    """
    if status.state in ("delivering", "ended"):
        still_ns = status.newest_ns - status.changed_ns
        frozen = bool(frozen_ms) and still_ns > frozen_ms * NS_PER_MS
        return ("degraded", "frozen: the picture doesn't change") if frozen else ("ok", "")
    if status.state == "opening":  # with a fault behind it, it says that fault
        return "ok", ""
    again = status.same_fault >= 2
    reason = f"{status.state}: {status.reason}" + (" (the same fault again; still trying)" if again else "")
    if status.state == "refused":
        return "failed", f"refused: {status.reason}"
    return ("failed" if again else "degraded"), reason
