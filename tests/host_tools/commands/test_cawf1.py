"""The contract of `python -m host_tools cawf1`, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edge.errors import DataError
from host_tools.__main__ import app

ROWS = [
    "1,a,happy,happy,0.8",
    "2,a,happy,sad,0.2",
    "3,b,sad,sad,0.5",
    "4,b,sad,sad,0.5",
    "5,c,sad,bored,1.0",
    "6,c,happy,happy,",
]


def run(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["cawf1", str(path), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def as_json(path: Path, *options: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(path, *options, "--json"))
    return document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "samples.csv"
    file.write_text("\n".join(["sample_id,participant,true,pred,fcc", *ROWS]))
    return file


def test_contract(path: Path) -> None:
    out = as_json(path, "--labels", "happy,sad")
    assert (out["schema"], out["version"], out["n"], out["n_without_fcc"]) == ("emogaze.cawf1", 1, 6, 1)
    assert out["applies"] == "not needed"
    assert set(out["scores"]) == {"cawf1_literal", "cawf1_classwise", "cawf1_macro", "cawf1_hard", "cawf1_soft"}
    assert out["scores"]["cawf1_hard"]["value"] == pytest.approx(1.8 / 3.0)
    assert out["scores"]["cawf1_hard"]["base"] == pytest.approx(3 / 5)
    low, high = out["scores"]["cawf1_hard"]["ci95"]
    assert 0 <= low <= 0.6 <= high <= 1
    assert out["scores"]["cawf1_soft"] == dict.fromkeys(out["scores"]["cawf1_soft"]) | {
        "ci95": [None, None],
        "base_ci95": [None, None],
        "difference_ci95": [None, None],
    }
    assert out["per_class"]["sad"]["n_true"] == 3
    assert out["per_class"]["sad"]["n_pred"] == 3
    assert out["per_class"]["sad"]["f1"] == pytest.approx(2 / 3)
    assert out["other"] == {"bored": 1}
    assert {c["name"] for c in out["checks"]} >= {"kappa", "synchronisation", "samples_per_emotion", "interval"}


def test_seed_makes_it_repeatable(path: Path) -> None:
    options = ("--labels", "happy,sad", "--seed", "4", "--resamples", "50")
    assert as_json(path, *options) == as_json(path, *options)


def test_no_fcc_at_all_is_impossible_not_zero(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("sample_id,participant,true,pred,fcc\n1,a,happy,happy,\n2,b,sad,sad,nan\n")
    out = as_json(path, "--labels", "ekman6")
    assert out["applies"] == "impossible"
    assert out["scores"]["cawf1_macro"]["value"] is None
    assert out["scores"]["cawf1_macro"]["base"] == 1.0
    assert next(c for c in out["checks"] if c["name"] == "fcc")["status"] == "fail"


def test_facts_given_become_checks(path: Path) -> None:
    out = as_json(path, "--labels", "happy,sad", "--kappa", "cohen=0.7", "--sync-ms", "12")
    status = {c["name"]: c["status"] for c in out["checks"]}
    assert (status["kappa"], status["synchronisation"]) == ("fail", "pass")
    assert (out["options"]["kappa"], out["options"]["sync_ms"], out["options"]["att_weights"]) == ("cohen=0.7", 12, "")


def test_maf1_of_gaze_and_voice(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(
        "sample_id,participant,true,pred,fcc,att_gaze,att_voice\n1,a,happy,happy,0.5,0.8,0.4\n2,b,sad,happy,0.5,0.2,\n"
    )
    out = as_json(path, "--labels", "happy,sad", "--att-weights", "gaze=1,voice=1")["maf1"]
    assert out["scores"]["maf1_hard"]["value"] == pytest.approx(0.6 / (0.6 + 0.2))
    assert (out["modalities"], out["weights"]) == (["gaze", "voice"], [0.5, 0.5])


def test_text_names_reading_base_and_checks(path: Path) -> None:
    text = run(path, "--labels", "happy,sad")
    assert "6 samples, 1 without FCC; cawF1 applies: not needed" in text
    assert "cawf1_hard          0.6000" in text
    assert "outside the label set, counted as wrong: bored (1)" in text


def test_labels_are_asked_for_where_no_set_fits(path: Path) -> None:
    with pytest.raises(DataError, match="give --labels"):
        run(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kappa", "high"), "'high' is no agreement"),
        (("--kappa", "cohen=3"), "'cohen=3' is no agreement"),
        (("--att-weights", "gaze=1"), "there is no att_ column"),
    ],
    ids=["kappa-word", "kappa-above-one", "weights-of-nothing"],
)
def test_options_that_make_no_sense(path: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(path, "--labels", "happy,sad", *options)


def test_one_true_class_is_said(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("sample_id,participant,true,pred,fcc\n1,a,happy,happy,0.5\n2,b,happy,sad,0.4\n")
    (check,) = (c for c in as_json(path, "--labels", "ekman6")["checks"] if c["name"] == "classes")
    assert check["status"] == "warn"
    assert "1 of 6 classes occur: with one true class no score" in check["text"]
