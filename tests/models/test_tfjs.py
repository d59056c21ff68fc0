"""TensorFlow.js weights and graphs, against numbers worked out by hand."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from edge.errors import ModelError
from edge.manifest import TensorSpec
from models.graph import Graph
from models.tfjs import GraphReader, read_weights

MANIFEST = [
    {
        "weights": [
            {"name": "a", "shape": [2], "dtype": "float32"},
            {
                "name": "b",
                "shape": [2, 1],
                "dtype": "float32",
                "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1.0},
            },
            {
                "name": "c",
                "shape": [],
                "dtype": "float32",
                "quantization": {"dtype": "float16", "original_dtype": "float32"},
            },
        ]
    }
]
CONTENT = np.array([1.5, -2], np.float32).tobytes() + bytes([0, 4]) + np.array(0.25, np.float16).tobytes()


def test_packed_weights_are_unpacked() -> None:
    weights = read_weights(MANIFEST, CONTENT)
    assert weights["a"].tolist() == [1.5, -2.0]
    assert weights["b"].tolist() == [[-1.0], [1.0]]
    assert weights["c"] == 0.25
    assert {w.dtype for w in weights.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(("content", "says"), [(CONTENT[:-1], "end before c"), (CONTENT + b"x", "are longer")])
def test_a_wrong_length_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        read_weights(MANIFEST, content)


def _model(activation: list[dict[str, Any]]) -> tuple[dict[str, Any], bytes]:
    """A 3x3 SAME convolution of stride 2, then `activation` on its result."""
    weights = {
        "kernel": np.arange(9, dtype=np.float32).reshape(3, 3, 1, 1) - 4,
        "bias": np.array([0.5], np.float32),
        "sixth": np.array(1 / 6, np.float32),
        "three": np.array(3, np.float32),
    }
    entries = [{"name": k, "shape": list(v.shape), "dtype": "float32"} for k, v in weights.items()]
    attributes = {
        "strides": {"list": {"i": ["1", "2", "2", "1"]}},
        "padding": {"s": base64.b64encode(b"SAME").decode()},
        "fused_ops": {"list": {"s": [base64.b64encode(b"BiasAdd").decode()]}},
    }
    nodes = [
        {"name": "x", "op": "Placeholder"},
        {"name": "conv", "op": "_FusedConv2D", "input": ["x", "kernel", "bias"], "attr": attributes},
        *activation,
    ]
    return (
        {"modelTopology": {"node": nodes}, "weightsManifest": [{"weights": entries}]},
        b"".join(v.tobytes() for v in weights.values()),
    )


SWISH = [
    {"name": "m", "op": "Mul", "input": ["sixth", "conv"]},
    {"name": "a", "op": "Add", "input": ["conv", "three"]},
    {"name": "r", "op": "Relu6", "input": ["a"]},
    {"name": "out", "op": "Mul", "input": ["m", "r"]},
]


def test_hard_swish_and_padding_by_hand() -> None:
    import onnxruntime as ort

    graph = Graph()
    last, side = GraphReader(*_model(SWISH), graph, 4).read("out")
    graph.op("Identity", last, name="y")
    spec = TensorSpec(name="image", shape=(-1, 1, 4, 4)), TensorSpec(name="y", shape=(-1, 1, 2, 2))
    session = ort.InferenceSession(
        graph.model(spec[:1], spec[1:], "t").SerializeToString(), providers=["CPUExecutionProvider"]
    )
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0] = 0.5
    # SAME at stride 2 pads below and right only: the picture's first pixel meets the kernel's first weight, -4.
    value = 0.5 * -4 + 0.5
    assert side == 2
    got = session.run(None, {"image": x})[0][0, 0]
    assert got[0, 0] == pytest.approx(value * (value + 3) / 6, abs=1e-5)
    assert got[1, 1] == pytest.approx(0.5 * 3.5 / 6, abs=1e-5)


@pytest.mark.parametrize(
    ("nodes", "last", "says"),
    [
        pytest.param(SWISH, "m", "has the factor 0.16", id="a factor left over"),
        pytest.param([{"name": "o", "op": "Erf", "input": ["conv"]}], "o", "unknown kind Erf", id="unknown operation"),
        pytest.param([{"name": "o", "op": "Add", "input": ["conv", "sixth"]}], "o", "only x \\+ 3", id="another sum"),
    ],
)
def test_what_is_not_understood_is_refused(nodes: list[dict[str, Any]], last: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        GraphReader(*_model(nodes), Graph(), 4).read(last)
