"""Answers that were paid for: kept as soon as they arrive, found again by model, question and picture."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.errors import DataError

_TABLE = """
create table if not exists answers (
  key text primary key, model text not null, template text not null, step text not null, image text not null,
  picture_sha256 text not null, question text not null, answer text not null, finish text not null,
  tokens_in integer, tokens_out integer, cost real, attempts integer not null, latency_ms real not null,
  asked_at text not null
);
create table if not exists failures (
  key text not null, model text not null, step text not null, image text not null, error text not null,
  attempts integer not null, asked_at text not null
);
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it came: the raw text, why it ended, and what it cost (None = not known)."""

    text: str
    finish: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    attempts: int = 1
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One question about one picture, with everything that the answer depends on."""

    model: str
    template: str
    step: str
    image: str
    picture_sha256: str
    question: str
    parameters: str

    @property
    def key(self) -> str:
        """The hash of everything but the picture's name: a renamed picture is the same picture."""
        parts = [self.model, self.template, self.step, self.picture_sha256, self.question, self.parameters]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class AnswerStore:
    """A SQLite file of answers and failures; safe to use from many threads.

    Raises
    ------
    DataError
        If the file is no such store.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._db.execute("pragma journal_mode = wal")
            self._db.executescript(_TABLE)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise DataError(str(path), f"is no store of answers: {error}") from error

    def find(self, ask: Ask) -> Reply | None:
        """Return the answer to this question, if it was ever given."""
        query = "select answer, finish, tokens_in, tokens_out, cost, attempts, latency_ms from answers where key = ?"
        with self._lock:
            row = self._db.execute(query, (ask.key,)).fetchone()
        return Reply(*row) if row else None

    def add(self, ask: Ask, reply: Reply, asked_at: str) -> None:
        """Keep an answer; it is on disk when this returns."""
        values = (ask.key, ask.model, ask.template, ask.step, ask.image, ask.picture_sha256, ask.question)
        more = (
            reply.text,
            reply.finish,
            reply.tokens_in,
            reply.tokens_out,
            reply.cost,
            reply.attempts,
            reply.latency_ms,
        )
        with self._lock:
            marks = ", ".join("?" * (len(values) + len(more) + 1))
            self._db.execute(f"insert or replace into answers values ({marks})", (*values, *more, asked_at))

    def add_failure(self, ask: Ask, error: str, attempts: int, asked_at: str) -> None:
        """Note that a question got no answer; it is asked again in the next run."""
        values = (ask.key, ask.model, ask.step, ask.image, error, attempts, asked_at)
        with self._lock:
            self._db.execute("insert into failures values (?, ?, ?, ?, ?, ?, ?)", values)

    def ledger(self) -> list[dict[str, Any]]:
        """Return what each model was asked and cost; None where a part of it isn't known."""
        query = (
            "select model, step, count(*), sum(attempts), sum(tokens_in), sum(tokens_out), sum(cost), "
            "count(tokens_in), count(cost) from answers group by model, step order by model, step"
        )
        failed = (
            "select model, step, count(distinct key) from failures "
            "where key not in (select key from answers) group by model, step"
        )
        with self._lock:
            rows = self._db.execute(query).fetchall()
            failures = {(model, step): n for model, step, n in self._db.execute(failed)}
        return [
            {
                "model": model,
                "step": step,
                "answers": n,
                "attempts": attempts,
                "tokens_in": tokens_in if counted == n else None,
                "tokens_out": tokens_out if counted == n else None,
                "cost": cost if priced == n else None,
                "unanswered": failures.get((model, step), 0),
            }
            for model, step, n, attempts, tokens_in, tokens_out, cost, counted, priced in rows
        ]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Return the ledger of a store; an empty one where there is no file."""
    if not path.exists():
        return []
    store = AnswerStore(path)
    try:
        return store.ledger()
    finally:
        store.close()
