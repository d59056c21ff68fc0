"""An environment cache; cameras that really serve, each in a process; the keys and consent that a recording needs."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from edge.backends.base import open_model
from edge.config import Config, from_dict, load
from edge.consent import PURPOSES, new_consent
from edge.environment import store
from edge.environment_build import build, read_views
from edge.features import Embedder
from edge.keys import KeyRing, new_signing_pair, read_private
from edge.records import Event
from edge.session.layout import SessionPaths, sessions
from edge.sinks.base import Sink
from edge.sinks.recorder import open_sink
from tests.conftest import need

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
        """Kill it. May be called twice."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="session")
def environment(data: Path, artefacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment cache of the clip of one face, built once."""
    folder = tmp_path_factory.mktemp("environment")
    config = load()
    embedder = Embedder(open_model(config.models.embedder, config.models), config.score)
    views = read_views(str(data / "faces" / "WolfgangLanger_Pexels.mp4"), end_s=1.0, every_s=0.5)
    store(folder, [build(embedder, views, config.score)])
    return folder


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


@dataclass(frozen=True)
class Study:
    """What a test needs to record and read back: the device's keys, two study identities, an operator."""

    root: Path
    ring: KeyRing
    identity: Path
    escrow: Path
    operator: Path

    @property
    def recordings(self) -> Path:
        return self.root / "recordings"

    def consent(self, *purposes: str, days: float = 30, now: datetime | None = None) -> Path:
        now = now or datetime.now(timezone.utc)
        body = new_consent(read_private(self.operator), "S-01", purposes or list(PURPOSES), days, "dr-a", now=now)
        path = self.root / f"consent-{body['id']}.json"
        path.write_text(json.dumps(body))
        return path

    def config(self, **record: Any) -> Config:
        record = {"dir": str(self.recordings), "min_free_mb": 0, **record}
        record.setdefault("consent", str(self.consent()))
        return from_dict({"record": record, "keys": {"dir": str(self.ring.folder)}}, thing="test")

    def open(self, **record: Any) -> Sink:
        sink = open_sink(self.config(**record), {})
        assert sink is not None
        return sink

    def record(self, n: int, *, size: int = 0, **settings: Any) -> SessionPaths:
        """Record `n` events (with `size` bytes of incompressible text each), close, and return the newest session."""
        before = {paths.name for paths in sessions(self.recordings)}
        with self.open(queue=100_000, **settings) as sink:
            for event in make_events(n, size):
                sink.event(event)
        return next(paths for paths in sessions(self.recordings) if paths.name not in before)

    def events(self, n: int, size: int = 0) -> list[Event]:
        return make_events(n, size)


def make_events(n: int, size: int = 0) -> list[Event]:
    text = random.Random(0)
    return [
        Event(
            i,
            i * 1_000_000,
            i * 1_000_000 + 500,
            "score",
            {"frame_id": i, "fcc": 0.1 * i, "gaze": [[i, i * 5, 1.5, 2.5]], "reason": text.randbytes(size // 2).hex()},
        )
        for i in range(n)
    ]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    pyrage = need("pyrage")
    ring = KeyRing(tmp_path / "keys")
    ring.create()
    files = []
    for name in ("study", "escrow"):
        identity = pyrage.x25519.Identity.generate()
        files.append(tmp_path / f"{name}.txt")
        files[-1].write_text(f"# made by a test\n{identity}\n")
        ring.add_recipient(name, str(identity.to_public()))
    operator = tmp_path / "operator.key"
    new_signing_pair(operator)
    ring.trust("operators", "clinic", operator.with_suffix(".pub").read_text())
    return Study(tmp_path, ring, files[0], files[1], operator)
