"""`emogaze env` as its user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def emogaze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, artefacts: Path) -> Path:
    """An environment of two small pictures, the second one upside down."""
    folder = tmp_path_factory.mktemp("env")
    noise = np.random.default_rng(5).integers(0, 255, (6, 9, 3), dtype=np.uint8)
    views = [str(folder / name) for name in ("view.png", "turned.png")]
    for path, picture in zip(views, (noise, noise[::-1]), strict=True):
        cv2.imwrite(path, cv2.resize(picture, (360, 240), interpolation=cv2.INTER_CUBIC))
    done = emogaze("env", "build", *views, "-o", str(folder / "cache"), "--set", f"models.dir={artefacts}")
    assert done.returncode == 0, done.stderr
    return folder / "cache"


def test_inspect(built: Path) -> None:
    done = emogaze("env", "inspect", str(built), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["version"]) == ("emogaze.env", 1)
    assert document["options"]["folder"] == str(built)
    assert document["embedder_id"].startswith("mobilenet_v2-fp32@") and len(document["model_sha256"]) == 64
    assert (document["embedding"], document["dim_local"], document["dim_global"]) == ("centred", 1280, 1280)
    assert document["n_entries"] > 50
    separation = document["separation"]
    assert (separation["n_matched"], separation["n_mismatched"]) == (200, 200)
    assert separation["auc"] > 0.9 and separation["gap_cos"] > 0.3 and separation["auc_retrieved"] > 0.9
    assert separation["retrieved_against"] == "mobilenet_v2-fp32/canary.png"
    told = emogaze("env", "inspect", str(built)).stdout
    assert f"{document['n_entries']} windows of 2 views" in told and "regions: none" in told
    assert f"AUC {separation['auc_retrieved']:.3f} (mobilenet_v2-fp32/canary.png)" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("inspect", "{tmp}"), "is no environment cache", id="inspect-nothing"),
        pytest.param(("inspect", "{built}", "--model", "other"), "has no cache of other", id="inspect-another-model"),
        pytest.param(("build", "{tmp}/none.png", "-o", "{tmp}/out"), "no such file", id="missing-source"),
        pytest.param(("build", "{tmp}", "-o", "{tmp}/out"), "holds no pictures", id="empty-folder"),
        pytest.param(("build", "{tmp}/none.png", "-o", "/proc/out"), "can't be written", id="unwritable"),
        pytest.param(
            ("build", "{tmp}", "-o", "{tmp}/out", "--set", "score.embedding=pca"), "pca:N", id="bad-embedding"
        ),
        pytest.param(
            ("build", "{tmp}", "-o", "{tmp}/out", "--set", "score.widow=auto"), "score.window", id="unknown-setting"
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(
    built: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = emogaze("env", *(a.format(tmp=tmp_path, built=built) for a in arguments))
    assert done.returncode == 1
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
