from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from edge.errors import ConfigError
from host_tools.combined import SameModel, match_models

ROOT = Path(__file__).parents[2]


def test_models_are_matched_by_name_and_by_the_configuration() -> None:
    same = [SameModel(name="ours", memo="a", cawf1="probe")]
    assert match_models(same, ["a", "b", "c"], ["probe", "b", "sdk"]) == [
        ("ours", "a", "probe"),
        ("b", "b", "b"),
        ("c", "c", ""),
        ("sdk", "", "sdk"),
    ]


def test_a_pairing_with_a_model_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="model ours: there is no 'x'; expected one of probe"):
        match_models([SameModel(name="ours", memo="a", cawf1="x")], ["a"], ["probe"])


def _run(*arguments: object) -> str:
    command = [sys.executable, "-m", "host_tools", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_both_benchmarks_in_one_run(artefacts: Path, tmp_path: Path) -> None:
    _run("memo", "synthetic", "-o", tmp_path / "faces", "--models", 2, "--prompts", 4, "--raters", 5, "--missing", 2)
    _run("example-dataset", "-o", tmp_path / "scenes", "--pictures", 3)
    evaluation = tmp_path / "scenes" / "evaluate.toml"
    evaluation.write_text(evaluation.read_text().partition("[sweeps]")[0])  # they take minutes, and aren't asked for
    system = evaluation.read_text().partition('name = "')[2].partition('"')[0]
    (tmp_path / "all.toml").write_text(
        'memo = "faces/memo.toml"\ncawf1 = "scenes/evaluate.toml"\n'
        f'[[models]]\nname = "ours"\nmemo = "made-up"\ncawf1 = "{system}"\n'
    )
    _run("all", tmp_path / "all.toml", "-o", tmp_path / "out")
    for name in ("report.html", "memo/report.html", "cawf1/report.html", "tables/combined.tex"):
        assert (tmp_path / "out" / name).is_file(), name
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "combined.csv").read_text().splitlines()))
    ours = next(r for r in rows if r["model"] == "ours")
    memo = json.loads((tmp_path / "out" / "memo" / "results.json").read_text())
    cawf1 = json.loads((tmp_path / "out" / "cawf1" / "results.json").read_text())
    assert float(ours["MEMO overall"]) == memo["tables"]["table3_understanding"]["rows"][0]["overall"]
    body = cawf1["systems"][system]["sources"][ours["attention"]]
    assert float(ours["macro-F1"]) == body["classification"]["f1_macro"]["value"]
