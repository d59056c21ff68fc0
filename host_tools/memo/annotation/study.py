"""A study in one SQLite file: raters, training, stages, and every vote, on disk before the next picture is shown."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edge.errors import DataError, KeyFileError
from host_tools.memo.annotation.rules import Gate, Progress, Rules, gate, order, training_left
from host_tools.memo.archive import PICTURE_TYPES
from host_tools.memo.classes import CLASSES, find_class
from host_tools.tables import read_table, write_csv

AGE_BANDS = ("", "18-24", "25-34", "35-44", "45-54", "55-64", "65+")
GENDERS = ("", "female", "male", "other")
SCALE = range(6)
_TABLES = """
create table if not exists study (pictures text not null, seed integer not null, rules text not null);
create table if not exists raters (
  pseudonym text primary key, salt blob not null, secret blob not null, gender text not null, age_band text not null,
  joined_at text not null, training_started text, training_done text
);
create table if not exists stages (
  pseudonym text not null references raters, stage integer not null, started_at text not null, ended_at text,
  primary key (pseudonym, stage)
);
create table if not exists votes (
  pseudonym text not null references raters, image text not null, stage integer not null, category text not null,
  degree integer not null, quality integer not null, looked_ms integer not null, screen text not null,
  voted_at text not null, primary key (pseudonym, image)
);
create table if not exists practice_votes (
  pseudonym text not null references raters, image text not null, category text not null, degree integer not null,
  quality integer not null, voted_at text not null, primary key (pseudonym, image)
);
"""

VOTE_COLUMNS = (
    *("image", "rater", "category", "degree", "quality", "stage", "looked_ms", "screen", "voted_at"),
    *("gender", "age_band"),
)
_ALL_VOTES = """
select image, pseudonym, category, degree, quality, stage, looked_ms, screen, voted_at, gender, age_band
from votes join raters using (pseudonym) order by votes.rowid
"""


@dataclass(frozen=True, slots=True)
class Vote:
    """What a rater says about a picture; `screen` holds the facts of the screen as JSON."""

    category: str
    degree: int
    quality: int
    looked_ms: int = 0
    screen: str = "{}"

    def __post_init__(self) -> None:
        if self.category not in CLASSES or self.degree not in SCALE or self.quality not in SCALE:
            raise DataError(
                "vote",
                "is outside the scale",
                expected=f"one of {', '.join(CLASSES)}, and degree and quality 0 to 5",
                got=f"{self.category}, {self.degree}, {self.quality}",
            )


class Study:
    """Open or begin a study.

    Parameters
    ----------
    path : Path
        The SQLite file.
    pictures : sequence of str
        Names of the pictures; a study that was begun keeps its own.
    practice : mapping, optional
        Picture -> class that it was made for; raters practise on them in the training. They never enter the votes.
    now : callable
        The time, with a zone.

    Raises
    ------
    DataError
        If the file is no study, was begun with other pictures or under other rules, or there are no pictures.
    """

    def __init__(
        self,
        path: Path,
        pictures: Sequence[str],
        rules: Rules,
        *,
        practice: Mapping[str, str] | None = None,
        seed: int = 0,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        if not pictures:
            raise DataError(str(path), "there are no pictures to rate")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.rules, self.now, self.practice = path, rules, now, dict(practice or {})
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")
            self._db.executescript(_TABLES)
            self.pictures, self.seed = self._begin(sorted(pictures), seed)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise DataError(str(path), f"is no study: {error}") from error

    def join(self, pseudonym: str, secret: str, gender: str = "", age_band: str = "") -> None:
        """Add a rater, or let a known one in.

        Raises
        ------
        KeyFileError
            If the pseudonym is known and the secret is another.
        DataError
            If pseudonym or secret is empty, or gender or age band is none of those offered.
        """
        name = pseudonym.strip()
        if not name or len(secret) < 4:
            raise DataError("sign in", "a pseudonym and a secret of at least four characters are needed")
        if gender not in GENDERS or age_band not in AGE_BANDS:
            raise DataError("sign in", "no such gender or age band", got=f"{gender!r}, {age_band!r}")
        with self._lock:
            row = self._one("select salt, secret from raters where pseudonym = ?", name)
            if row is None:
                salt = secrets.token_bytes(16)
                values = (name, salt, _hash(secret, salt), gender, age_band, self._time())
                self._db.execute("insert into raters values (?, ?, ?, ?, ?, ?, null, null)", values)
            elif not secrets.compare_digest(row[1], _hash(secret, row[0])):
                fix = "choose another pseudonym if that isn't you"
                raise KeyFileError(f"rater {name}", "the secret is another one", fix=fix)

    def progress(self, rater: str) -> Progress:
        """Return what a rater has done."""
        with self._lock:
            row = self._one("select training_started, training_done from raters where pseudonym = ?", rater)
            stages = self._db.execute(
                "select started_at, ended_at from stages where pseudonym = ? order by stage", (rater,)
            ).fetchall()
            n_votes = self._one("select count(*) from votes where pseudonym = ?", rater)[0]
        if row is None:
            raise DataError(f"rater {rater}", "hasn't joined this study")
        starts = [_parse(start) for start, _ in stages]
        ends = [_parse(end) for _, end in stages if end]
        return Progress(n_votes, _parse(row[0]) if row[0] else None, bool(row[1]), starts, ends)

    def gate(self, rater: str) -> Gate:
        """Say what a rater may do now."""
        return gate(self.now(), len(self.pictures), self.progress(rater), self.rules)

    def begin_training(self, rater: str) -> None:
        """Note when the training began; the first time counts."""
        with self._lock:
            self._db.execute(
                "update raters set training_started = coalesce(training_started, ?) where pseudonym = ?",
                (self._time(), rater),
            )

    def finish_training(self, rater: str) -> str:
        """End the training, or say why it can't end yet."""
        if self.next_practice(rater):
            return "there are pictures left to practise on"
        left = training_left(self.now(), self.progress(rater), self.rules)
        if left:
            return f"the training lasts another {left.total_seconds() / 60:.1f} minutes"
        with self._lock:
            self._db.execute("update raters set training_done = ? where pseudonym = ?", (self._time(), rater))
        return ""

    def next_practice(self, rater: str) -> str | None:
        """Return the next picture to practise on, or None."""
        with self._lock:
            rows = self._db.execute("select image from practice_votes where pseudonym = ?", (rater,)).fetchall()
        return next((image for image in self.practice if (image,) not in rows), None)

    def practise(self, rater: str, image: str, vote: Vote) -> str:
        """Keep a vote of the training, and return the class that the picture was made for."""
        with self._lock:
            values = (rater, image, vote.category, vote.degree, vote.quality, self._time())
            self._db.execute("insert or ignore into practice_votes values (?, ?, ?, ?, ?, ?)", values)
        return self.practice[image]

    def next_picture(self, rater: str) -> str | None:
        """Return the picture that a rater has to rate now, and begin its stage; None where the gate is closed."""
        with self._lock:
            state = self.gate(rater)
            if state.kind != "rate":
                return None
            self._db.execute("insert or ignore into stages values (?, ?, ?, null)", (rater, state.stage, self._time()))
            voted = {row[0] for row in self._db.execute("select image from votes where pseudonym = ?", (rater,))}
        sequence = (self.pictures[i] for i in order(len(self.pictures), self.seed, rater))
        return next(image for image in sequence if image not in voted)

    def vote(self, rater: str, image: str, vote: Vote) -> bool:
        """Keep a vote; it is on disk when this returns. False if the rater voted on this picture before.

        Raises
        ------
        DataError
            If it isn't this picture's turn.
        """
        with self._lock:
            if self._one("select 1 from votes where pseudonym = ? and image = ?", rater, image):
                return False
            if image != self.next_picture(rater):
                raise DataError(f"vote of {rater}", f"it isn't the turn of {image}")
            state = self.gate(rater)
            values = (rater, image, state.stage, vote.category, vote.degree, vote.quality, vote.looked_ms, vote.screen)
            self._db.execute("begin")
            self._db.execute("insert into votes values (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, self._time()))
            if self._stage_is_full(rater, state.stage):
                ended = "update stages set ended_at = ? where pseudonym = ? and stage = ?"
                self._db.execute(ended, (self._time(), rater, state.stage))
            self._db.execute("commit")
        return True

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _begin(self, pictures: list[str], seed: int) -> tuple[list[str], int]:
        rules = json.dumps(asdict(self.rules))
        row = self._one("select pictures, seed, rules from study")
        if row is None:
            self._db.execute("insert into study values (?, ?, ?)", (json.dumps(pictures), seed, rules))
            return pictures, seed
        if json.loads(row[0]) != pictures or row[2] != rules:
            raise DataError(
                str(self.path),
                "was begun with other pictures or under other rules",
                fix="go on with those, or begin a new study in another file",
            )
        return pictures, int(row[1])

    def _stage_is_full(self, rater: str, stage: int) -> bool:
        n = self._one("select count(*) from votes where pseudonym = ?", rater)[0]
        return n >= min(stage * self.rules.per_stage, len(self.pictures))

    def _one(self, query: str, *values: Any) -> Any:
        return self._db.execute(query, values).fetchone()

    def _time(self) -> str:
        return self.now().astimezone(timezone.utc).isoformat(timespec="milliseconds")


def list_pictures(folder: Path) -> list[str]:
    """Return the names of the pictures in a folder, relative to it.

    Raises
    ------
    DataError
        If there is no such folder, or no picture in it.
    """
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.suffix.lower() in PICTURE_TYPES)
    if not names:
        raise DataError(str(folder), "there are no pictures to rate", expected=", ".join(sorted(PICTURE_TYPES)))
    return names


def read_practice(folder: Path) -> dict[str, str]:
    """Read ``practice.csv`` (image, category) of a folder of pictures to practise on.

    Raises
    ------
    DataError
        If a picture is missing or a category unknown; the row is named.
    """
    table = read_table(folder / "practice.csv")
    practice = {}
    for i, (image, category) in enumerate(zip(table.text("image"), table.text("category"), strict=True), start=1):
        if not (folder / image).is_file():
            raise DataError(f"{table.path}, row {i}", f"there is no picture {image!r}")
        if not find_class(category):
            raise DataError(f"{table.path}, row {i}", f"unknown emotion {category!r}", expected=", ".join(CLASSES))
        practice[image] = find_class(category)
    return practice


def export_votes(path: Path, out: Path) -> int:
    """Write all votes of a study as a CSV that `mos` reads; return how many.

    Raises
    ------
    DataError
        If the file is no study.
    """
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = [dict(zip(VOTE_COLUMNS, row, strict=True)) for row in db.execute(_ALL_VOTES)]
    except sqlite3.DatabaseError as error:
        raise DataError(str(path), f"is no study: {error}") from error
    finally:
        db.close()
    write_csv(out, rows, VOTE_COLUMNS)
    return len(rows)


def _hash(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1)


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text)
