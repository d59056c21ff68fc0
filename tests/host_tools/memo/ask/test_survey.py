from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.errors import DataError, ModelError
from host_tools.memo.ask.profiles import Multimodal
from host_tools.memo.ask.questions import load_questions
from host_tools.memo.ask.server import NoAnswerError
from host_tools.memo.ask.store import AnswerStore, Reply
from host_tools.memo.ask.survey import GIVE_UP_AFTER, Subject, Survey, encode_picture, survey
from host_tools.memo.classes import CLASSES

ROOT = Path(__file__).parents[4]
QUESTIONS = load_questions("memo-1")
HAP = CLASSES.index("HAP")


class _Asker:
    """Answers "happy" and 3; refuses service for pictures whose turn is in `broken`."""

    def __init__(self, broken: frozenset[int] = frozenset()) -> None:
        self.asked: list[str] = []
        self._broken, self._lock = broken, threading.Lock()

    def ask(self, system: str, question: str, picture: bytes) -> Reply:
        with self._lock:
            self.asked.append(question)
            if len(self.asked) in self._broken:
                raise NoAnswerError("model t", "it is gone", 3)
        return Reply("3" if "scale" in question else "happy", "stop", 10, 1, 0.5)


@pytest.fixture
def subjects(tmp_path: Path) -> list[Subject]:
    """30 pictures, every third of them happy."""
    made = []
    for i in range(30):
        path = tmp_path / f"p{i}.png"
        cv2.imwrite(str(path), np.full((8, 8, 3), i * 5, np.uint8))
        made.append(Subject(path.name, path, HAP if i % 3 == 0 else 1))
    return made


def _survey(subjects: list[Subject], store: Path, asker: _Asker | None, **changes: object) -> Survey:
    profile = Multimodal(**{"model": "m", "base_url": "", "concurrency": 3} | changes)  # type: ignore[arg-type]
    answers = AnswerStore(store)
    try:
        return survey("t", profile, QUESTIONS, subjects, answers, (lambda: asker) if asker else None)
    finally:
        answers.close()


def test_the_degree_is_asked_where_the_class_was_right(subjects: list[Subject], tmp_path: Path) -> None:
    asker = _Asker()
    done = _survey(subjects, tmp_path / "s.sqlite", asker)
    assert Counter("scale" in q for q in asker.asked) == {False: 30, True: 10}
    assert done.texts["p0.png"] == ("happy", "3")
    assert done.texts["p1.png"] == ("happy", "")
    assert (done.asked, done.cached, done.tokens_in, done.cost) == (40, 0, 400, 20.0)


def test_a_rerun_costs_nothing(subjects: list[Subject], tmp_path: Path) -> None:
    first = _survey(subjects, tmp_path / "s.sqlite", _Asker())
    again = _Asker()
    second = _survey(subjects, tmp_path / "s.sqlite", again)
    assert again.asked == []
    assert (second.asked, second.cached, second.cost) == (0, 40, 0.0)
    assert second.texts == first.texts
    assert _survey(subjects, tmp_path / "s.sqlite", None).texts == first.texts


@pytest.mark.parametrize(
    "change", [{"model": "n"}, {"temperature": 1.0}, {"max_px": 64}], ids=["model", "temperature", "picture-size"]
)
def test_what_the_answer_depends_on_is_asked_anew(subjects: list[Subject], tmp_path: Path, change: dict) -> None:
    _survey(subjects[:3], tmp_path / "s.sqlite", _Asker())
    asker = _Asker()
    _survey(subjects[:3], tmp_path / "s.sqlite", asker, **change)
    assert len(asker.asked) == 4


def test_a_renamed_picture_is_known_and_a_changed_one_is_not(subjects: list[Subject], tmp_path: Path) -> None:
    _survey(subjects[:1], tmp_path / "s.sqlite", _Asker())
    moved = shutil.copy(subjects[0].path, tmp_path / "other.png")
    assert _survey([Subject("other.png", Path(moved), HAP)], tmp_path / "s.sqlite", None).texts
    cv2.imwrite(str(subjects[0].path), np.zeros((9, 9, 3), np.uint8))
    assert _survey(subjects[:1], tmp_path / "s.sqlite", None).texts == {}


def test_a_picture_that_is_there_twice_is_asked_about_once(subjects: list[Subject], tmp_path: Path) -> None:
    twin = Path(shutil.copy(subjects[0].path, tmp_path / "twin.png"))
    asker = _Asker()
    done = _survey([subjects[0], Subject("twin.png", twin, HAP)], tmp_path / "s.sqlite", asker)
    assert len(asker.asked) == 2
    assert done.texts == {"p0.png": ("happy", "3"), "twin.png": ("happy", "3")}


def test_what_got_no_answer_is_counted_and_asked_again_next_time(subjects: list[Subject], tmp_path: Path) -> None:
    done = _survey(subjects, tmp_path / "s.sqlite", _Asker(frozenset({2, 5})), concurrency=1)
    assert list(done.unanswered.values()) == ["it is gone"] * 2
    assert len(done.texts) == 28
    assert "2 without an answer" in done.lines("t")[1]
    asker = _Asker()
    assert len(_survey(subjects, tmp_path / "s.sqlite", asker).texts) == 30
    assert Counter("scale" in q for q in asker.asked)[False] == 2


def test_a_picture_that_cannot_be_read_is_counted(subjects: list[Subject], tmp_path: Path) -> None:
    subjects[1].path.write_bytes(b"not a picture")
    done = _survey(subjects[:3], tmp_path / "s.sqlite", _Asker())
    assert done.unanswered == {"p1.png": "can't be read as a picture"}


def test_a_server_that_is_gone_ends_the_run(subjects: list[Subject], tmp_path: Path) -> None:
    asker = _Asker(frozenset(range(5, 100)))
    with pytest.raises(ModelError, match=f"{GIVE_UP_AFTER} questions in a row got no answer: it is gone"):
        _survey(subjects, tmp_path / "s.sqlite", asker, concurrency=1)
    assert len(_survey(subjects, tmp_path / "s.sqlite", None).texts) == 4


def test_the_ledger_knows_what_was_asked(subjects: list[Subject], tmp_path: Path) -> None:
    _survey(subjects, tmp_path / "s.sqlite", _Asker(frozenset({1})), concurrency=1)
    store = AnswerStore(tmp_path / "s.sqlite")
    coarse, fine = store.ledger()
    store.close()
    assert (coarse["step"], coarse["answers"], coarse["unanswered"], coarse["tokens_in"]) == ("coarse", 29, 1, 290)
    assert (fine["step"], fine["answers"], fine["cost"]) == ("fine", 9, 4.5)


def test_pictures_are_shrunk_and_never_enlarged(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "p.png"), np.zeros((50, 200, 3), np.uint8))
    for limit, expected in ((100, (25, 100, 3)), (400, (50, 200, 3))):
        content = encode_picture(tmp_path / "p.png", limit, "png")
        assert cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR).shape == expected


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("this is a text, and long enough to be taken for a broken database " * 20)
    with pytest.raises(DataError, match="is no store of answers"):
        AnswerStore(tmp_path / "s.sqlite")


def _configure(archive: Path, folder: Path, base_url: str, **profile: object) -> Path:
    """Copy the archive, with one model behind a server in its configuration, to be asked about 36 pictures."""
    copy = shutil.copytree(archive, folder)
    settings = {"model": "m", "base_url": base_url, "concurrency": 2, **profile}
    lines = "".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items())
    (copy / "profiles.toml").write_text(f"[multimodal.here]\n{lines}")
    text = (copy / "memo.toml").read_text().partition("[[understanding.models]]")[0]
    text += '[statistics]\nn_resamples = 100\n\n[understanding]\nprofiles = "profiles.toml"\nlimit = 36\n\n'
    text += '[[understanding.models]]\nname = "asked"\nprofile = "here"\n'
    (copy / "memo.toml").write_text(text)
    return copy / "memo.toml"


def _memo(step: str, config: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "host_tools", "memo", step, str(config), "-o", str(out)]


def _run(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_memo("understanding", config, out), cwd=ROOT, capture_output=True, text=True, check=False)


def test_killed_in_the_middle_and_run_again(chat_server: Callable, small_archive: Path, tmp_path: Path) -> None:
    server = chat_server("slow")
    config = _configure(small_archive, tmp_path / "archive", server.base_url)
    first = subprocess.Popen(_memo("understanding", config, tmp_path / "out"), cwd=ROOT, stderr=subprocess.DEVNULL)
    while len(server.requests()) < 12:
        assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    with sqlite3.connect(config.parent / "answers.sqlite") as db:
        kept = db.execute("select count(*) from answers").fetchone()[0]
    db.close()
    assert kept >= 12 - 2 - 1  # those under way when it was killed, and one that was just being written
    again = _run(config, tmp_path / "out")
    assert again.returncode == 0, again.stderr
    asked = Counter(r["key"] for r in server.requests())
    assert sum(n - 1 for n in asked.values()) <= 3
    assert len({r["key"] for r in server.requests() if "scale" not in r["question"]}) == 36
    (row,) = json.loads((tmp_path / "out" / "results.json").read_text())["tables"]["table3_understanding"]["rows"][:1]
    assert row["HAP"] == 1.0
    assert row["SAD"] == 0.0


def test_a_missing_key_is_said_before_anybody_is_asked(
    chat_server: Callable, small_archive: Path, tmp_path: Path
) -> None:
    server = chat_server("ok")
    config = _configure(small_archive, tmp_path / "archive", server.base_url, api_key_env="NO_SUCH_KEY")
    done = _run(config, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr == (
        "python -m host_tools: NO_SUCH_KEY: the API key is missing; "
        "export it, or take model asked out of the configuration\n"
    )
    assert server.requests() == []


def test_refusals_are_wrong_and_counted(chat_server: Callable, small_archive: Path, tmp_path: Path) -> None:
    config = _configure(small_archive, tmp_path / "archive", chat_server("refuse").base_url)
    done = _run(config, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    tables = json.loads((tmp_path / "out" / "results.json").read_text())["tables"]
    assert tables["answers"]["rows"][0]["refused"] == 36
    assert tables["table3_understanding"]["rows"][0]["overall"] == 0.0
    assert tables["table3_understanding"]["rows"][0]["unparsed"] == 36
