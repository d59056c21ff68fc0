"""`python -m host_tools simulate`: the line that it prints is the README's."""

from __future__ import annotations

import re
from pathlib import Path

from host_tools.commands.simulate import run_line

README = Path(__file__).parents[2] / "README.md"


def test_the_printed_line_is_that_of_the_readme() -> None:
    line = run_line("http://127.0.0.1:8090/", "SimulatedGaze", Path("runs/demo/environment"))
    lines = re.sub(r"\s*\\\n\s*", " ", README.read_text(encoding="utf-8")).splitlines()
    assert line in [text.partition(" #")[0].strip() for text in lines]


def test_names_with_blanks_stay_one_word() -> None:
    assert run_line("", "Eye 1", None) == "emogaze run --gaze 'lsl:Eye 1'"
