from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from edge.errors import ConfigError
from host_tools.memo.settings import MemoSettings
from host_tools.settings import read_settings

ROOT = Path(__file__).parents[3]


def memo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "host_tools", "memo", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def results(small_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    done = memo(small_archive / "memo.toml", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "tables" / f"{name}.csv").read_text().splitlines()))


def test_generation_accuracy_is_that_of_the_votes_counted_anew(results: Path, small_archive: Path) -> None:
    """G_acc by a count that shares nothing with the code: majority, the prompt wins ties, rejected is an error."""
    votes: dict[str, Counter[str]] = {}
    for row in csv.DictReader((small_archive / "annotation_emo.csv").read_text().splitlines()):
        votes.setdefault(row["image"], Counter())[row["type"]] += 1
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for row in csv.DictReader((small_archive / "pictures.csv").read_text().splitlines()):
        if row["status"] == "refused":
            continue
        asked[row["model"]] += 1
        if row["status"] == "kept":
            top = max(votes[row["image"]].values())
            right[row["model"]] += votes[row["image"]][row["emotion"]] == top
    for row in _table(results, "table2_generation"):
        assert float(row["overall"]) == pytest.approx(right[row["model"]] / asked[row["model"]])
        assert int(row["n"]) == asked[row["model"]]


def test_all_tables_are_there(results: Path) -> None:
    names = {p.stem for p in (results / "tables").glob("*.csv")}
    assert {"table1_generators", "table2_generation", "table3_understanding", "degree", "anchors", "valence"} <= names
    assert {p.stem for p in (results / "tables").glob("*.tex")} == names - {"pictures"}
    document = json.loads((results / "results.json").read_text())
    assert document["schema"] == "emogaze.memo"
    assert set(document["tables"]) == names - {"pictures"}
    assert document["human"]["n_raters"] == 6
    assert document["options"]["settings"]["archive"]["expected"] == 103


def test_shares_of_each_class_sum_to_one(results: Path) -> None:
    for name in ("generation_confusion", "understanding_confusion"):
        sums: Counter[tuple[str, str]] = Counter()
        for row in _table(results, name):
            sums[row["model"], row["class"]] += float(row["share"] or "nan")  # type: ignore[assignment]
        assert list(sums.values()) == pytest.approx([1.0] * len(sums))


def test_the_page_says_what_is_published_and_what_is_measured(results: Path) -> None:
    page = (results / "report.html").read_text()
    assert "0.6759 (mPLUG-Owl3)" in page
    assert "103 pictures kept of 108 asked" in page
    assert "http" not in page.replace("http://www.w3.org", "").split("<style>")[0]


def test_everything_that_can_be_wrong_at_once_is_counted_and_the_rest_is_judged(
    small_archive: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(small_archive, tmp_path / "archive")
    pictures = sorted((folder / "images").iterdir())
    gone, image = pictures[0], pictures[1].name
    gone.unlink()
    shutil.copy(pictures[1], folder / "images" / "holiday.jpg")
    odd = [f"{image},one-value,HAP,3", f"{image},r01,SAD,2", f"{image},r02,XXX,2", f"{image},r03,SAD,9"]
    odd += [f"{p.name},three-votes,SAD,{i}" for i, p in enumerate(pictures[2:5])]
    with (folder / "annotation_emo.csv").open("a") as file:
        file.write("\n".join(odd) + "\n")
    with (folder / "answers.csv").open("a") as file:
        file.write(f"{image},她看起来很伤心,四分\n")
    done = memo(folder / "memo.toml", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    for line in (
        "103 pictures kept of 108 asked",
        f"1 missing pictures: in the index, no file (first: {gone.name})",
        "1 extra pictures: a file, not in the index, left out (first: holiday.jpg)",
        "1 category votes with an unknown emotion code, left out (first: XXX)",
        "1 degree scores outside 0 to 5, left out (first: 9)",
        "3 duplicate votes of category and degree; the last one counts",
        "2 raters gave fewer than 10 scores: one-value, three-votes",
    ):
        assert line in done.stdout
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    left_out = {(r["rater"], r["dimension"]): r["reason"] for r in document["raters"]["rejected"]}
    assert left_out["one-value", "degree"] == "gave 1 score: no standard deviation"
    answers = document["tables"]["answers"]["rows"][0]
    assert "1 duplicate answers; the last one counts" in answers["named, and remarks"]
    assert answers["ok"] + answers["refused"] == 103


def test_one_step_alone(small_archive: Path, tmp_path: Path) -> None:
    done = memo("generation", small_archive / "memo.toml", "-o", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "results.json").read_text())
    assert "103 pictures kept" in done.stderr
    names = {p.stem for p in (tmp_path / "tables").glob("*.csv")}
    assert "table2_generation" in names
    assert "table3_understanding" not in names
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[archive]\nrot = 'x'\n", "unknown field `rot`"),
        ("[scores]\nscreen_on = 'both'\n", "Invalid enum value 'both'"),
        ("nonsense", "can't be read as TOML"),
    ],
    ids=["unknown-key", "unknown-value", "no-toml"],
)
def test_settings_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "memo.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_settings(path, MemoSettings)


def test_a_model_without_a_source_of_answers_is_named(small_archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small_archive, tmp_path / "archive")
    with (folder / "memo.toml").open("a") as file:
        file.write('\n[[understanding.models]]\nname = "empty"\n')
    done = memo(folder / "memo.toml", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "model empty: says not where its answers come from" in done.stderr


def test_a_report_leaves_out_a_model_that_was_never_asked(small_archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small_archive, tmp_path / "archive")
    with (folder / "memo.toml").open("a") as file:
        file.write('\n[[understanding.models]]\nname = "later"\nprofile = "gpt-4o"\n')
    done = memo("report", folder / "memo.toml", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "later: there are no answers yet; left out" in done.stderr
    assert {row["model"] for row in _table(tmp_path / "out", "table3_understanding")} == {"made-up", "human"}
