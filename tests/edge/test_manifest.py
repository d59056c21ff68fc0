"""An artefact is what its model.json says, or one clear line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from edge.errors import ModelError
from edge.manifest import Manifest, TensorSpec, encode, list_artefacts, load_manifest, models_dir, scan_artefacts


def make(folder: Path, content: bytes = b"weights") -> Manifest:
    manifest = Manifest(
        folder=folder,
        name=folder.name,
        version="1",
        role="embedder",
        precision="fp32",
        file="w.onnx",
        sha256=hashlib.sha256(content).hexdigest(),
        inputs=(TensorSpec(name="image", shape=(-1, 3, 8, 4), layout="NCHW", colour="RGB"),),
        outputs=(TensorSpec(name="features", shape=(-1, 2)), TensorSpec(name="logits", shape=(-1, 5))),
        source="here",
        licence="MIT",
        weights="seeded",
        mean_local=np.array([0.5, 1.25], dtype=np.float32),
    )
    folder.mkdir(parents=True)
    (folder / "w.onnx").write_bytes(content)
    (folder / "model.json").write_bytes(encode(manifest))
    return manifest


def test_round_trip_keeps_every_field(tmp_path: Path) -> None:
    written = make(tmp_path / "net-fp32")
    read = load_manifest(tmp_path / "net-fp32")
    assert read.inputs == written.inputs and read.outputs == written.outputs
    assert read.mean_local is not None and read.mean_local.dtype == np.float32
    assert read.mean_local.tolist() == [0.5, 1.25] and read.mean_global is None
    assert read.input().size() == (4, 8)
    assert read.model_id == "net-fp32@" + written.sha256[:12]
    assert [m.name for m in list_artefacts(tmp_path)] == ["net-fp32"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param('"version"', '"verson"', "unknown field `verson`", id="unknown key"),
        pytest.param('"layout": "NCHW"', '"layout": "CHWN"', "Invalid enum value 'CHWN'", id="unknown layout"),
        pytest.param('"NCHW"', '"NHWC"', "wrong layout; expected 3 channels as NHWC has them; got (-1, 3", id="layout"),
        pytest.param('"licence": "MIT",', "", "missing required field `licence`", id="missing key"),
        pytest.param('"format"', '"folder"', "without the key 'folder'", id="folder in the file"),
        pytest.param("{", "", "can't be read", id="cut"),
    ],
)
def test_a_bad_description_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    make(tmp_path / "net")
    file = tmp_path / "net" / "model.json"
    text = file.read_text().replace('"name": "net"', '"format": 1, "name": "net"', 1)
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError, match=r"model\.json") as error:
        load_manifest(tmp_path / "net")
    assert says in str(error.value)


def test_one_that_cannot_be_read_hides_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a-fp32", "b-fp32", "c-fp32"):
        make(tmp_path / name)
    (tmp_path / "b-fp32" / "model.json").write_text("{")
    found, unreadable = scan_artefacts(tmp_path)
    assert [m.name for m in found] == ["a-fp32", "c-fp32"]
    assert [error.thing for error in unreadable] == [str(tmp_path / "b-fp32" / "model.json")]
    assert [m.name for m in list_artefacts(tmp_path)] == ["a-fp32", "c-fp32"]
    assert "b-fp32" in caplog.text and "can't be read" in caplog.text


def test_altered_weights_are_refused_before_use(tmp_path: Path) -> None:
    make(tmp_path / "net")
    (tmp_path / "net" / "w.onnx").write_bytes(b"weightz")
    with pytest.raises(ModelError, match=r"wrong hash; expected .*; got .*; it was altered"):
        load_manifest(tmp_path / "net")


def test_a_missing_artefact_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="models fetch default"):
        load_manifest(tmp_path / "nothing")


def test_outputs_are_picked_by_name(tmp_path: Path) -> None:
    manifest = make(tmp_path / "net")
    assert manifest.output("logits").shape == (-1, 5)
    with pytest.raises(ModelError, match="has more than one output; expected one of features, logits"):
        manifest.output()
    with pytest.raises(ModelError, match="has no output 'map'"):
        manifest.output("map")


def test_models_dir_takes_setting_then_environment_then_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EMOGAZE_MODELS", str(tmp_path))
    assert models_dir("/somewhere") == Path("/somewhere")
    assert models_dir("") == tmp_path
    monkeypatch.delenv("EMOGAZE_MODELS")
    assert models_dir("") == Path.home() / ".cache" / "emogaze" / "models"
