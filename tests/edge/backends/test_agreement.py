"""On the same inputs, every runtime agrees with ONNX Runtime's FP32, as far as the artefact's own drift allows."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge import plugins
from edge.backends.base import PACKAGE, new_batch, open_artefact, why_not
from edge.config import ModelsConfig
from edge.manifest import Manifest, load_manifest
from edge.preprocess import fill_input
from tests.conftest import missing

REFERENCE = "mobilenet_v2-fp32"


def embed(manifest: Manifest, backend: str, folder: Path) -> np.ndarray:
    """Features of the canary picture and of three windows of it."""
    image = cv2.imread(str(folder / REFERENCE / "canary.png"))
    spec = manifest.input()
    batch = new_batch(spec, 4)
    for item, part in zip(batch, (image, image[:90, :90], image[60:160, 80:180], image[120:, 100:]), strict=True):
        fill_input(part, spec, item)
    model = open_artefact(manifest, ModelsConfig(), backend=backend)
    features = model.infer({spec.name: batch}, ("features",))["features"]
    model.close()
    return features


@pytest.mark.parametrize("name", [REFERENCE, "mobilenet_v2-bf16", "mobilenet_v2-int8-u8s8", "mobilenet_v2-int8-s8s8"])
@pytest.mark.parametrize("backend", plugins.names(PACKAGE))
def test_backends_agree(artefacts: Path, backend: str, name: str) -> None:
    if not (artefacts / name).exists():
        missing("int8", f"no {name} here; `python -m calibration` makes it")
    manifest = load_manifest(artefacts / name)
    reason = why_not(plugins.load(PACKAGE, backend, setting="test"), manifest)
    if reason:
        pytest.skip(f"{backend}: {reason}")
    expected = embed(load_manifest(artefacts / REFERENCE), "onnxruntime", artefacts)
    got = embed(manifest, backend, artefacts)
    cosine = (got * expected).sum(axis=1) / np.linalg.norm(got, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > manifest.drift.get("cosine_raw_p05", 0.99999) - 0.02 * (name != REFERENCE)
