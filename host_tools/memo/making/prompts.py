"""Prompts: a table of id, emotion, style and text, and a maker of varied ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from edge.config_files import parse_toml
from edge.errors import DataError
from host_tools.memo.classes import CLASSES, find_class
from host_tools.tables import read_table, write_csv

BANKS = Path(__file__).with_name("prompts.toml")
STYLES = ("direct", "contextual")
COLUMNS = ("prompt_id", "emotion", "style", "text")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a painter is asked for. `direct` names the emotion; `contextual` tells a situation that brings it about."""

    prompt_id: str
    emotion: str
    style: Literal["direct", "contextual"]
    text: str


def make_prompts(per_emotion: int = 100, seed: int = 0) -> list[Prompt]:
    """Make prompts for all six emotions, half of each style, no text twice.

    Raises
    ------
    ValueError
        If the banks don't hold as many.
    """
    banks = parse_toml(BANKS)
    prompts = []
    for emotion in CLASSES:
        for style in STYLES:
            n = per_emotion // 2 if style == "direct" else per_emotion - per_emotion // 2
            texts = sorted(_texts(banks, emotion, style))
            if n > len(texts):
                raise ValueError(f"the banks hold {len(texts)} {style} prompts for {emotion}, not {n}")
            chosen = random.Random(f"{seed}/{emotion}/{style}").sample(texts, n)
            ids = (f"{emotion}-{style[0]}{i:03d}" for i in range(n))
            prompts += [Prompt(i, emotion, style, text) for i, text in zip(ids, chosen, strict=True)]  # type: ignore[arg-type]
    return prompts


def write_prompts(path: Path, prompts: list[Prompt]) -> None:
    """Write prompts as CSV."""
    write_csv(path, [asdict(p) for p in prompts], COLUMNS)


def read_prompts(path: Path) -> list[Prompt]:
    """Read a table of prompts.

    Raises
    ------
    DataError
        If a column, an emotion, a style or a text is missing or unknown, or an id stands twice; the row is named.
    """
    table = read_table(path)
    prompts = []
    for i, (name, emotion, style, text) in enumerate(zip(*(table.text(c) for c in COLUMNS), strict=True), start=1):
        where = f"{path}, row {i}"
        if not find_class(emotion):
            raise DataError(where, f"unknown emotion {emotion!r}", expected="one of " + ", ".join(CLASSES))
        if style not in STYLES:
            raise DataError(where, f"unknown style {style!r}", expected="direct or contextual")
        if not text:
            raise DataError(where, "the text is empty")
        prompts.append(Prompt(name, find_class(emotion), style, text))  # type: ignore[arg-type]
    twice = [name for name, n in Counter(p.prompt_id for p in prompts).items() if n > 1]
    if twice:
        raise DataError(str(path), f"{len(twice)} ids stand twice", got=", ".join(twice[:3]))
    return prompts


def _texts(banks: dict[str, Any], emotion: str, style: str) -> Iterator[str]:
    inner = ("word", banks["words"][emotion]) if style == "direct" else ("event", banks["events"][emotion])
    for form, shot, person, look, what in product(
        banks[style], banks["shots"], banks["people"], banks["looks"], inner[1]
    ):
        yield form.format(shot=shot, person=person, look=look, **{inner[0]: what})
