"""Differential privacy at the source: a sink gets no gaze and nothing that follows from it, but noisy statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from edge.clock import NS_PER_S
from edge.config import DpConfig
from edge.dp.ledger import Ledger
from edge.dp.statistics import FEATURES, gaze_data, release_statistics
from edge.errors import DataError
from edge.records import Event, RedactedFrame
from edge.sinks.base import Sink

#: Kinds that say nothing of gaze. Everything else stays behind, so a new kind does until it is listed here.
PASSED = frozenset({"session", "end", "health", "stream", "deadline_missed", "mark", "restart"})
#: What follows from gaze in the payload of one that passes, and in a run's summary.
EXACT = frozenset({"fixations", "scores", "fcc_mean", "fcc_undefined", "faces_covered"})
KIND = "private_gaze"


def without_exact(values: dict[str, Any]) -> dict[str, Any]:
    """Return a payload, or a summary, without what follows from gaze."""
    return {name: value for name, value in values.items() if name not in EXACT}


class PrivateSink(Sink):
    """Stands before all sinks of a run: they get what says nothing of gaze, and a release per window of time.

    One window's fixations are released at a cost of `settings.epsilon` per window; windows are disjoint, so with the
    fixation as unit one fixation is in one window, and a window's cost is its cost (parallel composition). The session
    as a whole pays for all windows: that is what the ledger counts, and when it is spent nothing is released any more.
    """

    name = "private"

    def __init__(self, sinks: Sequence[Sink], settings: DpConfig, session: str) -> None:
        self._sinks, self._settings, self._session = sinks, settings, session
        self._ledger = Ledger(Path(settings.ledger), (settings.budget, 0.0))
        self._window: list[Event] = []
        self._end_ns: int | None = None
        self._spent = False

    def event(self, event: Event) -> None:
        if event.kind in PASSED:
            if event.kind == "end":
                self._release(event)
            self._pass_on(event)
            return
        if event.kind not in ("score", "fixation"):
            return
        if self._end_ns is None:
            self._end_ns = event.t_ns + int(self._settings.window_s * NS_PER_S)
        elif event.t_ns >= self._end_ns:
            self._release(event)
            self._end_ns += int(self._settings.window_s * NS_PER_S)
        self._window.append(event)

    def picture(self, frame: RedactedFrame) -> None:
        """Pictures stay behind: where a face is clear, there the gaze is."""

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

    def _pass_on(self, event: Event) -> None:
        passed = replace(event, payload=without_exact(event.payload))
        for sink in self._sinks:
            sink.event(passed)

    def _release(self, event: Event) -> None:
        window, self._window = self._window, []
        if self._spent or not window:
            return
        epsilon = self._settings.epsilon
        try:
            self._ledger.spend([self._session], (epsilon, 0.0), f"window of {self._settings.window_s:g} s")
            values = release_statistics([gaze_data(window, self._session)], "fixation", epsilon)
            payload = {
                "epsilon": epsilon,
                "delta": 0.0,
                "unit": "fixation",
                "window_s": self._settings.window_s,
                "bounds": {name: asdict(bounds) for name, bounds in FEATURES.items()},
                "values": values,
            }
        except DataError as error:
            self._spent = True
            payload = {"epsilon": 0.0, "reason": "the budget is spent", "detail": str(error)}
        self._pass_on(Event(event.seq, event.t_ns, event.t_emit_ns, KIND, payload))
