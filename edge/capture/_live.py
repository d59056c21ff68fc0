"""A live frame source: the camera lives in a child process, so that a read that hangs can be killed.

The child opens the camera again by itself after a fault that it notices; this side notices the others (a child that
hangs, crashes or is stopped) by its own clock, kills it with all that it started, and starts it again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from edge.capture._child import SPEC, back_off_s
from edge.capture._ring import Ring
from edge.capture.base import FrameInfo, FrameSource, SourceStatus, public_name
from edge.clock import NS_PER_MS, NS_PER_S, Clock, monotonic_ns
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.processes import child_environment
from edge.records import Frame, Role

log = logging.getLogger(__name__)
#: What the child may take beyond its own deadlines before it counts as hung: start-up and a busy machine.
GRACE_NS = 1_500 * NS_PER_MS
_STDERR_TAIL = 2000


def read_deadline_s(scene: SceneConfig) -> float:
    """Return how long a read may take before the camera is opened again: twice the stale bound, at least 1 s."""
    return max(1.0, 2 * scene.silent_ms / 1000)


class Faults:
    """Counts faults in a row of one kind and text: the second one is another matter than the first."""

    def __init__(self) -> None:
        self.kind, self.text, self.same = "", "", 0

    def add(self, kind: str, text: str) -> None:
        self.same = self.same + 1 if (kind, text) == (self.kind, self.text) else 1
        self.kind, self.text = kind, text

    def clear(self) -> None:
        self.kind, self.text, self.same = "", "", 0


class LiveSource(FrameSource):
    """Pictures of one live camera; `read` gives the newest. Not to be shared between threads.

    Parameters
    ----------
    plugin : str
        Module of `edge.capture` whose ``open_reader`` runs in the child.
    scene : SceneConfig
        The camera and its bounds.
    role : Role
        ``scene`` or ``face``.
    reopen : bool
        Whether the source is tried again after a fault (a camera), or not (a clip played as if live).
    """

    def __init__(
        self, plugin: str, scene: SceneConfig, role: Role, *, reopen: bool = True, clock: Clock = monotonic_ns
    ) -> None:
        self._plugin, self._scene, self._role, self._reopen, self._clock = plugin, scene, role, reopen, clock
        self._name = public_name(scene.source)
        self.info = FrameInfo(self._name, 0, 0, scene.rate_hz, live=True)
        self._faults = Faults()
        self._refused = self._ended = self._closed = False
        self._newest_id = -1
        self._dropped = self._restarts = self._newest_ns = self._changed_ns = 0
        self._counts = True
        self._start()

    @property
    def status(self) -> SourceStatus:
        state: Any = "opening"
        reason = self._faults.text
        if self._ended:
            state = "ended"
        elif self._faults.kind:
            state = "refused" if self._refused else self._faults.kind
        elif self._delivering:
            # as of the moment when the child was last asked: a caller that is busy is no silent camera
            silent = self._asked_ns - self._newest_ns > self._scene.silent_ms * NS_PER_MS
            state, reason = ("stalled", "silent") if silent else ("delivering", "")
        captured = self._newest_id + 1
        return SourceStatus(
            state,
            reason,
            self._faults.same,
            captured,
            self._dropped,
            self._restarts,
            self._newest_ns,
            self._changed_ns,
        )

    @property
    def ended(self) -> bool:
        return self._ended or self._refused or self._closed

    def count_from_here(self) -> None:
        self._dropped, self._counts = 0, False

    def read(self, timeout_s: float = 1.0) -> Frame | None:
        """Return the newest picture that wasn't given yet, or None after `timeout_s` or at the end."""
        give_up_ns = self._clock() + int(timeout_s * NS_PER_S)
        while not self._closed:
            left_s = max(0.0, (give_up_ns - self._clock()) / NS_PER_S)
            self._attend(min(left_s, 0.1))
            self._asked_ns = self._clock()
            frame = self._take()
            if frame is None and self._refused:
                raise SourceError(self._name, self._faults.text)
            if frame is not None or left_s == 0 or self._ended:
                return frame
        return None

    def close(self) -> None:
        self._closed = True
        self._child.kill()
        self._child.close()

    def _start(self) -> None:
        self._child = _Child(self._plugin, self._scene, self._newest_id + 1)
        self._delivering = False
        self._heard_ns = self._asked_ns = self._clock()
        self._retry_ns = 0

    def _attend(self, timeout_s: float) -> None:
        """Wait for the child, take in its reports, and replace it when it is gone or hangs."""
        if not self._child.alive:
            self._wait_to_restart(timeout_s)
            return
        rang = self._child.wait(timeout_s)
        reports = self._child.reports()
        if rang or reports:
            self._heard_ns = self._clock()
        for message in reports:
            self._note(message)
        self._watch()

    def _wait_to_restart(self, timeout_s: float) -> None:
        if self._ended or self._refused:
            return
        pause_s = (self._retry_ns - self._clock()) / NS_PER_S
        if pause_s > 0:
            select.select([], [], [], min(pause_s, timeout_s))
        if self._clock() >= self._retry_ns:
            self._child.close()
            self._restarts += 1
            self._start()

    def _note(self, message: dict[str, Any]) -> None:
        self._delivering = False
        if "opened" in message:
            self.info = FrameInfo(**{**message["opened"], "source": self._name})
        elif "ended" in message:
            self._ended = True
        else:
            self._fault(message["fault"], message["text"])

    def _fault(self, kind: str, text: str) -> None:
        self._faults.add(kind, text.removeprefix(f"{self._name}: "))
        if not self._reopen or (kind == "refused" and self._faults.same >= 2):
            self._refused = True
            self._child.kill()

    def _watch(self) -> None:
        """Kill a child that hangs, and note one that has ended without saying why.

        One that was stopped won't notice anything itself: it gets no longer than a camera that is silent.
        """
        limit_ms = read_deadline_s(self._scene) * 1000 if self._delivering else self._scene.open_ms
        unheard_ns = self._clock() - self._heard_ns
        hangs = unheard_ns > limit_ms * NS_PER_MS + GRACE_NS
        if self._child.alive and unheard_ns > self._scene.silent_ms * NS_PER_MS:
            hangs = hangs or self._child.stopped
        if self._child.alive and not hangs:
            return
        text = "its reader hung and was killed" if self._child.alive else self._child.last_words()
        self._child.kill()
        if not self._ended and not self._refused:
            self._fault("stalled", text)
            if self._faults.same == 1:
                log.warning("%s: %s", self._name, text)
            self._retry_ns = self._clock() + int(back_off_s(self._faults.same) * NS_PER_S)

    def _take(self) -> Frame | None:
        picture = self._child.ring.newest(self._newest_id)
        if picture is None:
            return None
        if self._counts:
            self._dropped += picture.frame_id - self._newest_id - 1
        self._newest_id, self._newest_ns, self._changed_ns = picture.frame_id, picture.t_ns, picture.changed_ns
        self._counts = self._delivering = True
        if not self._refused:
            self._faults.clear()
        return Frame(picture.frame_id, picture.t_ns, picture.image, self._name, self._role)


class _Child:
    """The child process with its ring, its pipes and its death."""

    def __init__(self, plugin: str, scene: SceneConfig, first_id: int) -> None:
        self.ring = Ring.create()
        self._doorbell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._report, report_in = os.pipe()
        spec = {
            "plugin": plugin,
            "scene": msgspec.to_builtins(scene),
            "first_id": first_id,
            "ring": self.ring.fd,
            "doorbell": self._doorbell,
            "report": report_in,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edge.capture._child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(self.ring.fd, self._doorbell, report_in),
            # Not as an argument: every user of the machine could read a camera's password there.
            env=child_environment(**{SPEC: json.dumps(spec)}),
            start_new_session=True,
        )
        os.close(report_in)
        assert self._process.stderr is not None
        self._errors = self._process.stderr.fileno()
        for fd in (self._report, self._errors):
            os.set_blocking(fd, False)
        self._partial, self._stderr_tail = b"", b""
        self.alive = True

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it."""
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] == "T"
        return False

    def wait(self, timeout_s: float) -> bool:
        """Wait until the child rings, reports or ends; return whether it rang for a picture."""
        select.select([self._doorbell, self._report], [], [], timeout_s)
        self._stderr_tail = (self._stderr_tail + _read_all(self._errors))[-_STDERR_TAIL:]
        if self._process.poll() is not None:
            self.alive = False
        with contextlib.suppress(BlockingIOError):
            return os.eventfd_read(self._doorbell) > 0
        return False

    def reports(self) -> list[dict[str, Any]]:
        *lines, self._partial = (self._partial + _read_all(self._report)).split(b"\n")
        return [json.loads(line) for line in lines]

    def last_words(self) -> str:
        """Say how the child ended."""
        code = self._process.poll()
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        lines = self._stderr_tail.decode(errors="replace").strip().splitlines()
        return f"its reader ended with {how}" + (f": {lines[-1]}" if lines else "")

    def kill(self) -> None:
        """Kill the child and all that it started. The pictures that it delivered stay readable."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.alive = False

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._report >= 0:
            os.close(self._report)
            os.close(self._doorbell)
            self._report = self._doorbell = -1
        self.ring.close()


def _read_all(fd: int) -> bytes:
    chunks = []
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
    return b"".join(chunks)
