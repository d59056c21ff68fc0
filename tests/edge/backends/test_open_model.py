"""Opening an artefact: what must stop it, and what must be said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from edge.backends.base import open_model
from edge.config import ModelsConfig
from edge.errors import BackendError, ConfigError, ModelError


@pytest.fixture
def altered(artefacts: Path, tmp_path: Path):
    """Copy an artefact and change its model.json."""

    def alter(name: str, **changes: object) -> ModelsConfig:
        shutil.copytree(artefacts / name, tmp_path / name)
        file = tmp_path / name / "model.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
        return ModelsConfig(dir=str(tmp_path))

    return alter


def first_input(artefacts: Path, artefact: str, **changes: object) -> list[dict]:
    inputs = json.loads((artefacts / artefact / "model.json").read_text())["inputs"]
    return [{**inputs[0], **changes}]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"colour": "BGR"}, id="colour order"),
        pytest.param({"mean": [0.0, 0.0, 0.0], "scale": [1.0, 1.0, 1.0]}, id="scale"),
    ],
)
def test_the_canary_finds_a_wrong_description(altered, artefacts: Path, changes: dict) -> None:
    name = "mobilenet_v2-fp32"
    config = altered(name, inputs=first_input(artefacts, name, **changes))
    with pytest.raises(ModelError, match=r"canary picture isn't recognised; expected Egyptian cat at 0\.7"):
        open_model(name, config)


def test_embedding_without_logits_is_the_same(artefacts: Path) -> None:
    model = open_model("mobilenet_v2-fp32", ModelsConfig(dir=str(artefacts)))
    batch = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    alone = model.infer({"image": batch}, ("features",))["features"]
    full = model.infer({"image": batch})
    np.testing.assert_array_equal(alone, full["features"])
    np.testing.assert_allclose(full["map"].mean(axis=(2, 3)), full["features"], atol=1e-5)


def test_a_failed_gate_needs_the_name(altered) -> None:
    name = "mini_xception-fp32"
    config = altered(name, gate="failed", reference="the-other")
    with pytest.raises(ModelError, match=r"failed its accuracy gate .*; use the-other, or name it in models\.force"):
        open_model(name, config)
    forced = ModelsConfig(dir=config.dir, force=(name,))
    assert open_model(name, forced).manifest.gate == "failed"


def test_no_accelerator_is_said_and_fails_when_strict(artefacts: Path) -> None:
    asked = {"dir": str(artefacts), "accelerator": "cuda", "backend": "onnxruntime"}
    model = open_model("mini_xception-fp32", ModelsConfig(**asked))
    assert (model.active, model.degraded) == ("cpu", "asked for cuda, running on cpu")
    with pytest.raises(BackendError, match="asked for cuda, running on cpu"):
        open_model("mini_xception-fp32", ModelsConfig(**asked, strict=True))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        pytest.param(
            {"backend": "tflite"}, BackendError, "no inference runtime for .*tflite: runs .tflite", id="file type"
        ),
        pytest.param({"backend": "nothing"}, ConfigError, "there is no 'nothing'", id="unknown backend"),
        pytest.param({"accelerator": "abacus"}, BackendError, "onnxruntime has no 'abacus'", id="unknown accelerator"),
    ],
)
def test_what_can_not_run_is_refused(artefacts: Path, changes: dict, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        open_model("mini_xception-fp32", ModelsConfig(dir=str(artefacts), **changes))


def test_other_names_than_the_file_are_refused(altered, artefacts: Path) -> None:
    name = "mini_xception-fp32"
    config = altered(name, inputs=first_input(artefacts, name, name="picture"))
    with pytest.raises(BackendError, match=r"other inputs than model\.json; expected picture; got image"):
        open_model(name, config)


OPEN = """
import os
from edge.backends.base import open_model
from edge.backends.tflite import _without_note
from edge.config import ModelsConfig
open_model("blazeface_full-fp32", ModelsConfig())
"""
WRITE = """
with _without_note():
    os.write(2, b"a camera is lost\\n")
os.write(2, b"the end\\n")
"""


def test_litert_writes_nothing_and_what_others_write_meanwhile_is_kept(artefacts: Path) -> None:
    run = partial(subprocess.run, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    assert run([sys.executable, "-c", OPEN + WRITE]).stderr == "a camera is lost\nthe end\n"
    assert run(["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, OPEN]).stdout == ""  # with none to write to
