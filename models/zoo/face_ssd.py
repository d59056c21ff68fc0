"""The `face-api` package's SSD on MobileNetV1: a face detector that redaction doesn't use, so that it can audit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge.manifest import TensorSpec
from models.archives import Store
from models.inputs import unit_input
from models.padding import same_pads
from models.recipes import Built, Recipe
from models.zoo.face_api import Weights, read_archive

if TYPE_CHECKING:
    from models.graph import Graph

_SIDE, _ANCHORS = 512, 5118
_HALVING = (2, 4, 6, 12)  #: the backbone's depthwise layers of stride 2
_EPSILON = 1e-3


def _detector(store: Store) -> Built:
    """Build the network with its box decoding: boxes come out as x, y, width, height in pixels of its input."""
    from models.graph import Graph

    weights = read_archive(store, "ssd_mobilenetv1_model", "2835640602d53718")
    graph = Graph()
    x, size = _pointwise(graph, "image", weights, "MobilenetV1/Conv2d_0_pointwise", _SIDE, stride=2)
    maps = []
    for layer in range(1, 14):
        stride = 2 if layer in _HALVING else 1
        x, size = _depthwise(graph, x, weights, f"MobilenetV1/Conv2d_{layer}_depthwise", size, stride=stride)
        x, size = _pointwise(graph, x, weights, f"MobilenetV1/Conv2d_{layer}_pointwise", size)
        if layer in (11, 13):
            maps.append(x)
    for layer in range(8):
        x, size = _pointwise(graph, x, weights, f"Prediction/Conv2d_{layer}_pointwise", size, stride=1 + layer % 2)
        if layer % 2:
            maps.append(x)
    boxes = graph.op("Concat", *(_predict(graph, x, weights, i, "BoxEncoding", 4) for i, x in enumerate(maps)), axis=1)
    classes = graph.op("Concat", *(_predict(graph, x, weights, i, "Class", 3) for i, x in enumerate(maps)), axis=1)
    _decode(graph, boxes, weights["Output/extra_dim"][0])
    face = graph.op("Gather", classes, graph.weight(np.array([1], np.int64), "i"), axis=2)  # 0 is the background
    graph.op("Sigmoid", graph.op("Flatten", face), name="scores")
    picture = unit_input(127.5, 127.5, _SIDE)
    outputs = (
        TensorSpec(name="boxes", shape=(-1, _ANCHORS, 4), dims=("n", "anchors", "x, y, width, height in px of 512")),
        TensorSpec(name="scores", shape=(-1, _ANCHORS), dims=("n", "anchors")),
    )
    model = graph.model((picture,), outputs, "face_ssd")
    return Built(model.SerializeToString(), ".onnx", {"inputs": (picture,), "outputs": outputs, "decoder": "boxes"})


def _pointwise(graph: Graph, x: str, weights: Weights, name: str, size: int, *, stride: int = 1) -> tuple[str, int]:
    kernel = weights[f"{name}/weights"].transpose(3, 2, 0, 1)
    pads = same_pads(size, kernel.shape[2], stride)
    y = graph.conv(x, kernel, weights[f"{name}/convolution_bn_offset"], stride=stride, pads=pads)
    return graph.relu6(y), -(-size // stride)


def _depthwise(graph: Graph, x: str, weights: Weights, name: str, size: int, *, stride: int) -> tuple[str, int]:
    """A depthwise convolution with its batch normalisation folded in."""
    kernel = weights[f"{name}/depthwise_weights"].transpose(2, 3, 0, 1)
    gamma, beta, mean, variance = (
        weights[f"{name}/BatchNorm/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance")
    )
    factor = gamma / np.sqrt(variance + _EPSILON)
    kernel = kernel * factor[:, None, None, None]
    pads = same_pads(size, 3, stride)
    y = graph.conv(x, kernel, beta - mean * factor, stride=stride, pads=pads, group=len(kernel))
    return graph.relu6(y), -(-size // stride)


def _predict(graph: Graph, x: str, weights: Weights, index: int, kind: str, values: int) -> str:
    """Predict `values` numbers per anchor of one feature map: (n, anchors, values)."""
    name = f"Prediction/BoxPredictor_{index}/{kind}Predictor"
    y = graph.conv(x, weights[f"{name}/weights"].transpose(3, 2, 0, 1), weights[f"{name}/biases"])
    y = graph.op("Transpose", y, perm=[0, 2, 3, 1])
    return graph.op("Reshape", y, graph.weight(np.array([0, -1, values], np.int64), "shape"))


def _decode(graph: Graph, codes: str, corners: np.ndarray) -> None:
    """Add the output `boxes` from codes (y, x, height, width) and anchors (top, left, bottom, right in 0..1)."""
    sizes = (corners[:, 2:] - corners[:, :2]).astype(np.float32)
    centres = (corners[:, :2] + sizes / 2).astype(np.float32)
    ends = [graph.weight(np.array(i, np.int64), "i") for i in ([0], [2], [4])]
    axis = graph.weight(np.array([2], np.int64), "axis")
    shift = graph.op("Slice", codes, ends[0], ends[1], axis)
    scale = graph.op("Slice", codes, ends[1], ends[2], axis)
    size = graph.op("Mul", graph.op("Exp", graph.op("Mul", scale, graph.constant(1 / 5))), graph.weight(sizes))
    moved = graph.op("Mul", shift, graph.weight(sizes / 10))
    centre = graph.op("Add", moved, graph.weight(centres))
    corner = graph.op("Sub", centre, graph.op("Mul", size, graph.constant(0.5)))
    yxhw = graph.op("Mul", graph.op("Concat", corner, size, axis=2), graph.constant(float(_SIDE)))
    order = graph.weight(np.array([1, 0, 3, 2], np.int64), "order")
    graph.op("Gather", yxhw, order, axis=2, name="boxes")


RECIPES = (Recipe("face_ssd-fp32", "face_detector", "face_api", "1", _detector, group="npm"),)
