from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from host_tools.memo.synthetic import Shape, make_archive

SERVER = Path(__file__).with_name("misbehaving_server.py")
SMALL = Shape(n_models=3, n_prompts=6, n_raters=6, n_missing=5, picture_px=24)


@pytest.fixture(scope="session")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic archive of 3 generators, 6 prompts per emotion and 6 raters; don't change it, copy it."""
    folder = tmp_path_factory.mktemp("archive")
    make_archive(folder, SMALL)
    with (folder / "memo.toml").open("a") as file:
        file.write("\n[statistics]\nn_resamples = 100\n")
    return folder


@dataclass
class Running:
    """A server process: its address, and what it was asked."""

    base_url: str
    log: Path
    process: subprocess.Popen[str]

    def requests(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def chat_server(tmp_path: Path) -> Iterator[Callable[[str], Running]]:
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
