"""A small embedder and pictures to quantise it on, both made here."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.backends.base import Model, open_model
from edge.config import ModelsConfig
from edge.manifest import Manifest, TensorSpec
from models.graph import Graph
from models.recipes import write_artefact
from models.state import seeded

SIDE = 32


def tiny_content() -> bytes:
    """Three convolutions, one of them depthwise with channels of very different size, as in a MobileNet."""
    weights, graph = seeded(3), Graph()
    x = graph.relu6(graph.conv("image", weights("a", (8, 3, 3, 3)), np.zeros(8), stride=2, pads=1))
    deep = weights("b", (8, 1, 3, 3)) * np.array([0.1, 1, 0.3, 2, 0.5, 1, 0.2, 3])[:, None, None, None]
    x = graph.relu6(graph.conv(x, deep, np.full(8, 0.3), pads=1, group=8))
    x = graph.op("Relu", graph.conv(x, weights("c", (16, 8, 1, 1)), np.zeros(16)), name="map")
    graph.pool_features(x)
    return graph.model(INPUTS, OUTPUTS, "tiny").SerializeToString()


INPUTS = (
    TensorSpec(
        name="image",
        shape=(-1, 3, SIDE, SIDE),
        layout="NCHW",
        colour="RGB",
        mean=(127.5,) * 3,
        scale=(1 / 64,) * 3,
        dims=("n", "channels", "height", "width"),
    ),
)
OUTPUTS = (
    TensorSpec(name="features", shape=(-1, 16), dims=("n", "features")),
    TensorSpec(name="map", shape=(-1, 16, 16, 16), dims=("n", "features", "rows", "columns")),
)


@pytest.fixture
def tiny(tmp_path: Path) -> Model:
    """The embedder as an FP32 artefact, opened."""
    import hashlib

    content = tiny_content()
    manifest = Manifest(
        folder=tmp_path / "models" / "tiny-fp32",
        name="tiny-fp32",
        version="1",
        role="embedder",
        precision="fp32",
        file="tiny-fp32.onnx",
        sha256=hashlib.sha256(content).hexdigest(),
        inputs=INPUTS,
        outputs=OUTPUTS,
        source="test",
        licence="Apache-2.0",
        weights="seeded",
        mean_local=np.full(16, 0.4, dtype=np.float32),
        mean_global=np.full(16, 0.4, dtype=np.float32),
    )
    write_artefact(manifest, {manifest.file: content})
    return open_model("tiny-fp32", ModelsConfig(dir=str(tmp_path / "models"), backend="onnxruntime"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of six pictures of coloured blobs."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(6):
        blobs = cv2.resize(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8), (320, 240), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"{i}.png"), blobs)
    return folder
