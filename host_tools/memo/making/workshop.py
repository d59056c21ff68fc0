"""What was asked of the painters and what became of it: a SQLite file, pictures named by their content, an index."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edge.commands.base import progress
from edge.errors import DataError
from edge.files import write_atomic
from host_tools.memo.ask.profiles import Generator
from host_tools.memo.ask.server import NoAnswerError
from host_tools.memo.making.painters import Painter
from host_tools.memo.making.prompts import Prompt
from host_tools.tables import write_csv

VERDICTS = ("keep", "off-topic", "no emotion", "broken")
INDEX_COLUMNS = ("image", "model", "emotion", "prompt", "style", "status", "reason", "text")
_TABLES = """
create table if not exists asked (
  key text primary key, model text not null, prompt_id text not null, emotion text not null, style text not null,
  text text not null, image text not null, refused text not null, attempts integer not null, asked_at text not null
);
create table if not exists reviews (
  image text primary key, verdict text not null, reviewer text not null, reviewed_at text not null
);
"""


@dataclass
class Made:
    """What a run of a painter did."""

    painted: int = 0
    known: int = 0
    refused: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def lines(self, name: str) -> list[str]:
        """Say it in a line or two."""
        lines = [f"{name}: {self.painted} painted, {self.refused} refused, {self.known} known already"]
        if self.failed:
            prompt, error = next(iter(self.failed.items()))
            lines.append(f"{name}: {len(self.failed)} failed (first: {prompt}: {error}); run again to ask again")
        return lines


class Workshop:
    """The folder of a new set of portraits: ``pictures/``, ``workshop.sqlite`` and ``pictures.csv``.

    A picture's name is the hash of its content, so that no rater can read from it what was asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pictures = folder / "pictures"
        self.pictures.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "workshop.sqlite", check_same_thread=False, isolation_level=None)
        try:
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise DataError(str(folder / "workshop.sqlite"), f"is no workshop: {error}") from error

    def paint(
        self, name: str, profile: Generator, prompts: Sequence[Prompt], make_painter: Callable[[], Painter]
    ) -> Made:
        """Have a generator paint what it hasn't yet; refusals are kept and not asked for again, failures are.

        Parameters
        ----------
        make_painter : callable
            Called at the first prompt that has to be painted.
        """
        made = Made()
        painter: Painter | None = None
        for prompt in progress(prompts, name, len(prompts)):
            key = asked_key(name, profile, prompt)
            if self._db.execute("select 1 from asked where key = ?", (key,)).fetchone():
                made.known += 1
                continue
            painter = painter or make_painter()
            try:
                result = painter.paint(prompt.text, seed=int(key[:8], 16))
            except NoAnswerError as error:
                made.failed[prompt.prompt_id] = error.problem
                continue
            image = self._keep(result.picture) if result.picture else ""
            values = (key, name, prompt.prompt_id, prompt.emotion, prompt.style, prompt.text, image, result.refused)
            marks = ", ".join("?" * 10)
            self._db.execute(f"insert into asked values ({marks})", (*values, result.attempts, _now()))
            made.painted, made.refused = made.painted + bool(image), made.refused + bool(result.refused)
        return made

    def review(self, image: str, verdict: str, reviewer: str) -> None:
        """Keep a verdict about a picture; a later one replaces it.

        Raises
        ------
        DataError
            If there is no such verdict or picture.
        """
        if verdict not in VERDICTS or image not in self.to_review(everything=True):
            raise DataError("review", f"no such picture or verdict: {image!r}, {verdict!r}")
        self._db.execute("insert or replace into reviews values (?, ?, ?, ?)", (image, verdict, reviewer, _now()))

    def to_review(self, *, everything: bool = False) -> list[str]:
        """List the pictures that nobody has reviewed yet, in the order of their names (which is a random one)."""
        query = "select distinct image from asked where image != ''"
        if not everything:
            query += " and image not in (select image from reviews)"
        return [row[0] for row in self._db.execute(query + " order by image")]

    def asked_for(self, image: str) -> tuple[str, str]:
        """Return emotion and text of the prompt that a picture was painted for."""
        row = self._db.execute("select emotion, text from asked where image = ?", (image,)).fetchone()
        if row is None:
            raise DataError(image, "was never painted here")
        return str(row[0]), str(row[1])

    def index(self) -> list[dict[str, Any]]:
        """Return a row for everything that was asked for: kept, refused or rejected, and why."""
        query = (
            "select image, model, emotion, prompt_id, style, refused, verdict, text from asked "
            "left join reviews using (image) order by model, prompt_id"
        )
        rows = []
        for image, model, emotion, prompt, style, refused, verdict, text in self._db.execute(query):
            status = "refused" if refused else "rejected" if verdict not in (None, "keep") else "kept"
            reason = refused or (verdict if status == "rejected" else "")
            values = (image, model, emotion, prompt, style, status, reason, text)
            rows.append(dict(zip(INDEX_COLUMNS, values, strict=True)))
        return rows

    def write_index(self) -> Path:
        """Write ``pictures.csv``, which `memo` takes as the archive's index; return its path."""
        path = self.folder / "pictures.csv"
        write_csv(path, self.index(), INDEX_COLUMNS)
        return path

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _keep(self, picture: bytes) -> str:
        kind = "png" if picture.startswith(b"\x89PNG") else "webp" if picture[8:12] == b"WEBP" else "jpg"
        name = f"{hashlib.sha256(picture).hexdigest()[:24]}.{kind}"
        write_atomic(self.pictures / name, picture)
        return name


def asked_key(name: str, profile: Generator, prompt: Prompt) -> str:
    """Return the hash of what a picture depends on: the generator, its model and settings, and the prompt."""
    parts = [name, profile.backend, profile.model, profile.resolution, profile.steps, prompt.prompt_id, prompt.text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
