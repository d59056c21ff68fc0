"""What systemd hears, on a real socket."""

from __future__ import annotations

import os
import socket

from edge.live.notify import SystemdNotifier


def test_the_watchdog_hears_a_third_of_its_interval(tmp_path):
    now = [0]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        environ = {
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": "3000000",
            "WATCHDOG_PID": str(os.getpid()),
        }
        notifier = SystemdNotifier(environ, clock=lambda: now[0])
        notifier.ready("ready")
        for now[0] in range(0, 2_500_000_000, 100_000_000):
            notifier.turn()
        notifier.stopping()
        notifier.close()
        said = []
        while True:
            try:
                said.append(systemd.recv(1000).decode())
            except BlockingIOError:
                break
    assert said == ["READY=1\nSTATUS=ready", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]


def test_without_systemd_nothing_happens():
    notifier = SystemdNotifier({})
    notifier.ready("ready")
    notifier.turn()
    notifier.close()


def test_a_watchdog_meant_for_another_process_is_not_fed(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}
        notifier = SystemdNotifier(environ)
        notifier.turn()
        notifier.close()
        try:
            said = systemd.recv(1000)
        except BlockingIOError:
            said = b""
    assert said == b""
