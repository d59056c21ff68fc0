"""INT8 for TFLite, on a workstation: a PyTorch network through litert-torch, calibrated with ai-edge-quantizer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from edge.errors import ModelError
from edge.manifest import Manifest, TensorSpec
from edge.records import Image
from models.embedders import batches


def convert(reference: Manifest, architecture: str, weights: Path, crops: list[Image]) -> tuple[bytes, dict[str, Any]]:
    """Convert one of torchvision's networks and quantise weights and activations, per channel where LiteRT can.

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

    Returns
    -------
    bytes, dict
        The TFLite file, and the `inputs` and `outputs` of its manifest.

    Raises
    ------
    ModelError
        A package is missing, the architecture is unknown, or the weights don't fit it.
    """
    try:
        import litert_torch
        import torch
        from ai_edge_quantizer import quantizer, recipe
    except ImportError as error:
        fix = "pip install litert-torch torchvision, on a workstation"
        raise ModelError("calibration tflite", f"needs litert-torch: {error}", fix=fix) from error
    picture = _channels_last(reference.input())
    network = litert_torch.to_channel_last_io(_embedder(architecture, weights), args=[0])
    with tempfile.TemporaryDirectory() as folder:
        plain, quantised = Path(folder) / "float.tflite", Path(folder) / "int8.tflite"
        litert_torch.convert(network, (torch.zeros(1, *picture.shape[1:]),)).export(str(plain))
        job = quantizer.Quantizer(str(plain), recipe.static_wi8_ai8())
        signature, name = _signature(plain)
        seen = job.calibrate({signature: [{name: pixels} for pixels in batches(crops, picture, 1)]}, num_threads=1)
        job.quantize(seen).export_model(str(quantised))
        return quantised.read_bytes(), _described(quantised, picture, reference.output("features"))


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
