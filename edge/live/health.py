"""The state of the device: a pure state machine, values in, value out.

    starting -> building -> warming -> running        the phases, in this order, each once
    running + no complaint      = ready
    running + a complaint       = degraded (scores may flow, something is missing)
    waiting + a complaint       = degraded (the start can't go on without what is missing; no score flows)
    any phase + a fatal one     = failed

Components (a camera, the gaze stream, a sink, the synchronisation) raise a complaint and take it back; the state is the
worst of them, and the reasons are named.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Phase = Literal["starting", "building", "warming", "running"]
State = Literal["starting", "building", "warming", "ready", "degraded", "failed"]
Level = Literal["ok", "degraded", "failed"]

PHASES: tuple[Phase, ...] = ("starting", "building", "warming", "running")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a component complains of, and since when (host-monotonic ns)."""

    component: str
    level: Level
    reason: str
    since_ns: int


class Health:
    """The phase, and the complaints of the components."""

    def __init__(self) -> None:
        self.phase: Phase = "starting"
        self.waiting = False  #: whether the start waits for a source
        self._complaints: dict[str, Complaint] = {}

    def advance(self, phase: Phase) -> None:
        """Enter a later phase.

        Raises
        ------
        ValueError
            `phase` lies before the present one.
        """
        if PHASES.index(phase) < PHASES.index(self.phase):
            raise ValueError(f"the phase can't go back from {self.phase} to {phase}")
        self.phase = phase

    def report(self, component: str, level: Level, reason: str, now_ns: int) -> bool:
        """Raise, change or (`ok`) take back a component's complaint; return whether that changed anything."""
        before = self._complaints.get(component)
        if level == "ok":
            self._complaints.pop(component, None)
            return before is not None
        if before and (before.level, before.reason) == (level, reason):
            return False
        since_ns = before.since_ns if before else now_ns
        self._complaints[component] = Complaint(component, level, reason, since_ns)
        return True

    @property
    def complaints(self) -> list[Complaint]:
        """The complaints, the worst and then the oldest first."""
        return sorted(self._complaints.values(), key=lambda c: (c.level != "failed", c.since_ns, c.component))

    @property
    def state(self) -> State:
        levels = {complaint.level for complaint in self._complaints.values()}
        if "failed" in levels:
            return "failed"
        if self.phase != "running" and not (self.waiting and levels):
            return self.phase
        return "degraded" if levels else "ready"

    @property
    def summary(self) -> str:
        """The state in a line: ``degraded (gaze: silent; scene: absent, Connection refused)``."""
        reasons = "; ".join(f"{c.component}: {c.reason}" for c in self.complaints)
        return f"{self.state} ({reasons})" if reasons else self.state

    def as_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        reasons = [asdict(complaint) for complaint in self.complaints]
        return {"state": self.state, "started": self.phase == "running", "reasons": reasons}
