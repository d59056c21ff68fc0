from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "host_tools", "mos", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_triples(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    votes = [("a", "r1", "HAP", 4, 2), ("b", "r1", "SAD", 2, 4), ("a", "r2", "SAD", 5, 1), ("b", "r2", "SAD", 3, 2)]
    path.write_text("image,rater,category,degree,quality\n" + "".join(",".join(map(str, v)) + "\n" for v in votes))
    out = run(str(path), "--json")
    assert out.returncode == 0, out.stderr
    answer = json.loads(out.stdout)
    first, second = answer["images"]
    assert (first["id"], first["category"], first["tie"], first["n"]) == ("a", "SAD", True, 2)  # degree 5 beats 4
    assert (second["category"], second["tie"]) == ("SAD", False)
    # Both raters: z = +1/sqrt(2) for a's degree and b's quality, -1/sqrt(2) for the other.
    assert first["mos_degree"] == pytest.approx(5 * (3 + 0.5**0.5) / 6)
    assert first["mos_quality"] == pytest.approx(5 * (3 - 0.5**0.5) / 6)
    assert first["ci95"]["degree"] == pytest.approx([first["mos_degree"]] * 2)
    assert set(answer["agreement"]) == {"fleiss", "krippendorff", "krippendorff_degree", "krippendorff_quality"}
    assert answer["rejected"] == []
    assert answer["options"] == {
        "ratings": str(path),
        "screen_on": "z",
        "std": "population",
        "rescale": "bt500",
        "ties": "prompt",
        "scale": "",
        "labels": "",
        "columns": "",
        "model_rater": [],
    }


def test_a_model_as_rater_is_compared_and_stays_out_of_the_scores(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    people = "a,r1,HAP,4\nb,r1,SAD,2\na,r2,HAP,5\nb,r2,SAD,3\n"
    path.write_text("image,rater,category,degree\n" + people + "a,gpt,HAP,0\nb,gpt,WOR,5\n")
    alone = tmp_path / "people.csv"
    alone.write_text("image,rater,category,degree\n" + people)
    answer = json.loads(run(str(path), "--json", "--model-rater", "gpt").stdout)
    assert answer["images"] == json.loads(run(str(alone), "--json").stdout)["images"]
    (row,) = answer["model_raters"]
    assert (row["rater"], row["n"], row["accuracy"]) == ("gpt", 2, 0.5)
    assert "there is no rater 'gtp'" in run(str(path), "--model-rater", "gtp").stderr


def test_matrix(data: Path) -> None:
    out = run(str(data / "scores" / "NFLX_dataset_public_raw_scores.csv"), "--json", "--screen-on", "raw")
    answer = json.loads(out.stdout)
    (gone,) = answer["rejected"]
    assert (gone["rater"], gone["P"], gone["Q"], gone["n"]) == (2, 2, 2, 79)
    assert answer["images"][0]["mos"] == pytest.approx(1.32)
    assert answer["options"]["std"] == "population"


def test_one_line_for_what_is_wrong(tmp_path: Path) -> None:
    out = run(str(tmp_path / "none.csv"))
    assert out.returncode == 1
    assert out.stderr.startswith("python -m host_tools: ")
    assert out.stderr.count("\n") == 1
