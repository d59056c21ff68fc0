"""`emogaze model` on real artefacts, as a user calls it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NAME, OTHER = "mini_xception-fp32", "blazeface_full_sparse-fp32"


def emogaze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edge.cli", "model", *arguments], capture_output=True, text=True, check=False
    )


def test_add_then_list_then_check(artefacts: Path, tmp_path: Path) -> None:
    added = emogaze("add", str(artefacts / NAME), str(artefacts / OTHER), "--dir", str(tmp_path))
    assert added.returncode == 0, added.stderr
    assert {p.name for p in tmp_path.iterdir()} == {NAME, OTHER}
    for where in (("--dir", str(tmp_path)), (str(tmp_path),)):
        listed = json.loads(emogaze("list", *where, "--json").stdout)
        assert [(m["name"], m["role"], m["weights"]) for m in listed["models"]] == [
            (OTHER, "face_detector", "trained"),
            (NAME, "emotion", "trained"),
        ]
    nowhere = emogaze("list", str(tmp_path / "nowhere"))
    assert nowhere.returncode == 1 and "no such folder" in nowhere.stderr
    checked = json.loads(emogaze("check", str(tmp_path / NAME), "--json").stdout)
    assert {b["backend"]: b["active"] for b in checked["backends"]}["onnxruntime"] == "cpu"
    assert {b["backend"]: b["runs"] for b in checked["backends"]}["tflite"] is False


def cut(folder: Path) -> None:
    (folder / f"{NAME}.onnx").write_bytes(b"cut")


def fewer_labels(folder: Path) -> None:
    file = folder / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "labels": ["happy"]}))


def no_embedding(folder: Path) -> None:
    file = folder / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "role": "embedder"}))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(cut, "wrong hash", id="cut"),
        pytest.param(
            fewer_labels, "doesn't classify its labels; expected 'probabilities' of shape (n, 1)", id="labels"
        ),
        pytest.param(
            no_embedding,
            "its output is no embedding; expected 'features' of shape (n, d), or 'local'",
            id="no embedding",
        ),
        pytest.param(shutil.rmtree, "there is no model artefact", id="missing"),
    ],
)
def test_a_bad_folder_is_one_line_and_adds_nothing(artefacts: Path, tmp_path: Path, spoil: object, says: str) -> None:
    shutil.copytree(artefacts / NAME, tmp_path / "source")
    spoil(tmp_path / "source")
    done = emogaze("add", str(tmp_path / "source"), "--dir", str(tmp_path / "models"))
    assert done.returncode == 1
    assert says in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "models" / NAME).exists()
