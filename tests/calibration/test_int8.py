"""Quantisation: the structure of both files, the choice of layers, and that nothing is calibrated on nothing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from calibration.int8 import SCHEMES, Quantiser, Scheme, open_content
from calibration.pictures import crops, load
from edge.backends.base import Model
from edge.errors import DataError, ModelError
from models.embedders import embed
from tests.conftest import need

U8S8, S8S8 = SCHEMES


@pytest.fixture
def quantiser(tiny: Model, pictures) -> Quantiser:
    return Quantiser(tiny, crops(load(pictures).calibration, 32))


def graph_of(content: bytes) -> tuple[onnx.GraphProto, dict[str, np.ndarray]]:
    graph = onnx.load_from_string(content).graph
    return graph, {w.name: numpy_helper.to_array(w) for w in graph.initializer}


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.precision)
def test_activations_and_weights(quantiser: Quantiser, scheme: Scheme) -> None:
    graph, weights = graph_of(quantiser.quantise(scheme))
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    made = {output: node for node in graph.node for output in node.output}
    for conv in convolutions:
        before, kernel = made[conv.input[0]], made[conv.input[1]]
        assert before.op_type == kernel.op_type == "DequantizeLinear"
        assert weights[kernel.input[0]].dtype == np.int8
        assert weights[kernel.input[1]].shape == (weights[kernel.input[0]].shape[0],), "one scale per channel"
        assert not weights[kernel.input[2]].any(), "weights are symmetric"
        zero = weights[before.input[2]]
        assert zero.dtype == (np.int8 if scheme.signed else np.uint8)
        assert not scheme.signed or not zero.any()


@pytest.mark.parametrize(("scheme", "quantised"), [(U8S8, True), (S8S8, False)], ids=["u8s8", "s8s8"])
def test_tensorrt_gets_no_quantised_bias(quantiser: Quantiser, scheme: Scheme, quantised: bool) -> None:
    graph, _ = graph_of(quantiser.quantise(scheme))
    integers = [w for w in graph.initializer if w.data_type == TensorProto.INT32 and "bias" not in w.name.lower()]
    biases = [w for w in graph.initializer if w.data_type == TensorProto.INT32]
    assert bool(biases) == quantised
    assert quantised or not integers


def test_layers_can_stay_in_float(quantiser: Quantiser) -> None:
    ranking = quantiser.sensitive_layers(U8S8)
    assert len(ranking) == 3
    graph, weights = graph_of(quantiser.quantise(U8S8, (ranking[0],)))
    kept = next(node for node in graph.node if node.name == ranking[0])
    assert weights[kept.input[1]].dtype == np.float32
    careful = quantiser.cosine(quantiser.quantise(U8S8, tuple(ranking)), U8S8)
    plain = quantiser.cosine(quantiser.quantise(U8S8), U8S8)
    assert plain < careful == pytest.approx(1, abs=1e-3)


def test_a_quantised_model_runs_where_fp32_does(quantiser: Quantiser, tiny: Model, pictures) -> None:
    images = crops(load(pictures).held, 8)
    with open_content(tiny.manifest, quantiser.quantise(U8S8), "int8-u8s8") as model:
        got, expected = (embed(m, images) for m in (model, tiny))
    assert np.abs(got - expected).max() < 0.1 * expected.max()
    assert not np.array_equal(got, expected)


def test_without_enough_pictures_there_is_no_int8(tiny: Model, pictures, tmp_path) -> None:
    with pytest.raises(DataError, match="too few crops; expected at least 32; got 31"):
        Quantiser(tiny, crops(load(pictures).calibration, 31))
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "nothing")
    for file in sorted(pictures.iterdir())[3:]:
        file.unlink()
    with pytest.raises(DataError, match=r"too few pictures .*; got 3"):
        load(pictures)


def test_only_an_fp32_embedder_is_quantised(artefacts, pictures) -> None:
    from edge.backends.base import open_model
    from edge.config import ModelsConfig

    emotion = open_model("mini_xception-fp32", ModelsConfig(dir=str(artefacts)))
    with pytest.raises(ModelError, match="can't be quantised; expected an FP32 embedder in ONNX; got emotion"):
        Quantiser(emotion, crops(load(pictures).calibration, 32))


def test_what_judges_was_not_calibrated_on(pictures) -> None:
    split = load(pictures)
    assert sorted(split.held) == ["2.png", "5.png"]
    assert not set(split.held) & set(split.calibration) and len(split.calibration) == 4


def test_tensorrt_builds_s8s8_and_refuses_u8s8(quantiser: Quantiser, tiny: Model, tmp_path) -> None:
    import msgspec

    from edge.backends._trt_engine import build
    from edge.errors import BackendError

    rtx = need("tensorrt_rtx")
    for scheme in SCHEMES:
        (tmp_path / "q.onnx").write_bytes(quantiser.quantise(scheme))
        manifest = msgspec.structs.replace(tiny.manifest, folder=tmp_path, file="q.onnx", precision=scheme.precision)
        if scheme is S8S8:
            assert build(rtx, manifest, batches=(1, 2))
        else:
            with pytest.raises(BackendError, match="can't parse it"):
                build(rtx, manifest)
