from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from edge.errors import DataError, KeyFileError
from host_tools.memo.annotation.rules import Rules
from host_tools.memo.annotation.study import Study, Vote, export_votes, list_pictures, read_practice
from host_tools.memo.ratings import read_ratings

RULES = Rules(per_stage=2, break_min=10, training_min=5)
PICTURES = ["a.png", "b.png", "c.png"]


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def begin(tmp_path: Path, clock: _Clock) -> Iterator[Callable[..., Study]]:
    opened: list[Study] = []

    def start(pictures: list[str] = PICTURES, rules: Rules = RULES) -> Study:
        opened.append(Study(tmp_path / "study.sqlite", pictures, rules, now=clock))
        return opened[-1]

    yield start
    for study in opened:
        study.close()


def _trained(study: Study, clock: _Clock, rater: str = "anna") -> Study:
    study.join(rater, "secret")
    study.begin_training(rater)
    clock.forward(5)
    assert study.finish_training(rater) == ""
    return study


def _rate(study: Study, rater: str = "anna") -> str:
    image = study.next_picture(rater)
    assert image
    assert study.vote(rater, image, Vote("HAP", 3, 4, 1200, '{"width":1920}'))
    return image


def test_training_cannot_be_cut_short(begin: Callable, clock: _Clock) -> None:
    study = begin()
    study.join("anna", "secret")
    study.begin_training("anna")
    clock.forward(4)
    study.begin_training("anna")  # a reload doesn't begin it anew
    assert study.finish_training("anna") == "the training lasts another 1.0 minutes"
    clock.forward(1)
    assert study.finish_training("anna") == ""
    assert study.gate("anna").kind == "rate"


def test_practice_comes_before_the_end_of_the_training_and_stays_out_of_the_votes(
    tmp_path: Path, clock: _Clock
) -> None:
    study = Study(tmp_path / "s.sqlite", PICTURES, RULES, practice={"x.png": "WOR", "y.png": "HAP"}, now=clock)
    study.join("anna", "secret")
    study.begin_training("anna")
    clock.forward(5)
    assert study.finish_training("anna") == "there are pictures left to practise on"
    assert study.next_practice("anna") == "x.png"
    assert study.practise("anna", "x.png", Vote("SAD", 1, 1)) == "WOR"
    assert study.practise("anna", "y.png", Vote("HAP", 1, 1)) == "HAP"
    assert study.next_practice("anna") is None
    assert study.finish_training("anna") == ""
    assert export_votes(study.path, tmp_path / "v.csv") == 0
    study.close()


@pytest.mark.parametrize(
    ("row", "message"),
    [("no.png,HAP", "row 1: there is no picture 'no.png'"), ("x.png,joyless", "row 1: unknown emotion 'joyless'")],
    ids=["picture", "emotion"],
)
def test_a_practice_table_that_is_wrong(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "x.png").touch()
    (tmp_path / "practice.csv").write_text(f"image,category\n{row}\n")
    with pytest.raises(DataError, match=message):
        read_practice(tmp_path)


def test_stages_breaks_and_the_end(begin: Callable, clock: _Clock) -> None:
    study = _trained(begin(), clock)
    seen = [_rate(study), _rate(study)]
    assert study.next_picture("anna") is None
    assert study.gate("anna").kind == "wait"
    clock.forward(10)
    seen.append(_rate(study))
    assert sorted(seen) == PICTURES
    assert study.gate("anna").kind == "done"


def test_it_goes_on_where_it_was_left(begin: Callable, clock: _Clock) -> None:
    first = _trained(begin(), clock)
    rated = _rate(first)
    expected = first.next_picture("anna")
    again = begin()
    assert again.next_picture("anna") == expected != rated


def test_a_vote_counts_once_and_in_its_turn(begin: Callable, clock: _Clock) -> None:
    study = _trained(begin(), clock)
    image = _rate(study)
    assert not study.vote("anna", image, Vote("SAD", 0, 0))
    later = next(p for p in PICTURES if p not in (image, study.next_picture("anna")))
    with pytest.raises(DataError, match="it isn't the turn of"):
        study.vote("anna", later, Vote("SAD", 0, 0))


@pytest.mark.parametrize(
    ("category", "degree", "quality"),
    [("FEA", 1, 1), ("HAP", 6, 1), ("HAP", 1, -1)],
    ids=["class", "degree", "quality"],
)
def test_votes_outside_the_scale(category: str, degree: int, quality: int) -> None:
    with pytest.raises(DataError, match="is outside the scale"):
        Vote(category, degree, quality)


def test_a_pseudonym_is_kept_by_its_secret(begin: Callable) -> None:
    study = begin()
    study.join("anna", "secret", "female", "25-34")
    study.join("anna", "secret")
    with pytest.raises(KeyFileError, match="the secret is another one"):
        study.join("anna", "sicret")
    with pytest.raises(DataError, match="at least four characters"):
        study.join("ben", "abc")
    assert b"secret" not in Path(study.path).read_bytes()


def test_another_study_in_the_same_file_is_refused(begin: Callable) -> None:
    begin()
    with pytest.raises(DataError, match="was begun with other pictures"):
        begin(["a.png"])
    with pytest.raises(DataError, match="other rules"):
        begin(rules=Rules(per_stage=3))


def test_the_export_is_what_mos_reads(begin: Callable, clock: _Clock, tmp_path: Path) -> None:
    study = begin()
    for rater in ("anna", "ben"):
        _trained(study, clock, rater)
        _rate(study, rater)
        _rate(study, rater)
    assert export_votes(study.path, tmp_path / "votes.csv") == 4
    rows = list(csv.DictReader((tmp_path / "votes.csv").read_text().splitlines()))
    assert json.loads(rows[0]["screen"]) == {"width": 1920}
    assert (rows[0]["rater"], rows[0]["looked_ms"], rows[0]["stage"]) == ("anna", "1200", "1")
    ratings = read_ratings(tmp_path / "votes.csv")
    assert sorted(map(str, ratings.raters)) == ["anna", "ben"]
    assert set(ratings.scores) == {"degree", "quality"}
    assert ratings.labels == ["HAP"]


def test_a_folder_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no pictures to rate"):
        list_pictures(tmp_path)


def test_a_file_that_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("a text that is long enough to be no database at all " * 20)
    with pytest.raises(DataError, match="is no study"):
        Study(tmp_path / "s.sqlite", PICTURES, RULES)
    with pytest.raises(DataError, match="is no study"):
        export_votes(tmp_path / "s.sqlite", tmp_path / "v.csv")
