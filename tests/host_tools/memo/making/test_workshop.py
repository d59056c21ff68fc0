from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.errors import ConfigError, DataError
from host_tools.memo.ask.profiles import Generator
from host_tools.memo.ask.server import NoAnswerError
from host_tools.memo.making.painters import Painted, ServerPainter, open_painter
from host_tools.memo.making.prompts import Prompt, make_prompts
from host_tools.memo.making.workshop import Workshop

ROOT = Path(__file__).parents[4]
PROMPTS = make_prompts(4)
PNG = b"\x89PNG\r\n\x1a\n"


class _Painter:
    """Paints the prompt's text; refuses or fails where it is told to."""

    def __init__(self, refuse: str = "", fail: str = "") -> None:
        self.asked: list[str] = []
        self._refuse, self._fail = refuse, fail

    def paint(self, prompt: str, seed: int) -> Painted:
        self.asked.append(prompt)
        if prompt == self._fail:
            raise NoAnswerError("generator g", "it is gone", 3)
        return Painted(refused="not that") if prompt == self._refuse else Painted(PNG + prompt.encode())


@pytest.fixture
def workshop(tmp_path: Path):  # type: ignore[no-untyped-def]
    opened = Workshop(tmp_path / "set")
    yield opened
    opened.close()


def _paint(workshop: Workshop, painter: _Painter, prompts: list[Prompt] = PROMPTS, **profile: object):  # type: ignore[no-untyped-def]
    return workshop.paint("g", Generator(backend="openai", model="m", **profile), prompts, lambda: painter)  # type: ignore[arg-type]


def test_pictures_are_named_by_their_content_and_indexed(workshop: Workshop) -> None:
    made = _paint(workshop, _Painter(refuse=PROMPTS[3].text))
    assert (made.painted, made.refused, made.known) == (23, 1, 0)
    files = sorted(p.name for p in workshop.pictures.iterdir())
    assert len(files) == 23
    assert not any(code in name for name in files for code in ("HAP", "SAD", "g_"))
    rows = {r["prompt"]: r for r in csv.DictReader(workshop.write_index().read_text().splitlines())}
    assert Counter(r["status"] for r in rows.values()) == {"kept": 23, "refused": 1}
    assert rows[PROMPTS[3].prompt_id]["reason"] == "not that"
    assert rows[PROMPTS[0].prompt_id]["style"] == PROMPTS[0].style


def test_what_is_painted_or_refused_is_not_asked_for_again_and_failures_are(workshop: Workshop) -> None:
    _paint(workshop, _Painter(refuse=PROMPTS[3].text, fail=PROMPTS[5].text))
    again = _Painter()
    made = _paint(workshop, again)
    assert again.asked == [PROMPTS[5].text]
    assert (made.painted, made.known) == (1, 23)
    other = _Painter()
    _paint(workshop, other, resolution="64x64")
    assert len(other.asked) == 24


def test_reviews_reject(workshop: Workshop) -> None:
    _paint(workshop, _Painter())
    first, second, *rest = workshop.to_review()
    workshop.review(first, "broken", "me")
    workshop.review(second, "keep", "me")
    assert workshop.to_review() == rest
    status = {r["image"]: (r["status"], r["reason"]) for r in workshop.index()}
    assert status[first] == ("rejected", "broken")
    assert status[second] == status[rest[0]] == ("kept", "")
    with pytest.raises(DataError, match="no such picture or verdict"):
        workshop.review(first, "ugly", "me")


def _server_painter(base_url: str, timeout_s: float = 20.0) -> ServerPainter:
    profile = Generator(backend="openai", model="m", base_url=base_url, timeout_s=timeout_s, max_attempts=3)
    return ServerPainter("g", profile, sleep=lambda seconds: None)


@pytest.mark.parametrize("trouble", ["429", "500", "hang", "malformed", "cut-body"], ids=str)
def test_a_server_that_recovers(chat_server: Callable, trouble: str) -> None:
    timeout_s = 2.0 if trouble == "hang" else 20.0
    painted = _server_painter(chat_server(f"{trouble},paint").base_url, timeout_s).paint("a face", 0)
    assert painted.picture.startswith(PNG)
    assert painted.attempts == 2


def test_a_policy_refusal_is_recorded_and_a_server_error_is_not_a_refusal(chat_server: Callable) -> None:
    refused = _server_painter(chat_server("policy").base_url).paint("a face", 0)
    assert (refused.picture, refused.attempts) == (b"", 1)
    assert "against our policy" in refused.refused
    with pytest.raises(NoAnswerError, match="server error 500"):
        _server_painter(chat_server("500").base_url).paint("a face", 0)


def test_a_generator_without_a_back_end() -> None:
    with pytest.raises(ConfigError, match="generator SD1: names no back end"):
        open_painter("SD1", Generator())


def test_from_prompts_to_an_archive_that_memo_reads(chat_server: Callable, tmp_path: Path) -> None:
    server = chat_server("paint")
    profile = {"backend": "openai", "model": "m", "base_url": server.base_url}
    lines = "".join(f"{k} = {json.dumps(v)}\n" for k, v in profile.items())
    (tmp_path / "profiles.toml").write_text(f"[generators.here]\n{lines}")

    def memo(*arguments: object) -> str:
        command = [sys.executable, "-m", "host_tools", "memo", *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    memo("prompts", "-o", tmp_path / "prompts.csv", "--per-emotion", 2)
    made = memo(
        "generate", tmp_path / "prompts.csv", "-o", tmp_path, "-g", "here", "--profiles", tmp_path / "profiles.toml"
    )
    assert "here: 12 painted, 0 refused, 0 known already" in made
    images = [r["image"] for r in csv.DictReader((tmp_path / "pictures.csv").read_text().splitlines())]
    votes = "".join(f"{i},r{r},HAP,{r},{r}\n" for i in images for r in (1, 2, 3))
    (tmp_path / "votes.csv").write_text("image,rater,category,degree,quality\n" + votes)
    (tmp_path / "memo.toml").write_text(
        '[archive]\npictures = "pictures"\nindex = "pictures.csv"\nemotion = "votes.csv"\nquality = "votes.csv"\n'
        "asked = 12\nexpected = 12\nasked_per_cell = 2\n"
    )
    memo("generation", tmp_path / "memo.toml", "-o", tmp_path / "out")
    (row,) = csv.DictReader((tmp_path / "out" / "tables" / "table2_generation.csv").read_text().splitlines())
    assert (row["model"], float(row["HAP"]), float(row["SAD"])) == ("here", 1.0, 0.0)
