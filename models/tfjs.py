"""Reads TensorFlow.js models: their weights, and graphs of the few operations that mobile backbones are made of."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edge.errors import ModelError
from models.padding import same_pads

if TYPE_CHECKING:
    from models.graph import Graph

Array = npt.NDArray[Any]


def read_weights(manifest: list[dict[str, Any]], content: bytes) -> dict[str, Array]:
    """Return a weights manifest's arrays; 8-bit ones are ``number * scale + min``, 16-bit floats are widened.

    Raises
    ------
    ModelError
        The content is longer or shorter than the manifest says.
    """
    weights, offset = {}, 0
    for entry in (entry for group in manifest for entry in group["weights"]):
        packing = entry.get("quantization", {})
        stored = np.dtype(packing.get("dtype", entry["dtype"]))
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if offset + count * stored.itemsize > len(content):
            raise ModelError("TensorFlow.js weights", f"end before {entry['name']}")
        values = np.frombuffer(content, stored, count, offset).reshape(entry["shape"])
        offset += values.nbytes
        if "scale" in packing:
            values = values.astype(np.float32) * np.float32(packing["scale"]) + np.float32(packing["min"])
        weights[entry["name"]] = values.astype(entry["dtype"])
    if offset != len(content):
        raise ModelError(
            "TensorFlow.js weights", "are longer than their manifest", expected=str(offset), got=str(len(content))
        )
    return weights


class GraphReader:
    """Adds the part of a TensorFlow.js graph that leads to one node to an ONNX graph, from NHWC to NCHW.

    A value is (name, side in pixels, factor): scalar factors are carried along instead of being multiplied, so that
    ``x * relu6(x + 3) * (1/6)`` becomes ``x * HardSigmoid(x)``, which runtimes know.
    """

    def __init__(self, model: dict[str, Any], content: bytes, graph: Graph, size: int) -> None:
        self._nodes = {node["name"]: node for node in model["modelTopology"]["node"]}
        self._weights = read_weights(model["weightsManifest"], content)
        self._graph = graph
        self._values: dict[str, tuple[str, int, float]] = {}
        for node in self._nodes.values():
            if node["op"] == "Placeholder":
                self._values[node["name"]] = ("image", size, 1.0)

    def read(self, name: str) -> tuple[str, int]:
        """Add `name` and all before it; return the ONNX name and the side in pixels."""
        for node in self._before(name):
            value, size, factor = self._add(node)
            # 1/6 in 16 bit is 0.02 % off.
            self._values[node["name"]] = value, size, 1.0 if abs(factor - 1) < 1e-3 else factor
        value, size, factor = self._values[name]
        if factor != 1:
            raise ModelError("TensorFlow.js graph", f"{name} has the factor {factor:g} left")
        return value, size

    def _before(self, name: str) -> list[dict[str, Any]]:
        """The nodes that lead to `name`, each after its inputs."""
        order: dict[str, dict[str, Any]] = {}
        waiting = [name]
        while waiting:
            node = self._nodes[waiting[-1]]
            ahead = [
                i for i in node.get("input", []) if i not in order and i not in self._weights and i not in self._values
            ]
            if ahead:
                waiting.extend(ahead)
            else:
                order[waiting.pop()] = node
        return [node for node in order.values() if node["name"] not in self._values]

    def _add(self, node: dict[str, Any]) -> tuple[str, int, float]:
        kind, inputs = node["op"], node["input"]
        numbers = [float(self._weights[i]) for i in inputs if i in self._weights and self._weights[i].ndim == 0]
        values = [self._values[i] for i in inputs if i in self._values]
        (x, size, factor), graph = values[0], self._graph
        if kind == "Mul" and numbers:
            return x, size, factor * numbers[0]
        if kind == "Mul":
            return graph.op("Mul", x, values[1][0]), max(size, values[1][1]), factor * values[1][2]
        if factor != 1:
            raise ModelError("TensorFlow.js graph", f"{node['name']} takes a scaled value")
        if kind == "Add" and numbers:
            if numbers[0] != 3:
                raise ModelError("TensorFlow.js graph", f"{node['name']} adds {numbers[0]:g}; only x + 3 is known")
            return x, size, 1.0
        if kind == "Add":
            return graph.op("Add", x, values[1][0]), size, 1.0
        if kind == "Relu6":  # only ever after x + 3
            return graph.hard_sigmoid(x), size, 6.0
        if kind == "Mean":
            return graph.op("GlobalAveragePool", x), 1, 1.0
        if kind in ("_FusedConv2D", "FusedDepthwiseConv2dNative"):
            return self._conv(node, x, size)
        raise ModelError("TensorFlow.js graph", f"{node['name']} is of an unknown kind {kind}")

    def _conv(self, node: dict[str, Any], x: str, size: int) -> tuple[str, int, float]:
        kernel, bias = (self._weights[i] for i in node["input"][1:3])
        deep = node["op"] == "FusedDepthwiseConv2dNative"
        kernel = kernel.transpose(2, 3, 0, 1) if deep else kernel.transpose(3, 2, 0, 1)
        attributes = node["attr"]
        stride = int(attributes["strides"]["list"]["i"][1])
        if base64.b64decode(attributes["padding"]["s"]) != b"SAME":
            raise ModelError("TensorFlow.js graph", f"{node['name']} isn't padded as SAME")
        fused = [base64.b64decode(name) for name in attributes["fused_ops"]["list"]["s"]]
        pads, group = same_pads(size, kernel.shape[2], stride), kernel.shape[0] if deep else 1
        result = self._graph.conv(x, kernel, bias, stride=stride, pads=pads, group=group)
        return self._graph.op("Relu", result) if b"Relu" in fused else result, -(-size // stride), 1.0
