"""The graphs that are built without PyTorch give what torchvision gives with the same state dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.architectures import ARCHITECTURES
from models.state import from_state_dict
from tests.conftest import need

pytestmark = pytest.mark.long


def with_random_norms(network: Any, torch: Any) -> Any:
    """Give every normalisation statistics of its own: with fresh ones (0, 1) a mistake in folding would not show."""
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values, low, high in (
                (module.running_mean, -0.2, 0.2),
                (module.running_var, 0.5, 1.5),
                (module.weight.data, 0.5, 1.5),
                (module.bias.data, -0.2, 0.2),
            ):
                values.uniform_(low, high)
    return network.eval()


@pytest.mark.parametrize(
    "name", ["mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "resnet50", "resnet101", "vgg16"]
)
def test_same_state_dict_same_features(name: str, tmp_path: Path) -> None:
    torch, vision, ort = need("torch"), need("torchvision"), need("onnxruntime")
    torch.manual_seed(0)
    network = with_random_norms(getattr(vision.models, name)(weights=None), torch)
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    model = ARCHITECTURES[name].model(from_state_dict(tmp_path / "weights.pth"), name)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    pixels = np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)
    got = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"image": pixels}), strict=True))
    body = getattr(network, "features", None) or torch.nn.Sequential(*list(network.children())[:-2])
    with torch.no_grad():
        last = body(torch.from_numpy(pixels))
        expected = {"map": last.numpy(), "features": last.mean(dim=(2, 3)).numpy()}
        if "logits" in got:
            expected["logits"] = network(torch.from_numpy(pixels)).numpy()
    assert got.keys() == expected.keys()
    for output, values in expected.items():
        np.testing.assert_allclose(got[output], values, rtol=1e-3, atol=1e-4 * np.abs(values).max(), err_msg=output)
