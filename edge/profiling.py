"""Timers and statistics of durations, used by the runtime, `profile`, `tune` and the benchmarks alike."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np


def summarise_ms(samples_ns: list[int]) -> dict[str, float]:
    """Return n, p50, p90, p99 and max in milliseconds of durations in nanoseconds (nan where there are none)."""
    if not samples_ns:
        return {"n": 0, "p50": float("nan"), "p90": float("nan"), "p99": float("nan"), "max": float("nan")}
    ms = np.asarray(samples_ns, dtype=np.float64) / 1e6
    p50, p90, p99 = np.percentile(ms, [50, 90, 99])
    return {"n": len(samples_ns), "p50": float(p50), "p90": float(p90), "p99": float(p99), "max": float(ms.max())}


def resident_mb(pid: int | str = "self") -> tuple[float, float]:
    """Return the resident set of a process now and at its largest, in MB (10^6 bytes); zeros of one that has ended.

    The kernel's own figures of the address space: `getrusage` of a child starts at what its parent had.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    now, peak = (int(fields.get(name, "0").split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    return now, peak


class _Stage:
    """A stretch of time that is being measured; entered and left several times a frame, so it is kept light."""

    __slots__ = ("_name", "_start", "_timer")

    def __init__(self, timer: StageTimer, name: str) -> None:
        self._timer, self._name, self._start = timer, name, 0

    def __enter__(self) -> None:
        self._start = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        self._timer.add(self._name, time.perf_counter_ns() - self._start)


class StageTimer:
    """Collect durations per stage. Keeps the newest `capacity` samples of each, so that memory is bounded."""

    def __init__(self, capacity: int = 20_000) -> None:
        self._capacity = capacity
        self._samples: dict[str, list[int]] = {}

    def stage(self, name: str) -> _Stage:
        """Return a context whose duration is added to a stage."""
        return _Stage(self, name)

    def add(self, name: str, duration_ns: int) -> None:
        samples = self._samples.setdefault(name, [])
        samples.append(duration_ns)
        if len(samples) >= 2 * self._capacity:
            del samples[: self._capacity]

    def samples_ns(self, name: str) -> list[int]:
        return self._samples.get(name, [])[-self._capacity :]

    def summary(self) -> dict[str, dict[str, float]]:
        return {name: summarise_ms(self.samples_ns(name)) for name in self._samples}
