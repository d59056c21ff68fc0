"""PyTorch definitions as ONNX artefacts."""

from __future__ import annotations

import tempfile
from pathlib import Path

from edge.errors import ModelError
from edge.manifest import Manifest, TensorSpec
from models.export import Origin, write_embedder
from models.inputs import imagenet_input

_OPSET = 18


def export_multiscale(weights: Path | None, name: str, origin: Origin, target: Path) -> Manifest:
    """Export `MultiScaleResNet` with a state dict, or with seeded weights, which the artefact then says.

    Raises
    ------
    ModelError
        PyTorch isn't installed, or the weights don't fit.
    """
    try:
        import torch

        from models.definitions.multiscale_resnet import GLOBAL_DIM, LOCAL_DIM, MultiScaleResNet
    except ImportError as error:
        fix = "pip install 'emogaze-edge[export]'"
        raise ModelError("multiscale_resnet", f"needs PyTorch: {error}", fix=fix) from error
    torch.manual_seed(0)
    network = MultiScaleResNet()
    if weights:
        try:
            network.load_state_dict(torch.load(weights, weights_only=True))
        except (OSError, RuntimeError) as error:
            raise ModelError(str(weights), f"doesn't fit: {str(error).splitlines()[0]}") from error
    network.eval()
    example = torch.zeros(2, 3, 224, 224)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        torch.onnx.export(
            network,
            (example,),
            str(file),
            input_names=["image"],
            output_names=["local", "global"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            opset_version=_OPSET,
            external_data=False,
            verbose=False,
        )
        content = file.read_bytes()
    outputs = (
        TensorSpec(name="local", shape=(-1, LOCAL_DIM), dims=("n", "features")),
        TensorSpec(name="global", shape=(-1, GLOBAL_DIM), dims=("n", "features")),
    )
    said = origin if weights else Origin("seeded", "Apache-2.0", "seeded")
    return write_embedder(name, content, said, target, {"inputs": (imagenet_input(),), "outputs": outputs})
