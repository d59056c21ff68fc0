"""What systemd is told: ready, the state in words, and that the loop still turns (sd_notify, without a library).

The protocol is a datagram of ``KEY=value`` lines to the socket in NOTIFY_SOCKET, see sd_notify(3).
"""

from __future__ import annotations

import contextlib
import os
import socket

from edge.clock import Clock, monotonic_ns


class SystemdNotifier:
    """Sends to systemd; does nothing where there is none. Call `turn` from the loop: a stuck loop is then restarted."""

    def __init__(self, environ: dict[str, str] | None = None, clock: Clock = monotonic_ns) -> None:
        values = dict(os.environ) if environ is None else environ
        self._clock = clock
        self._address = values.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        own = values.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every_ns = int(values.get("WATCHDOG_USEC", "0")) * 1000 // 3 if own else 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if self._address else None
        if self._socket:
            self._socket.setblocking(False)
        self._next_ns = 0

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, status: str) -> None:
        self._send(f"STATUS={status}")

    def turn(self) -> None:
        """Say that the loop turns, three times per watchdog interval."""
        if self._every_ns and self._clock() >= self._next_ns:
            self._next_ns = self._clock() + self._every_ns
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    def _send(self, text: str) -> None:
        if self._socket:
            with contextlib.suppress(OSError):  # a full or vanished socket must not stop the loop
                self._socket.sendto(text.encode(), self._address)
