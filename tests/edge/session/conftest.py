"""A key folder of a device, a study with two identities, and recordings made with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from edge.config import Config, from_dict
from edge.consent import PURPOSES, new_consent
from edge.keys import KeyRing, new_signing_pair, read_private
from edge.records import Event
from edge.session.layout import SessionPaths, sessions
from edge.sinks.base import Sink
from edge.sinks.recorder import open_sink


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
    import random

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
    import pyrage

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
