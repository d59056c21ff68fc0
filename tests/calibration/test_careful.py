"""What the careful way of quantising rests on: equal channels, corrected biases, and the small branches in float."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from calibration.activations import Statistics, observe
from calibration.bias import correct_bias, correctable, mean_error
from calibration.equalise import equalise
from calibration.int8 import on_one_pixel
from edge.manifest import TensorSpec
from models.graph import Graph
from models.state import seeded

SIDE = 12
PICTURE = TensorSpec(name="image", shape=(-1, 3, SIDE, SIDE))
OUT = (TensorSpec(name="features", shape=(-1, 4)), TensorSpec(name="map", shape=(-1, 4, SIDE, SIDE)))


@pytest.fixture
def network() -> onnx.ModelProto:
    """Convolution, ReLU, depthwise convolution, hard-swish, squeeze-and-excitation, convolution."""
    weights, graph = seeded(1), Graph()
    sizes = np.array([1, 30, 0.1, 5, 1, 2], dtype=np.float32)[:, None, None, None]
    x = graph.op("Relu", graph.conv("image", np.abs(weights("a", (6, 3, 1, 1))) * sizes, np.full(6, 0.1)))
    x = graph.hard_swish(graph.conv(x, weights("b", (6, 1, 3, 3)), np.full(6, 0.2), pads=1, group=6))
    gate = graph.conv(graph.op("GlobalAveragePool", x), weights("c", (6, 6, 1, 1)), np.zeros(6))
    x = graph.op("Mul", graph.hard_sigmoid(gate), x)
    graph.pool_features(graph.op("Identity", graph.conv(x, weights("d", (4, 6, 1, 1)), np.zeros(4)), name="map"))
    return graph.model((PICTURE,), OUT, "small")


@pytest.fixture
def batches() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0, 1, (2, 3, SIDE, SIDE)).astype(np.float32) for _ in range(3)]


def run(model: onnx.ModelProto, batch: np.ndarray) -> np.ndarray:
    import onnxruntime as ort

    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        ["features"], {"image": batch}
    )[0]


def large(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in correctable(model) if node.name not in on_one_pixel(model)]


def observed(model: onnx.ModelProto, batches: list[np.ndarray]) -> Statistics:
    return observe(model, [node.input[0] for node in large(model)], batches)


def test_what_is_observed(network: onnx.ModelProto, batches: list[np.ndarray]) -> None:
    found = observe(network, ["image"], batches)
    np.testing.assert_allclose(found.largest["image"], np.concatenate(batches).max(axis=(0, 2, 3)))
    np.testing.assert_allclose(found.mean["image"], np.concatenate(batches).mean(axis=(0, 2, 3)), rtol=1e-5)


def test_the_excitation_runs_on_one_pixel(network: onnx.ModelProto) -> None:
    gates = on_one_pixel(network)
    assert len(gates) == 1 and len(large(network)) == 3
    gate = next(node for node in network.graph.node if node.name == gates[0])
    assert gate.input[0].startswith("globalaveragepool")


def test_more_equal_channels_and_the_same_result(network: onnx.ModelProto, batches: list[np.ndarray]) -> None:
    before = observed(network, batches)
    equal = equalise(network, [node.name for node in large(network)], before)
    after = observed(equal, batches)
    np.testing.assert_allclose(run(equal, batches[0]), run(network, batches[0]), rtol=1e-5)
    depthwise = large(network)[1].input[0]
    spread = before.largest[depthwise].max() / before.largest[depthwise].min()
    assert spread > 50
    left = after.largest[depthwise].max() / after.largest[depthwise].min()
    assert left == pytest.approx(np.sqrt(spread), rel=1e-4), "the factor is the root of what would make them equal"
    added = [node.op_type for node in equal.graph.node].count("Mul") - 2
    assert added == 1, "folded into the convolution before a ReLU, a multiplication elsewhere"


def test_a_dead_channel_stays_finite(network: onnx.ModelProto, batches: list[np.ndarray]) -> None:
    kernel = next(w for w in network.graph.initializer if w.name == large(network)[0].input[1])
    values = numpy_helper.to_array(kernel).copy()
    values[2] = 0
    kernel.CopyFrom(numpy_helper.from_array(values, kernel.name))
    bias = next(w for w in network.graph.initializer if w.name == large(network)[0].input[2])
    bias.CopyFrom(numpy_helper.from_array(np.array([0.1, 0.1, 0, 0.1, 0.1, 0.1], np.float32), bias.name))
    equal = equalise(network, [node.name for node in large(network)], observed(network, batches))
    np.testing.assert_allclose(run(equal, batches[0]), run(network, batches[0]), rtol=1e-5)


def test_the_mean_error_by_hand() -> None:
    """Steps of 1/127: 0.4 steps are rounded to 0, 1.4 to 1, so the output's mean is off by -0.4 * (2 + 3) / 127."""
    kernel = np.array([[1.0, 0.4 / 127, 1.4 / 127]], np.float32)[:, :, None, None]
    assert mean_error(kernel, np.array([7.0, 2.0, 3.0])) == pytest.approx(np.array([-0.4 * 5 / 127]), rel=1e-4)
    deep = np.array([[1.0, 0.4 / 127], [0.6, 1.0]], np.float32)[:, None, :, None]
    error = mean_error(deep, np.array([2.0, 10.0]))
    assert error == pytest.approx(np.array([-0.4 * 2 / 127, (76 / 127 - 0.6) * 10]), rel=1e-4), (
        "each channel on its own"
    )


def test_a_corrected_bias_takes_the_error_off(network: onnx.ModelProto, batches: list[np.ndarray]) -> None:
    """With weights rounded and biases corrected, the first convolution's output keeps its mean exactly."""
    first = large(network)[0]
    truth = observe(network, [first.output[0]], batches).mean[first.output[0]]

    def rounded(model: onnx.ModelProto) -> np.ndarray:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        kernel = next(w for w in copy.graph.initializer if w.name == first.input[1])
        values = numpy_helper.to_array(kernel)
        step = np.abs(values).max(axis=(1, 2, 3), keepdims=True) / 127
        kernel.CopyFrom(numpy_helper.from_array(np.rint(values / step) * step, kernel.name))
        return observe(copy, [first.output[0]], batches).mean[first.output[0]] - truth

    corrected = correct_bias(network, [first.name], observed(network, batches))
    assert np.abs(rounded(network)).max() > 1e-4
    assert np.abs(rounded(corrected)).max() < 2e-6
