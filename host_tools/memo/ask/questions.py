"""The questions, in versioned sets: first the class, then its degree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edge.config_files import parse_toml
from edge.errors import ConfigError
from host_tools.memo.classes import LABEL_OF

FILE = Path(__file__).with_name("questions.toml")
Step = Literal["coarse", "fine"]


@dataclass(frozen=True, slots=True)
class Questions:
    """A set of questions by its name."""

    name: str
    system: str
    coarse_text: str
    fine_text: str

    def coarse(self) -> str:
        """Return the question for the class."""
        return self.coarse_text.format(labels=", ".join(LABEL_OF.values()))

    def fine(self, code: str) -> str:
        """Return the question for the degree of a class."""
        return self.fine_text.format(label=LABEL_OF[code])


def load_questions(name: str) -> Questions:
    """Return a set of questions.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    sets = parse_toml(FILE)
    if name not in sets:
        raise ConfigError("template", f"there is no {name!r}", expected="one of " + ", ".join(sets))
    return Questions(name, sets[name]["system"], sets[name]["coarse"], sets[name]["fine"])
