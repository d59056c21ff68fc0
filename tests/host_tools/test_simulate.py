"""`python -m host_tools simulate`: the line that it prints is the README's."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from edge.errors import SourceError
from host_tools.commands.simulate import run_line
from host_tools.serve_mjpeg import MjpegServer

README = Path(__file__).parents[2] / "README.md"


def test_the_printed_line_is_that_of_the_readme() -> None:
    line = run_line("http://127.0.0.1:8090/", "SimulatedGaze", Path("runs/demo/environment"))
    lines = re.sub(r"\s*\\\n\s*", " ", README.read_text(encoding="utf-8")).splitlines()
    assert line in [text.partition(" #")[0].strip() for text in lines]


def test_names_with_blanks_stay_one_word() -> None:
    assert run_line("", "Eye 1", None) == "emogaze run --gaze 'lsl:Eye 1'"


def test_a_port_in_use_is_one_line() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SourceError, match="can't be served on: Address already in use; choose another --port"),
    ):
        MjpegServer([], 30.0, taken.getsockname()[1])
