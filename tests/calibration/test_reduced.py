"""Sixteen bits: which layers stay in FP32, and that the runtime heeds it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import onnx
import pytest

from calibration.int8 import open_content
from calibration.pictures import crops, load
from calibration.reduced import first_layers
from edge.backends import openvino
from edge.backends.base import Model
from edge.errors import BackendError
from models.embedders import embed
from tests.conftest import need


def test_layers_stay_from_the_beginning(tiny: Model) -> None:
    found = list(first_layers(tiny.manifest))
    assert [sum("conv" in name for name in names) for names in found] == [0, 1, 2]
    assert found[0] == () and found[1][0] == found[2][0] == "n_conv_0"
    assert set(found[1]) < set(found[2])


@pytest.fixture
def half(tiny: Model, pictures) -> Callable[[tuple[str, ...]], float]:
    """Mean error of the embedding in BF16 with some nodes in FP32."""
    if "BF16" not in need("openvino").Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor computes no BF16")
    images = crops(load(pictures).held, 8)
    expected, content = embed(tiny, images), tiny.manifest.path.read_bytes()

    def error(kept: tuple[str, ...]) -> float:
        described = msgspec.structs.replace(tiny.manifest, fp32_nodes=kept)
        with open_content(described, content, "bf16", backend="openvino") as model:
            return float(np.abs(embed(model, images) - expected).mean())

    return error


def test_what_stays_in_fp32_is_computed_in_fp32(tiny: Model, half: Callable[[tuple[str, ...]], float]) -> None:
    nodes = tuple(node.name for node in onnx.load(tiny.manifest.path).graph.node)
    assert half(nodes) < 1e-6
    assert half(()) > 1e-4


def test_a_runtime_that_does_not_heed_it_is_refused(half, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino, "_KEEP", ({"name": "no such mark", "version": "0"},))
    with pytest.raises(BackendError, match=r"doesn't keep n_conv_0 in FP32; got bf16"):
        half(("n_conv_0",))
