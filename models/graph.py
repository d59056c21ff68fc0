"""Builds ONNX graphs layer by layer, for converters that need no training framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from edge.manifest import TensorSpec

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

    def relu6(self, x: str, name: str = "") -> str:
        low, high = (self.weight(np.array(v, dtype=np.float32), "c") for v in (0.0, 6.0))
        return self.op("Clip", x, low, high, name=name)

    def model(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], name: str) -> onnx.ModelProto:
        """Return the checked model. A free size keeps its name from `dims`, or is called after its place."""
        graph = helper.make_graph(
            self._nodes, name, [_value(s) for s in inputs], [_value(s) for s in outputs], self._weights
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="emogaze")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model


def fold_batch_norm(
    kernel: Array, norm: dict[str, Array], epsilon: float, bias: Array | None = None
) -> tuple[Array, Array]:
    """Return kernel and bias of the convolution that equals `kernel` followed by batch normalisation.

    `norm` holds `weight`, `bias`, `running_mean` and `running_var`, each (out,). Computed in float64.
    """
    n = {key: value.astype(np.float64) for key, value in norm.items()}
    factor = n["weight"] / np.sqrt(n["running_var"] + epsilon)
    shift = n["bias"] + ((0.0 if bias is None else bias.astype(np.float64)) - n["running_mean"]) * factor
    return (kernel * factor[:, None, None, None]).astype(np.float32), shift.astype(np.float32)


def _value(spec: TensorSpec) -> onnx.ValueInfoProto:
    names = spec.dims or tuple(f"{spec.name}_{i}" for i in range(len(spec.shape)))
    shape = [side if side > 0 else label for side, label in zip(spec.shape, names, strict=True)]
    return helper.make_tensor_value_info(spec.name, _TYPES[spec.dtype], shape)
