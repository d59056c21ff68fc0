from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("misbehaving_server.py")


@dataclass
class Running:
    """A server process: its address, and what it was asked."""

    base_url: str
    log: Path
    process: subprocess.Popen[str]

    def requests(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    """Start servers that behave as told; they end with the test."""
    started: list[Running] = []

    def start(behaviours: str) -> Running:
        log = tmp_path / f"requests{len(started)}.jsonl"
        process = subprocess.Popen([sys.executable, SERVER, log, behaviours], stdout=subprocess.PIPE, text=True)
        assert process.stdout
        port = process.stdout.readline().strip()
        started.append(Running(f"http://127.0.0.1:{port}/v1", log, process))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.communicate()
