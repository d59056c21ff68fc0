"""One model asked about all pictures: first the class, then the degree where the class was right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from edge.commands.base import progress
from edge.errors import DataError, ModelError
from host_tools.memo.ask.profiles import Multimodal
from host_tools.memo.ask.questions import Questions, Step
from host_tools.memo.ask.server import NoAnswerError
from host_tools.memo.ask.store import AnswerStore, Ask, Reply
from host_tools.memo.classes import CLASSES
from host_tools.memo.parser import parse_category

GIVE_UP_AFTER = 20  #: questions without an answer in a row: the server is gone, and each further one costs a time-out


class Asker(Protocol):
    """Whoever answers a question about a picture."""

    def ask(self, system: str, question: str, picture: bytes) -> Reply: ...


@dataclass(frozen=True)
class Subject:
    """A picture to ask about: its name, its file, and the raters' class (index into `CLASSES`, -1 = none)."""

    image: str
    path: Path
    category: int


@dataclass
class Survey:
    """What came back. `texts`: picture -> (class as answered, degree as answered or empty)."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    asked: int = 0
    cached: int = 0
    unanswered: dict[str, str] = field(default_factory=dict)
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    cost: float | None = 0.0

    def lines(self, name: str) -> list[str]:
        """Say in a line or two what was asked and what it cost."""
        cost = "cost unknown" if self.cost is None else f"cost {self.cost:.4f}"
        tokens = "tokens unknown" if self.tokens_in is None else f"{self.tokens_in} tokens in, {self.tokens_out} out"
        lines = [f"{name}: {self.asked} asked, {self.cached} known already; {tokens}, {cost}"]
        if self.unanswered:
            image, error = next(iter(self.unanswered.items()))
            lines.append(f"{name}: {len(self.unanswered)} without an answer (first: {image}: {error})")
        return lines


def survey(
    name: str,
    profile: Multimodal,
    questions: Questions,
    subjects: Sequence[Subject],
    store: AnswerStore,
    make_asker: Callable[[], Asker] | None,
) -> Survey:
    """Ask about each picture what the store doesn't know yet.

    Parameters
    ----------
    make_asker : callable or None
        Called once, at the first question that has to be asked; None = ask nobody, take what the store knows.

    Raises
    ------
    ConfigError
        If the key is missing or refused, or the model isn't there; answers so far stay in the store.
    ModelError
        After `GIVE_UP_AFTER` questions in a row without an answer.
    """
    done = Survey()
    desk = _Desk(name, profile, questions, store, make_asker, done)
    coarse = dict(desk.run("coarse", subjects, lambda _: questions.coarse()))
    right = [s for s in subjects if s.image in coarse and _is_right(coarse[s.image], s.category)]
    fine = dict(desk.run("fine", right, lambda s: questions.fine(CLASSES[s.category])))
    done.texts = {image: (text, fine.get(image, "")) for image, text in coarse.items()}
    return done


@dataclass
class _Desk:
    """Takes questions, looks them up, and has the rest answered by `concurrency` threads."""

    name: str
    profile: Multimodal
    questions: Questions
    store: AnswerStore
    make_asker: Callable[[], Asker] | None
    done: Survey
    asker: Asker | None = None
    failed_in_a_row: int = 0

    def run(
        self, step: Step, subjects: Sequence[Subject], question: Callable[[Subject], str]
    ) -> Iterator[tuple[str, str]]:
        """Give (picture, answer) for each subject that has an answer; in whatever order they come."""
        unknown: dict[str, tuple[Ask, Path]] = {}  # a picture that is there twice is asked about once
        namesakes: dict[str, list[str]] = {}
        for subject in subjects:
            ask = self._ask_for(step, subject, question(subject))
            if reply := self.store.find(ask):
                self.done.cached += 1
                yield subject.image, reply.text
            else:
                unknown.setdefault(ask.key, (ask, subject.path))
                namesakes.setdefault(ask.key, []).append(subject.image)
        if not unknown or self.make_asker is None:
            return
        self.asker = self.asker or self.make_asker()
        with ThreadPoolExecutor(self.profile.concurrency) as pool:
            jobs = ((ask, pool.submit(self._answer, ask, path)) for ask, path in unknown.values())
            finished = _as_they_come(jobs, 2 * self.profile.concurrency)
            for ask, future in progress(finished, f"{self.name}: {step}", len(unknown)):
                text = self._collect(ask, future)
                for image in namesakes[ask.key] if text is not None else ():
                    yield image, text or ""

    def _ask_for(self, step: Step, subject: Subject, question: str) -> Ask:
        p = self.profile
        parameters = f"{p.model} {p.max_px} {p.picture_format} {p.max_tokens} {p.temperature} {self.questions.system}"
        sha256 = hashlib.sha256(subject.path.read_bytes()).hexdigest()
        return Ask(self.name, self.questions.name, step, subject.image, sha256, question, parameters)

    def _answer(self, ask: Ask, path: Path) -> Reply:
        """Ask, and keep the answer before anybody else hears of it."""
        if self.asker is None:
            raise RuntimeError("nobody is there to ask")
        picture = encode_picture(path, self.profile.max_px, self.profile.picture_format)
        reply = self.asker.ask(self.questions.system, ask.question, picture)
        self.store.add(ask, reply, _now())
        return reply

    def _collect(self, ask: Ask, future: Future[Reply]) -> str | None:
        done = self.done
        done.asked += 1
        try:
            reply = future.result()
        except (NoAnswerError, DataError) as error:
            self.store.add_failure(ask, str(error), getattr(error, "attempts", 0), _now())
            done.unanswered[ask.image] = error.problem
            self.failed_in_a_row += 1
            if self.failed_in_a_row >= GIVE_UP_AFTER:
                raise ModelError(
                    f"model {self.name}",
                    f"{self.failed_in_a_row} questions in a row got no answer: {error.problem}",
                    fix="look at the server; what is answered so far is kept, run again to go on",
                ) from error
            return None
        self.failed_in_a_row = 0
        done.tokens_in, done.tokens_out = (
            _plus(done.tokens_in, reply.tokens_in),
            _plus(done.tokens_out, reply.tokens_out),
        )
        done.cost = _plus(done.cost, reply.cost)
        return reply.text


def encode_picture(path: Path, max_px: int, kind: str) -> bytes:
    """Read a picture, shrink it to `max_px` on its longest side if it is larger, and encode it.

    Raises
    ------
    DataError
        If it can't be read.
    """
    import cv2

    image: Any = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if image is None:
        raise DataError(str(path), "can't be read as a picture")
    scale = max_px / max(image.shape[:2])
    if scale < 1:
        size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg" if kind == "jpeg" else ".png", image)[1].tobytes()


def _as_they_come(jobs: Iterable[tuple[Ask, Future[Reply]]], ahead: int) -> Iterator[tuple[Ask, Future[Reply]]]:
    """Submit a few jobs ahead, and give each as it ends; leaving early cancels what hasn't begun."""
    source = iter(jobs)
    waiting = {future: ask for ask, future in islice(source, ahead)}
    try:
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                ask = waiting.pop(future)
                waiting |= {f: a for a, f in islice(source, 1)}
                yield ask, future
    finally:
        for future in waiting:
            future.cancel()


def _is_right(text: str, category: int) -> bool:
    return category >= 0 and parse_category(text).code == CLASSES[category]


def _plus(total: Any, more: Any) -> Any:
    return None if total is None or more is None else total + more


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
