"""Cameras that really serve, each in a process of its own: killed, stopped and started again by the tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Server:
    """A camera process on loopback, always on the same port."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.url = ""
        self.start()

    def start(self) -> None:
        port = ["--port", self.url.rsplit(":", 1)[1].partition("/")[0]] if self.url else []
        self.process = subprocess.Popen([*self._command, *port], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert "://127.0.0.1:" in self.url, "the camera didn't start"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Return a function that starts a camera: `serve("mjpeg", "--count", "60")` or `serve("rtsp")`."""
    servers = []

    def start(kind: str, *options: str) -> Server:
        programs = {
            "mjpeg": [sys.executable, "-m", "host_tools.serve_mjpeg"],
            "rtsp": ["/usr/bin/python3", "host_tools/serve_rtsp.py"],
        }
        servers.append(Server([*programs[kind], *options]))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
