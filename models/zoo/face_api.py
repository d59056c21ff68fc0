"""The `face-api` package's expression classifier, and its face recogniser (dlib's ResNet of 29 convolutions)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edge.manifest import TensorSpec
from models.archives import Store
from models.inputs import picture_input
from models.padding import same_pads
from models.recipes import Built, Recipe

if TYPE_CHECKING:
    from models.graph import Graph

_MEAN = (122.782, 117.001, 104.298)
_LABELS = ("neutral", "happy", "sad", "angry", "fear", "disgust", "surprise")
_EXPRESSION_SIDE, _RECOGNITION_SIDE = 112, 150
Weights = dict[str, npt.NDArray]


def read_archive(store: Store, name: str, digits: str) -> Weights:
    from models.tfjs import read_weights

    manifest = json.loads(store.member("face_api", f"package/model/{name}-weights_manifest.json"))
    return read_weights(manifest, store.member("face_api", f"package/model/{name}.bin", digits))


def _input(side: int) -> TensorSpec:
    return picture_input(side, _MEAN, (1 / 255,) * 3)


def _expression(store: Store) -> Built:
    """Four blocks of four separable convolutions, each block halving the picture; a mean and one dense layer."""
    from models.graph import Graph

    weights = read_archive(store, "face_expression_model", "9a9840f2cf1f4c7e")
    graph, x, size = Graph(), "image", _EXPRESSION_SIDE
    for block in range(4):
        total = ""
        for layer in range(4):
            name, stride = f"dense{block}/conv{layer}", 1 if layer else 2
            y = _separable(graph, x, weights, name, stride, size)
            size //= stride
            total = graph.op("Add", total, y) if total else y
            x = graph.op("Relu", total)
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", x))
    logits = graph.linear(pooled, weights["fc/weights"].T, weights["fc/bias"])
    graph.op("Softmax", logits, axis=1, name="probabilities")
    classes = TensorSpec(name="probabilities", shape=(-1, len(_LABELS)), dims=("n", "classes"))
    spec = _input(_EXPRESSION_SIDE)
    model = graph.model((spec,), (classes,), "face_expression")
    return Built(model.SerializeToString(), ".onnx", {"inputs": (spec,), "outputs": (classes,), "labels": _LABELS})


def _separable(graph: Graph, x: str, weights: Weights, name: str, stride: int, size: int) -> str:
    """Depthwise and 1x1 convolution; the first of all is a plain one."""
    pads, bias = same_pads(size, 3, stride), weights[f"{name}/bias"]
    if f"{name}/filters" in weights:
        return graph.conv(x, weights[f"{name}/filters"].transpose(3, 2, 0, 1), bias, stride=stride, pads=pads)
    deep = weights[f"{name}/depthwise_filter"].transpose(2, 3, 0, 1)
    x = graph.conv(x, deep, stride=stride, pads=pads, group=len(deep))
    return graph.conv(x, weights[f"{name}/pointwise_filter"].transpose(3, 2, 0, 1), bias)


#: residual units of each width; the last width halves the picture once more at its end
_UNITS = ((32, 3), (64, 3), (128, 2), (256, 2))


def _recogniser(store: Store) -> Built:
    from models.graph import Graph

    weights = read_archive(store, "face_recognition_model", "b413e420d6840b27")
    graph = Graph()
    x, size = _scaled_conv(graph, "image", weights, "conv32_down", _RECOGNITION_SIDE, stride=2)
    x, size = graph.op("MaxPool", graph.op("Relu", x), kernel_shape=[3, 3], strides=[2, 2]), (size - 3) // 2 + 1
    for width, units in _UNITS:
        if width > 32:
            x, size = _residual_down(graph, x, weights, f"conv{width}_down", size)
        for unit in range(1, units + 1):
            x = _residual(graph, x, weights, f"conv{width}_{unit}", size)
    x, size = _residual_down(graph, x, weights, "conv256_down_out", size)
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", x))
    graph.op("MatMul", pooled, graph.weight(weights["fc"]), name="features")
    spec, after = _input(_RECOGNITION_SIDE), TensorSpec(name="features", shape=(-1, 128), dims=("n", "features"))
    model = graph.model((spec,), (after,), "face_recognition")
    return Built(model.SerializeToString(), ".onnx", {"inputs": (spec,), "outputs": (after,)})


def _scaled_conv(graph: Graph, x: str, weights: Weights, name: str, size: int, stride: int = 1) -> tuple[str, int]:
    """Convolution and a scale and shift per channel, folded into one; unpadded where it halves the picture."""
    kernel = weights[f"{name}/conv/filters"].transpose(3, 2, 0, 1)
    factor = weights[f"{name}/scale/weights"]
    bias = weights[f"{name}/conv/bias"] * factor + weights[f"{name}/scale/biases"]
    side = kernel.shape[2]
    kernel = kernel * factor[:, None, None, None]
    if stride == 1:
        return graph.conv(x, kernel, bias, pads=same_pads(size, side, 1)), size
    return graph.conv(x, kernel, bias, stride=stride), (size - side) // stride + 1


def _residual(graph: Graph, x: str, weights: Weights, name: str, size: int) -> str:
    y, _ = _scaled_conv(graph, x, weights, f"{name}/conv1", size)
    y, _ = _scaled_conv(graph, graph.op("Relu", y), weights, f"{name}/conv2", size)
    return graph.op("Relu", graph.op("Add", x, y))


def _residual_down(graph: Graph, x: str, weights: Weights, name: str, size: int) -> tuple[str, int]:
    """Half the picture; the shortcut is a mean of 2x2, and whichever is smaller is filled up with zeros."""
    y, small = _scaled_conv(graph, x, weights, f"{name}/conv1", size, stride=2)
    y, small = _scaled_conv(graph, graph.op("Relu", y), weights, f"{name}/conv2", small)
    pooled, half = graph.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), size // 2
    out, channels = (weights[f"{name}/{part}/conv/filters"].shape[axis] for part, axis in (("conv2", 3), ("conv1", 2)))
    y = _pad(graph, y, 0, half - small)
    return graph.op("Relu", graph.op("Add", _pad(graph, pooled, out - channels, 0), y)), half


def _pad(graph: Graph, x: str, channels: int, sides: int) -> str:
    if not channels and not sides:
        return x
    return graph.op("Pad", x, graph.weight(np.array([0, 0, 0, 0, 0, channels, sides, sides], dtype=np.int64), "pads"))


RECIPES = (
    Recipe("face_expression-fp32", "emotion", "face_api", "1", _expression, group="npm"),
    Recipe("face_recognition-fp32", "face_embedder", "face_api", "1", _recogniser, group="npm"),
)
