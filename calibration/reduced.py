"""FP16 and BF16: half the bits, and the first layers kept in FP32 where that is too few.

What is rounded early is amplified by all that follows, so the layers that stay are taken from the beginning. FP16 is
another file; BF16 is the same file, computed in BF16 by a runtime that can, and its manifest names what stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from calibration.drift import Judge, passes
from calibration.int8 import open_content, quiet
from calibration.pictures import Pictures
from edge.backends.base import Model
from edge.manifest import Manifest
from edge.records import Image
from models.embedders import means

_KEPT = (0, 1, 2, 3, 4, 6, 8)  #: how many convolutions stay, tried in this order until the gate is passed


def first_layers(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    """Yield the names of the nodes before the convolution after the first n, for ever more n."""
    import onnx

    nodes = onnx.load(manifest.path).graph.node
    starts = [i for i, node in enumerate(nodes) if node.op_type == "Conv"]
    for n in _KEPT:
        if n < len(starts):
            yield tuple(node.name for node in nodes[: starts[n]])


def reduce(
    reference: Model, precision: str, pictures: Pictures, picture_set: list[Image]
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield ever more careful models until one passes the gate: content, and fields of its manifest."""
    manifest = reference.manifest
    judge = Judge(reference, {**pictures.calibration, **pictures.held}, answers=pictures.answers)
    backend = "openvino" if precision == "bf16" else "onnxruntime"
    for kept in first_layers(manifest):
        content = manifest.path.read_bytes() if precision == "bf16" else to_fp16(manifest, kept)
        described = msgspec.structs.replace(manifest, fp32_nodes=kept if precision == "bf16" else ())
        with open_content(described, content, precision, backend=backend) as model:
            fields = means(model, picture_set)
            model.manifest = msgspec.structs.replace(model.manifest, **fields)
            report = judge.measure(model) | {"layers_in_float": list(kept)}
        yield content, {**fields, "fp32_nodes": described.fp32_nodes, "drift": report}
        if passes(report):
            return


def to_fp16(manifest: Manifest, kept: tuple[str, ...] = ()) -> bytes:
    """Return an ONNX model with weights and arithmetic in FP16, but for the nodes `kept`; inputs and outputs stay."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        converted = convert_float_to_float16(onnx.load(manifest.path), keep_io_types=True, node_block_list=list(kept))
    content: bytes = converted.SerializeToString()
    return content
