"""Builds ONNX graphs layer by layer, for converters that need no training framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from edge.manifest import TensorSpec
from models.state import Weights

OPSET = 17  # the newest that every runtime of the last years reads
IR_VERSION = 8
_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
Array = npt.NDArray[Any]


class Graph:
    """Collects nodes and weights; each method adds a layer and returns the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def weight(self, array: Array, hint: str = "w") -> str:
        name = f"{hint}_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one result. `name`: of the result, where it is an output of the graph."""
        result = name or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [result], name=f"n_{result}", **attributes))
        return result

    def conv(
        self,
        x: str,
        kernel: Array,
        bias: Array | None = None,
        *,
        stride: int = 1,
        pads: int | list[int] = 0,
        group: int = 1,
    ) -> str:
        """Convolution with `kernel` (out, in / group, kh, kw); `pads`: one number, or [top, left, bottom, right]."""
        inputs = [x, self.weight(kernel.astype(np.float32))]
        if bias is not None:
            inputs.append(self.weight(bias.astype(np.float32), "b"))
        sides = [pads] * 4 if isinstance(pads, int) else pads
        return self.op(
            "Conv", *inputs, strides=[stride] * 2, pads=sides, group=group, kernel_shape=list(kernel.shape[2:])
        )

    def constant(self, value: float) -> str:
        return self.weight(np.array(value, dtype=np.float32), "c")

    def relu6(self, x: str, name: str = "") -> str:
        return self.op("Clip", x, self.constant(0.0), self.constant(6.0), name=name)

    def hard_sigmoid(self, x: str) -> str:
        return self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)

    def hard_swish(self, x: str, name: str = "") -> str:
        return self.op("Mul", x, self.hard_sigmoid(x), name=name)

    def linear(self, x: str, weight: Array, bias: Array, name: str = "") -> str:
        """Fully connected layer with `weight` (out, in)."""
        return self.op("Gemm", x, self.weight(weight), self.weight(bias, "b"), transB=1, name=name)

    def pool_features(self, feature_map: str) -> str:
        """Add the embedder's output `features`: the mean of its last feature map."""
        return self.op("Flatten", self.op("GlobalAveragePool", feature_map), name="features")

    def model(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], name: str) -> onnx.ModelProto:
        """Return the checked model. A free size keeps its name from `dims`, or is called after its place."""
        graph = helper.make_graph(
            self._nodes, name, [_value(s) for s in inputs], [_value(s) for s in outputs], self._weights
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="emogaze")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model


class NormedNet(Graph):
    """A graph of convolutions with batch normalisation folded in, its weights asked for by their PyTorch names."""

    def __init__(self, weights: Weights, epsilon: float) -> None:
        super().__init__()
        self.weights, self._epsilon = weights, epsilon

    def conv_norm(
        self,
        x: str,
        names: tuple[str, str],
        shape: tuple[int, int, int],
        *,
        stride: int = 1,
        group: int = 1,
        pads: list[int] | None = None,
    ) -> str:
        """Convolution `names[0]` and normalisation `names[1]`; `shape`: channels out, in, and the kernel's side."""
        out, channels, side = shape
        kernel = self.weights(f"{names[0]}.weight", (out, channels // group, side, side))
        norm = {k: self.weights(f"{names[1]}.{k}", (out,)) for k in ("weight", "bias", "running_mean", "running_var")}
        kernel, bias = fold_batch_norm(kernel, norm, self._epsilon)
        return self.conv(x, kernel, bias, stride=stride, pads=side // 2 if pads is None else pads, group=group)

    def classify(self, x: str, name: str, shape: tuple[int, int], output: str = "") -> str:
        """Fully connected layer `name`; `shape`: out, in."""
        return self.linear(x, self.weights(f"{name}.weight", shape), self.weights(f"{name}.bias", shape[:1]), output)


def fold_batch_norm(kernel: Array, norm: dict[str, Array], epsilon: float) -> tuple[Array, Array]:
    """Return kernel and bias of the convolution that equals `kernel` followed by batch normalisation.

    `norm` holds `weight`, `bias`, `running_mean` and `running_var`, each (out,). Computed in float64.
    """
    n = {key: value.astype(np.float64) for key, value in norm.items()}
    factor = n["weight"] / np.sqrt(n["running_var"] + epsilon)
    shift = n["bias"] - n["running_mean"] * factor
    return (kernel * factor[:, None, None, None]).astype(np.float32), shift.astype(np.float32)


def _value(spec: TensorSpec) -> onnx.ValueInfoProto:
    names = spec.dims or tuple(f"{spec.name}_{i}" for i in range(len(spec.shape)))
    shape = [side if side > 0 else label for side, label in zip(spec.shape, names, strict=True)]
    return helper.make_tensor_value_info(spec.name, _TYPES[spec.dtype], shape)
