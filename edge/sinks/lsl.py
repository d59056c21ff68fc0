"""The scores as a Lab Streaming Layer outlet, so that recorders on this machine can keep them beside other streams.

Off by default: LSL is neither encrypted nor authenticated. The outlet lives in a process of its own, whose LSL is told
to answer on this machine alone, whatever scope the gaze inlet uses, and whose sockets are bound to the loopback device.
One sample per score, stamped with the time of its frame (LSL's clock on Linux is the host's monotonic clock in
seconds); what is undefined is nan.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from edge.clock import NS_PER_S
from edge.config import Config
from edge.errors import SinkError
from edge.labels import SYNONYMS
from edge.processes import child_environment
from edge.records import NAN, Event
from edge.sinks.base import Sink

STREAM = "EmoGaze"
EMOTIONS = sorted(set(SYNONYMS.values()))
CHANNELS = ["fcc_now", "fcc", "sim_local", "sim_global", *(f"p_{name}" for name in EMOTIONS)]
#: One sample on the pipe to the outlet's process: the stamp in seconds, then the channels.
ROW = struct.Struct(f"<{1 + len(CHANNELS)}d")
NOT_KEPT = 3  #: exit code of the outlet's process: other hosts could reach it
_ON_THIS_MACHINE = "[multicast]\nResolveScope = machine\n"


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    return LslOutlet() if config.sinks.lsl_outlet else None


class LslOutlet(Sink):
    """Starts the outlet's process and feeds it; a full pipe loses samples, counted in `dropped`.

    Raises
    ------
    SinkError
        The process has ended (no liblsl on this machine, say).
    """

    name = "lsl_outlet"

    def __init__(self) -> None:
        self.dropped = 0
        self._folder = tempfile.TemporaryDirectory(prefix="emogaze-lsl-")
        settings = Path(self._folder.name) / "lsl_api.cfg"
        settings.write_text(_ON_THIS_MACHINE)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edge.sinks._outlet"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(LSLAPICFG=str(settings)),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)

    def event(self, event: Event) -> None:
        if event.kind != "score":
            return
        try:
            os.write(self._pipe, ROW.pack(event.t_ns / NS_PER_S, *channels(event.payload)))
        except BlockingIOError:
            self.dropped += 1
        except OSError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            code = self._process.poll()
            problem, fix = f"its process ended with code {code}", "is liblsl installed?"
            if code == NOT_KEPT:
                problem = "the kernel doesn't let it keep its sockets on this machine"
                fix = "Linux before 5.7 wants CAP_NET_RAW for that"
            raise SinkError("sinks.lsl_outlet", problem, fix=fix) from None

    def close(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
            self._process.kill()
            self._process.wait()
            self._folder.cleanup()


def channels(payload: dict[str, Any]) -> list[float]:
    """Return the channel values of a score event's payload, nan for what is undefined."""
    score = payload.get("score") or {}
    probabilities = (payload.get("emotion") or {}).get("probabilities", {})
    values = [score.get(name) for name in CHANNELS[:4]] + [probabilities.get(name) for name in EMOTIONS]
    return [NAN if value is None else float(value) for value in values]
