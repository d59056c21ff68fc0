"""INT8 for TFLite, on a workstation: a PyTorch network through litert-torch, quantised with ai-edge-quantizer.

Two things are done otherwise than it does them by itself. A tensor's range is the upper quartile over the pictures of
each picture's extremes: its own moving average depends on which pictures come last, and plain extremes are outliers
(MobileNetV2, rank correlation of FCC: .953 and .935, against .979). And the first layers stay in float until the
artefact passes its gate, since what they round is amplified by all that follows.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calibration.int8 import quiet
from edge.errors import ModelError
from edge.manifest import Manifest, TensorSpec
from edge.records import Image
from models.embedders import batches

_QUARTILE = 75.0  # percent of the pictures whose extremes a range holds
_KEPT = (0, 1, 2, 4, 8)  #: how many convolutions stay in float, from the beginning, tried in this order


def convert(
    reference: Manifest, architecture: str, weights: Path, crops: list[Image]
) -> Iterator[tuple[bytes, dict[str, Any], tuple[str, ...]]]:
    """Convert one of torchvision's networks and quantise it, with ever more of its first layers in float.

    Parameters
    ----------
    reference : Manifest
        The FP32 artefact of the same network: how pictures are prepared, and the embedding's size.
    architecture : str
        Its name in `torchvision.models`.
    weights : Path
        Its state dict.
    crops : list of pictures
        What to calibrate on.

    Yields
    ------
    bytes, dict, tuple of str
        The TFLite file, the `inputs` and `outputs` of its manifest, and the operations that are left in float.

    Raises
    ------
    ModelError
        A package is missing, the architecture is unknown, or the weights don't fit it.
    """
    try:
        import litert_torch
        import torch
        from ai_edge_quantizer import algorithm_manager, quantizer, recipe
        from ai_edge_quantizer.qtyping import TFLOperationName
    except ImportError as error:
        fix = "pip install litert-torch torchvision, on a workstation"
        raise ModelError("calibration tflite", f"needs litert-torch: {error}", fix=fix) from error
    picture = _channels_last(reference.input())
    network = litert_torch.to_channel_last_io(_embedder(architecture, weights), args=[0])
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "float.tflite"
        litert_torch.convert(network, (torch.zeros(1, *picture.shape[1:]),)).export(str(plain))
        ranges = _ranges(quantizer.Quantizer(str(plain), recipe.static_wi8_ai8()), plain, crops, picture)
        for kept in _first_layers(plain):
            job = quantizer.Quantizer(str(plain), recipe.static_wi8_ai8())
            for scope in kept.values():
                job.update_quantization_recipe(
                    f"^{re.escape(scope)}",
                    TFLOperationName.ALL_SUPPORTED,
                    algorithm_key=algorithm_manager.AlgorithmName.NO_QUANTIZE,
                )
            quantised = Path(folder) / f"int8-{len(kept)}.tflite"
            with quiet():
                job.quantize(ranges).export_model(str(quantised))
            yield quantised.read_bytes(), _described(quantised, picture, reference.output("features")), tuple(kept)


def _ranges(job: Any, plain: Path, crops: list[Image], picture: TensorSpec) -> dict[str, Any]:
    """Calibrate on each picture by itself, and return each tensor's range over all of them."""
    signature, name = _signature(plain)
    seen = [job.calibrate({signature: [{name: pixels}]}, num_threads=1) for pixels in batches(crops, picture, 1)]
    ranges = {}
    for tensor, first in seen[0].items():
        ranges[tensor] = dict(first)
        for key, percent in (("min", 100 - _QUARTILE), ("max", _QUARTILE)):
            if key in first:
                values = np.stack([one[tensor][key] for one in seen])
                ranges[tensor][key] = np.percentile(values, percent, axis=0).astype(np.float32)
    return ranges


def _first_layers(plain: Path) -> Iterator[dict[str, str]]:
    """Yield the operations up to the n-th convolution, for ever more n: a name for people, and its scope in a recipe.

    The quantizer knows an operation by the name of its output.
    """
    from ai_edge_quantizer.utils import tfl_flatbuffer_utils as flatbuffer

    model = flatbuffer.read_model(plain)
    (graph,) = model.subgraphs
    kinds = [flatbuffer.get_op_name_by_index(model, 0, i).value for i in range(len(graph.operators))]
    ends = [i + 1 for i, kind in enumerate(kinds) if "CONV" in kind]
    for n in _KEPT:
        if n <= len(ends):
            first = graph.operators[: ends[n - 1] if n else 0]
            yield {
                f"{i} {kinds[i]}": flatbuffer.get_tensor_name(graph.tensors[operation.outputs[0]])
                for i, operation in enumerate(first)
            }


def _embedder(architecture: str, weights: Path) -> Any:
    """Return the network up to the mean of its last feature map, as a PyTorch module."""
    import torch
    import torchvision

    build = getattr(torchvision.models, architecture, None)
    if build is None:
        raise ModelError("calibration tflite", f"torchvision has no {architecture!r}")
    network = build(weights=None)
    try:
        network.load_state_dict(torch.load(weights, weights_only=True))
    except (OSError, RuntimeError) as error:
        raise ModelError(str(weights), f"doesn't fit {architecture}: {str(error).splitlines()[0]}") from error
    body = getattr(network, "features", None) or torch.nn.Sequential(*list(network.children())[:-2])
    return torch.nn.Sequential(body, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).eval()


def _channels_last(spec: TensorSpec) -> TensorSpec:
    import msgspec

    width, height = spec.size()
    return msgspec.structs.replace(spec, shape=(-1, height, width, 3), layout="NHWC", dims=())


def _signature(file: Path) -> tuple[str, str]:
    """Return the name of a file's one signature, and of its one input."""
    from ai_edge_litert.interpreter import Interpreter

    ((name, parts),) = Interpreter(str(file)).get_signature_list().items()
    return name, parts["inputs"][0]


def _described(file: Path, picture: TensorSpec, features: TensorSpec) -> dict[str, Any]:
    """Return inputs and outputs under the names that the file has for them."""
    import msgspec
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(file))
    (given,), (got,) = interpreter.get_input_details(), interpreter.get_output_details()
    return {
        "inputs": (msgspec.structs.replace(picture, node=given["name"]),),
        "outputs": (msgspec.structs.replace(features, node=got["name"]),),
    }
