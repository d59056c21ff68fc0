"""One LSL inlet that survives its outlet: a thread that pulls, corrects stamps, notices silence and finds it again.

LSL's clock is the host's monotonic clock in seconds, so a stamp plus LSL's time correction is host time. Silence is
noticed by this thread's own timer, since a paused outlet raises nothing. An outlet that comes back under a new identity
is found by name, type or source id, as the first was.

`pull_chunk` with a timeout never returns while an outlet is paused (liblsl 1.18), so the thread waits for one sample
with `pull_sample` and then takes what else is there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from edge.errors import AbsentError, SourceError

PULL_S = 0.05  #: the thread wakes up so often
DOUBLES_S = 0.6  #: a second outlet that answers within this makes a name ambiguous
OPEN_S = 2.0
SILENT_SAMPLES = 3  #: a slow stream, such as a heart rate, isn't silent before so many were due
MAX_STAMP_S = 4.4e9  #: 140 years; what is further away is no time
CORRECTION_S = 2.0  #: the time correction is read again so often
#: On one machine answers take well under a millisecond: a stream that comes back is found and its clock compared in
#: half a second, where LSL's own intervals, made for networks, take one and a half.
QUICK = """\
[tuning]
ContinuousResolveInterval = 0.1
MulticastMinRTT = 0.1
TimeProbeInterval = 0.016
"""
KEYS = ("name", "type", "source_id", "hostname", "uid")

Deliver = Callable[[list[Any], list[int], int], None]
Note = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Query:
    """Which stream is meant, by one or more of LSL's properties."""

    text: str
    wanted: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read ``lsl:NAME`` or ``lsl:key=value,key=value`` with the keys name, type, source_id, hostname, uid.

        Raises
        ------
        SourceError
            An unknown key or an empty query.
        """
        wanted = []
        for part in filter(None, text.removeprefix("lsl:").split(",")):
            key, sign, value = part.partition("=")
            key, value = (key.strip(), value.strip()) if sign else ("name", part.strip())
            if key not in KEYS or not value or "'" in value:
                raise SourceError(text, f"{part!r} names no stream", expected=f"lsl:NAME, or one of {', '.join(KEYS)}")
            wanted.append((key, value))
        if not wanted:
            raise SourceError(text, "names no stream", fix="write lsl:NAME or lsl:type=Gaze")
        return cls(text, tuple(wanted))

    @property
    def predicate(self) -> str:
        return " and ".join(f"{key}='{value}'" for key, value in self.wanted)


def load_lsl(scope: str) -> Any:
    """Return pylsl, told to be quiet and to look no further than `scope` (machine, link or site).

    LSL reads its settings once per process, so the first scope holds; a user's own LSLAPICFG is left alone.

    Raises
    ------
    SourceError
        The library isn't on this machine.
    """
    if "LSLAPICFG" not in os.environ:
        folder = tempfile.mkdtemp(prefix="emogaze-lsl-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        settings = Path(folder) / "lsl_api.cfg"
        quick = QUICK if scope == "machine" else ""
        settings.write_text(f"[multicast]\nResolveScope = {scope}\n[log]\nlevel = -3\n{quick}")
        os.environ["LSLAPICFG"] = str(settings)
    try:
        import pylsl
    except (ImportError, RuntimeError, OSError) as error:
        first = str(error).splitlines()[0]
        raise SourceError("lsl", f"liblsl is missing: {first}", fix="`emogaze doctor` says how to get it") from error
    return pylsl


def resolve(lsl: Any, query: Query, wait_s: float) -> Any:
    """Return the first stream found that `query` means.

    Raises
    ------
    AbsentError
        No such stream appeared within `wait_s`.
    """
    found = lsl.resolve_bypred(query.predicate, 1, wait_s)
    if not found:
        others = ", ".join(sorted(f"{s.name()} ({s.type()}) on {s.hostname()}" for s in lsl.resolve_streams(0.5)))
        raise AbsentError(query.text, "no such stream is offered", got=others or "no stream at all")
    return found[0]


def refuse_doubles(lsl: Any, query: Query) -> None:
    """Wait for further streams that `query` means; raise SourceError if there is more than one."""
    found = lsl.resolve_bypred(query.predicate, 99, DOUBLES_S)
    if len(found) > 1:
        raise SourceError(
            query.text,
            f"{len(found)} streams are called so",
            got=_listed(found),
            fix="pin one: lsl:source_id=..., or uid=...",
        )


def _listed(streams: list[Any]) -> str:
    return "; ".join(
        sorted(f"{s.name()} on {s.hostname()}, uid {s.uid()}, source_id {s.source_id() or 'none'}" for s in streams)
    )


class LslInlet:
    """Pulls one stream in a thread of its own.

    Parameters
    ----------
    query : Query
        The stream.
    scope : str
        How far to look: machine, link or site.
    silent_ms : int
        A stream silent for longer, and for three samples, is noted, and its outlet searched anew.
    wait_s : float
        The stream must appear within this.

    Raises
    ------
    AbsentError, SourceError
        No such stream, or more than one; it doesn't open.
    """

    def __init__(self, query: Query, scope: str, *, silent_ms: int, wait_s: float = 3.0) -> None:
        self._lsl = load_lsl(scope)
        self._gone = (self._lsl.util.LostError, self._lsl.util.TimeoutError)
        self._query = query
        self._deliver: Deliver = lambda *_: None
        self._note: Note = lambda *_: None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._resolver: Any = None
        self._silent = self._timeless = False
        self._correction_s = 0.0
        self._corrected_ns = 0
        self._heard_ns = monotonic_ns()
        self._inlet: Any = None
        self.uid = ""
        found = resolve(self._lsl, query, wait_s)
        with ThreadPoolExecutor(1) as beside:  # both wait for the network, and neither needs the other
            doubles = beside.submit(refuse_doubles, self._lsl, query)
            try:
                self.info = self._connect(found)
            except self._gone as error:
                raise AbsentError(query.text, "is announced but doesn't open") from error
            doubles.result()
        self._silent_ns = silent_after_ms(silent_ms, self.info.nominal_srate()) * NS_PER_MS

    @property
    def is_text(self) -> bool:
        return bool(self.info.channel_format() == self._lsl.cf_string)

    def describe(self) -> str:
        """Return the stream's full description as XML."""
        return str(self.info.as_xml())

    def start(self, deliver: Deliver, note: Note) -> None:
        """Begin to pull; the thread calls `deliver(samples, stamps_ns, arrival_ns)` and `note(kind, detail)`."""
        self._deliver, self._note = deliver, note
        if not self.info.source_id():
            note("no_source_id", {"stream": self._query.text, "consequence": "found again by its other properties"})
        note("time_correction", {"seconds": self._correction_s})
        self._thread = threading.Thread(target=self._run, name=self._query.text, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop pulling. May be called twice."""
        self._stop.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(2.0)
        self._inlet = self._resolver = None

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._inlet is not None:
                    self._pull()
                else:
                    self._stop.wait(PULL_S)
                self._watch()
            except self._gone:
                self._drop()

    def _pull(self) -> None:
        sample, stamp = self._inlet.pull_sample(timeout=PULL_S)
        if stamp is None:
            return
        arrival_ns = monotonic_ns()
        samples, stamps = self._inlet.pull_chunk(timeout=0.0, max_samples=4096)
        self._heard_ns = arrival_ns
        if self._silent:
            self._silent, self._resolver = False, None
            self._note("back", {"stream": self._query.text, "uid": self.uid})
        self._correct()
        timed = [
            (values, round((t + self._correction_s) * NS_PER_S))
            for values, t in zip((sample, *samples), (stamp, *stamps), strict=True)
            if abs(t) < MAX_STAMP_S  # which no nan is
        ]
        if len(timed) <= len(samples) and not self._timeless:
            self._timeless = True
            self._note("no_time", {"stream": self._query.text, "consequence": "samples without a time are left out"})
        if timed:
            kept, stamps_ns = zip(*timed, strict=True)
            self._deliver(list(kept), list(stamps_ns), arrival_ns)

    def _correct(self) -> None:
        """Read the time correction, which LSL estimates in the background, and note a change of over 1 ms."""
        now_ns = monotonic_ns()
        if now_ns - self._corrected_ns < CORRECTION_S * NS_PER_S:
            return
        self._corrected_ns = now_ns
        before = self._correction_s
        with contextlib.suppress(self._lsl.util.TimeoutError):
            self._correction_s = self._inlet.time_correction(0.1)
        if abs(self._correction_s - before) > 0.001:
            self._note("time_correction", {"seconds": self._correction_s, "before": before})

    def _watch(self) -> None:
        """Note silence, and look for the outlet's successor while it lasts."""
        now_ns = monotonic_ns()
        if now_ns - self._heard_ns <= self._silent_ns:
            return
        if not self._silent:
            self._silent = True
            self._note("silent", {"stream": self._query.text, "for_ms": (now_ns - self._heard_ns) / NS_PER_MS})
        if self._resolver is None:
            self._resolver = self._lsl.ContinuousResolver(pred=self._query.predicate, forget_after=1.0)
        found = [s for s in self._resolver.results() if self._inlet is None or s.uid() != self.uid]
        if len(found) == 1:
            self._connect(found[0])
        elif len(found) > 1:
            self._note("ambiguous", {"stream": self._query.text, "found": _listed(found)})
            self._stop.wait(1.0)

    def _drop(self) -> None:
        if self._inlet is not None:
            self._note("lost", {"stream": self._query.text, "uid": self.uid})
        self._inlet = None
        self._stop.wait(PULL_S)

    def _connect(self, found: Any) -> Any:
        """Open an inlet on a stream that was found and return its full description."""
        inlet = self._lsl.StreamInlet(found, max_buflen=10, recover=False)
        inlet.open_stream(timeout=OPEN_S)
        info = inlet.info(timeout=OPEN_S)
        if self._thread is not None and _shape(info) != _shape(self.info):
            self._note("changed", {"stream": self._query.text, "was": _shape(self.info), "is": _shape(info)})
            self._stop.wait(1.0)
            return info
        self._correction_s = inlet.time_correction(OPEN_S)
        self._corrected_ns = monotonic_ns()
        if self._thread is not None:
            self._note("time_correction", {"seconds": self._correction_s})
        self._inlet, self.uid = inlet, info.uid()
        return info


def silent_after_ms(silent_ms: int, hz: float) -> int:
    """Return after how long a stream of this declared rate (0: none) counts as silent, where `silent_ms` is asked."""
    return max(silent_ms, round(1000 * SILENT_SAMPLES / hz)) if hz > 0 else silent_ms


def _shape(info: Any) -> str:
    return f"{info.channel_count()} channels of format {info.channel_format()}"


def stream_name(info: Any) -> str:
    """Return a stream's name as a plain word for events and metrics."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", info.name()) or "stream"
