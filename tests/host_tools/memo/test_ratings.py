from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.errors import DataError
from host_tools.memo.ratings import read_ratings

LONG = "image,rater,category,degree,quality\n"


def _write(folder: Path, text: str) -> Path:
    path = folder / "votes.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "images", "raters"),
    [
        ("1,2\n3,4\n", [0, 1], [0, 1]),
        ("picture,anna,ben\np1,1,2\np2,3,4\n", ["p1", "p2"], ["anna", "ben"]),
        ("\ufeffimage;7;9\np1;1;2\np2;3;4\n", ["p1", "p2"], ["7", "9"]),
        ("p1\t1\t2\np2\t3\t4\n", ["p1", "p2"], [0, 1]),
        (",7,9\np1,1,2\np2,3,4\n", ["p1", "p2"], ["7", "9"]),
    ],
    ids=["bare", "header", "byte-order-mark-semicolons", "ids-without-header-tabs", "empty-corner"],
)
def test_matrices(tmp_path: Path, text: str, images: list, raters: list) -> None:
    ratings = read_ratings(_write(tmp_path, text))
    assert ratings.images == images
    assert ratings.raters == raters
    assert ratings.scores["score"].tolist() == [[1, 2], [3, 4]]


def test_decimal_commas_of_a_matrix(tmp_path: Path) -> None:
    ratings = read_ratings(_write(tmp_path, "p1;1,5;2\np2;3;4,25\n"))
    assert ratings.scores["score"].tolist() == [[1.5, 2], [3, 4.25]]
    assert not ratings.remarks.counts


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        ("a,r1,HAP,7,3\na,r2,HAP,3,3\n", "1 degree scores outside 0 to 5, left out (first: 7)"),
        ("a,r1,HAP,3,-1\na,r2,HAP,3,3\n", "1 quality scores outside 0 to 5, left out (first: -1)"),
        ("a,r1,JOY?,3,3\na,r2,HAP,3,3\n", "1 category votes with an unknown emotion code, left out (first: JOY?)"),
        ("a,r1,HAP,3,x\na,r2,HAP,3,3\n", "1 quality scores that are no number, left out (first: x)"),
        ("a,r1,HAP,3,inf\na,r2,HAP,3,NA\n", "1 quality scores that are no number, left out (first: inf)"),
        (
            "a,r1,HAP,3,3\na,r1,HAP,3,3\n",
            "1 duplicate votes of category and degree and quality; the last one counts (first: a by r1)",
        ),
    ],
    ids=["above", "below", "unknown-code", "no-number", "infinite", "duplicate"],
)
def test_what_is_odd_is_counted(tmp_path: Path, lines: str, remark: str) -> None:
    assert remark in read_ratings(_write(tmp_path, LONG + lines)).remarks.lines()


def test_the_last_of_duplicate_votes_counts(tmp_path: Path) -> None:
    ratings = read_ratings(_write(tmp_path, LONG + "a,r1,HAP,1,1\na,r1,SAD,2,3\n"))
    assert ratings.scores["quality"].tolist() == [[3.0]]
    assert ratings.votes is not None
    assert ratings.labels[ratings.votes[0, 0]] == "SAD"


@pytest.mark.parametrize(
    ("text", "option", "labels", "n_left_out"),
    [
        ("serene,tense", "", ["serene", "tense"], 0),
        ("joy,tense,Happy", "", ["joy"], 1),
        ("joy,tense", "any", ["joy", "tense"], 0),
        ("joy,WOR,fear", "ekman6", ["joy", "fear"], 1),
        ("HAP,tense", "tense,bored", ["tense"], 1),
    ],
    ids=["none-of-memo", "memo-synonyms", "any", "named-set", "listed"],
)
def test_label_sets(tmp_path: Path, text: str, option: str, labels: list[str], n_left_out: int) -> None:
    lines = "".join(f"a,r{i},{word}\n" for i, word in enumerate(text.split(",")))
    ratings = read_ratings(_write(tmp_path, "image,rater,category\n" + lines), labels=option)
    assert ratings.labels == labels
    assert sum(ratings.remarks.counts.values()) == n_left_out


def test_mapped_columns(tmp_path: Path) -> None:
    path = _write(tmp_path, "pic,who,joyful\na,r1,2\n")
    ratings = read_ratings(path, columns={"image": "pic", "rater": "who", "quality": "joyful"})
    assert ratings.scores["quality"].tolist() == [[2.0]]


def test_without_a_rater(tmp_path: Path) -> None:
    ratings = read_ratings(_write(tmp_path, LONG + "a,r1,HAP,1,1\na,model,SAD,5,5\n"))
    assert ratings.without(["model"]).scores["degree"].tolist() == [[1.0]]


def test_a_missing_score_is_nan(tmp_path: Path) -> None:
    assert np.isnan(read_ratings(_write(tmp_path, "1,\n3,nan\n")).scores["score"][:, 1]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (LONG, "has a header and no votes"),
        ("image,rater\na,b\n", "has no column of votes; expected one of category, degree, quality or score"),
        (LONG + "a,r1,HAP\n", "has 3 cells"),
        ("1,2\n3\n", "is no matrix: its lines differ in length"),
        ("image,a,a\np,1,2\n", "'a' occurs twice"),
        ("what,ever\nis,this\n", "holds no score"),
    ],
    ids=["empty", "blank", "no-votes", "no-dimension", "short-line", "ragged", "same-rater-twice", "words"],
)
def test_files_that_are_no_ratings(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_ratings(_write(tmp_path, text))


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such picture and rater column"):
        read_ratings(_write(tmp_path, LONG + "a,r,HAP,1,1\n"), columns={"rater": "who"})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DataError, match="can't be read"):
        read_ratings(Path("nowhere.csv"))
