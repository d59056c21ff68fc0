"""The whole evaluation of a small example data set, on the real embedder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from host_tools.__main__ import app
from host_tools.datasets.example import generate

pytestmark = pytest.mark.usefixtures("artefacts")


def run(*options: str) -> str:
    result = CliRunner().invoke(app, list(options), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    generate(folder, pictures_per_emotion=3, viewers=1)
    text = (folder / "evaluate.toml").read_text().split("[sweeps]")[0]
    sweeps = '[sweeps]\nembedding = ["raw", "pca:400"]\nweights = ["fixed"]\nembedder = ["no-such-model"]\nhz = [60]\n'
    (folder / "evaluate.toml").write_text(text.replace('split = "test"', 'split = "test"\nresamples = 200') + sweeps)
    return folder


@pytest.fixture(scope="module")
def results(example: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        run("evaluate", str(example / "evaluate.toml"), "-o", str(example / "out"), "--json")
    )
    return document


def test_every_system_is_scored_under_its_sources(results: dict[str, Any]) -> None:
    sources = {name: list(system["sources"]) for name, system in results["systems"].items()}
    assert sources == {
        "context-net": ["predicted", "observed"],
        "saliency-net": ["predicted", "observed"],
        "face-sdk": ["observed"],
        "probe": ["gradcam", "observed"],
    }
    for system in results["systems"].values():
        for body in system["sources"].values():
            assert (body["n"], body["n_without_fcc"], body["applies"]) == (12, 0, "yes")
            assert 0 < body["mean_fcc"]["value"] < 1


def test_emotion_patterns_stand_in_results_and_report(results: dict[str, Any], example: Path) -> None:
    rows = {row["emotion"]: row for row in results["patterns"]}
    assert list(rows) == ["happy", "sad", "angry", "fear", "surprise", "disgust"]
    assert all(rows[name]["n"] == 12 and 0 <= rows[name]["auc"] <= 1 for name in ("happy", "sad", "surprise"))
    # Only pictures with slime have the repellent region, and all of them are labelled disgust.
    assert (rows["disgust"]["n"], rows["disgust"]["auc"]) == (2, None)
    assert rows["disgust"]["reason"] == "needs samples with the label and without it"
    assert len((example / "out" / "patterns.csv").read_text().splitlines()) == 13
    assert "Emotion patterns" in (example / "out" / "report.html").read_text()


def test_observed_fcc_is_equal_for_all_systems(results: dict[str, Any]) -> None:
    values = {system["sources"]["observed"]["mean_fcc"]["value"] for system in results["systems"].values()}
    assert len(values) == 1


def test_what_predicts_places_is_scored_for_them(results: dict[str, Any]) -> None:
    saliency = {name: system["saliency"] for name, system in results["systems"].items()}
    assert saliency["face-sdk"] is None
    assert saliency["context-net"]["overall"]["auc_judd"]["value"] > 0.7
    assert set(saliency["saliency-net"]["per_emotion"]) == {"angry", "disgust", "fear", "happy", "sad", "surprise"}


def test_samples_table_gives_the_same_scores_by_the_other_command(example: Path, results: dict[str, Any]) -> None:
    path = example / "out" / "samples" / "context-net.predicted.csv"
    again = json.loads(run("cawf1", str(path), "--resamples", "200", "--json"))
    body = results["systems"]["context-net"]["sources"]["predicted"]
    assert again["scores"] == body["scores"]
    assert again["per_class"] == body["per_class"]


def test_systems_are_compared_within_one_source_only(results: dict[str, Any]) -> None:
    rows = results["comparisons"]
    across = [r for r in rows if {r["first"], r["second"]} == {"context-net", "face-sdk"}]
    assert {r["source"] for r in across} == {"observed"}
    assert {"accuracy", "cawf1_macro"} <= {r["metric"] for r in across}
    assert all(r["p_adjusted"] >= r["p"] for r in rows if r["p"] is not None)
    assert all(r["first"] == "face-sdk" for r in results["leads"])


def test_sweeps_say_what_could_not_be_had(results: dict[str, Any]) -> None:
    reasons = {(r["setting"], r["value"]): r["reason"] for r in results["sweeps"]}
    assert reasons["weights", "fixed"] == reasons["embedding", "raw"] == reasons["hz", "60"] == ""
    assert "too few local vectors for 400 axes" in reasons["embedding", "pca:400"]
    assert "no-such-model" in reasons["embedder", "no-such-model"]


def test_global_features_only_and_static_weights_are_ablated(results: dict[str, Any]) -> None:
    chosen = ("context-net", "predicted")
    rows = {r["ablation"]: r for r in results["ablations"] if (r["system"], r["source"]) == chosen}
    full = results["systems"]["context-net"]["sources"]["predicted"]["scores"]["cawf1_macro"]
    assert rows["full"]["value"] == full["value"]
    assert rows["classification only"]["value"] == full["base"]
    assert rows["classification only"]["points"] == pytest.approx(100 * (full["base"] - full["value"]))
    assert rows["FCC only"]["points"] is None


def test_files_are_written(example: Path, results: dict[str, Any]) -> None:
    out = example / "out"
    assert json.loads((out / "results.json").read_text())["dataset"]["simulated"] is True
    assert (out / "tables" / "headline.tex").read_text().startswith("\\begin{table}")
    published = (out / "tables" / "published.csv").read_text()
    assert "EmoGazeNet,published,0.802" in published


def test_a_second_run_does_nothing_again_and_says_the_same(example: Path, results: dict[str, Any]) -> None:
    done = {p: p.stat().st_mtime_ns for p in (example / "out" / "done").rglob("*.msgpack")}
    command = ("evaluate", str(example / "evaluate.toml"), "-o", str(example / "out"), "--json")
    again = json.loads(run(*command))
    assert again == results
    assert {p: p.stat().st_mtime_ns for p in (example / "out" / "done").rglob("*.msgpack")} == done


def test_report_is_one_page_that_says_simulated_and_published(example: Path, results: dict[str, Any]) -> None:
    page = (example / "out" / "report.html").read_text()
    assert "All of it is simulated" in page
    assert "EmoGazeNet</td><td>published" in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    again = example / "again.html"
    run("report", str(example / "out"), "-o", str(again))
    assert again.read_text() == page
    assert again.stat().st_mode & 0o777 == 0o600


def test_cases_are_described_and_drawn(example: Path, results: dict[str, Any]) -> None:
    kinds = {case["kind"] for case in results["cases"]}
    assert {"best", "influence"} <= kinds
    assert all((example / "out" / case["picture"]).is_file() for case in results["cases"])
    assert results["fixation_maps"][0]["n_fixations"] >= results["fixation_maps"][-1]["n_fixations"]


def test_regions_are_weighted_by_their_share_of_fixations(results: dict[str, Any]) -> None:
    chosen = [r for r in results["regions"] if (r["system"], r["source"]) == ("face-sdk", "observed")]
    assert sum(r["weight"] for r in chosen[:-1]) == pytest.approx(1)
    assert chosen[-1]["region"] == "all, weighted"


def write_face_set(folder: Path) -> Path:
    """Six faces without gaze or scene, as AffectNet has them, with a table of answers and the runtime's own FCC."""
    import cv2
    import numpy as np

    from host_tools.datasets import layout

    rng = np.random.default_rng(0)
    samples = []
    for i, label in enumerate(("happy", "sad", "angry", "fear", "disgust", "surprise")):
        path = folder / "faces" / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), rng.integers(0, 255, (64, 64, 3), dtype=np.uint8))
        samples.append(layout.Sample(str(i), "", label, "", "face", face=f"faces/{i}.png"))
    layout.write(folder, layout.DatasetInfo(name="faces", projection="face", labels="ekman6", lacks=("gaze",)), samples)
    (folder / "p.csv").write_text("sample_id,pred,fcc\n" + "".join(f"{i},happy,0.{i + 1}\n" for i in range(6)))
    (folder / "e.toml").write_text(
        'dataset = "."\nresamples = 100\n[[systems]]\nname = "net"\npredictions = "p.csv"\n'
        '[[systems]]\nname = "live"\npredictions = "p.csv"\nfcc = "given"\n'
        '[[systems]]\nname = "runtime"\nkind = "emotion"\n[sweeps]\nweights = ["fixed"]\n'
    )
    return folder / "e.toml"


def test_faces_without_gaze_have_f1_and_no_cawf1(tmp_path: Path) -> None:
    config = write_face_set(tmp_path)
    results = json.loads(run("evaluate", str(config), "-o", str(tmp_path / "out"), "--json"))
    bodies = {(n, s): b for n, system in results["systems"].items() for s, b in system["sources"].items()}
    net = bodies["net", "observed"]
    assert (net["applies"], net["n_without_fcc"]) == ("impossible", 6)
    assert net["scores"]["cawf1_macro"]["value"] is None
    assert net["classification"]["accuracy"]["value"] == pytest.approx(1 / 6)
    assert net["reasons_without_fcc"] == {"no picture": 6}
    assert bodies["live", "retrieved"]["mean_fcc"]["value"] == pytest.approx(0.35)
    assert bodies["live", "retrieved"]["applies"] == "not needed"
    assert sum(c["n_pred"] for c in bodies["runtime", "observed"]["per_class"].values()) + sum(
        bodies["runtime", "observed"]["other"].values()
    ) == pytest.approx(6)
    assert "cawF1 benchmark: faces" in (tmp_path / "out" / "report.html").read_text()


def test_diagnose_measures_three_complaints(example: Path, results: dict[str, Any]) -> None:
    options = ("diagnose", str(example / "evaluate.toml"), "-o", str(example / "out"))
    found = json.loads(run(*options, "--json"))
    rows = {(r["system"], r["source"], r["embedding"]): r for r in found["too_close"]}
    raw, centred = (rows["context-net", "predicted", e] for e in ("raw", "centred"))
    assert raw["std_fcc"] < centred["std_fcc"]
    assert centred["hard_minus_accuracy"] == pytest.approx(centred["product"])
    assert {r["system"] for r in found["unstable"]} == {"context-net", "saliency-net", "face-sdk", "probe"}
    assert any(r["embedder"] == "mobilenet_v2-fp32" and r["batched_ms"] > 0 for r in found["too_slow"]["artefacts"])
    assert "cawF1 is too close to F1" in run(*options)
