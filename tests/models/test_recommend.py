"""The device's default, and where measurements contradict the published orders."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import msgspec
import pytest

from edge.manifest import load_manifest
from models.recommend import ORDERS, Row, device_default, disagreements, measure, separation, verdict


def row(name: str, ms: float, auc: float, trained: bool = True) -> Row:
    return Row(name, "onnxruntime", ms, auc, auc - 0.05, 0.5, trained)


ROWS = [
    row("mobilenet_v2-fp32", 12.0, 0.965),
    row("efficientnet_lite0-fp32", 13.0, 0.951),
    row("mobilenet_v3_large_075-fp32", 8.0, 0.909),
    row("resnet50-seeded-fp32", 100.0, 0.99, trained=False),
    row("resnet101-seeded-fp32", 90.0, 0.60, trained=False),
]


def test_the_default_is_the_fastest_that_is_near_the_best() -> None:
    default = device_default(ROWS)
    assert default is not None and default.name == "mobilenet_v2-fp32"
    faster = device_default([*ROWS, row("other-fp32", 5.0, 0.946)])
    assert faster is not None and faster.name == "other-fp32"
    assert device_default([*ROWS, row("other-fp32", 5.0, 0.944)]) == default
    assert device_default(ROWS[3:]) is None, "seeded weights are never a default"


@pytest.mark.parametrize(
    ("aim", "rows", "said"),
    [
        pytest.param("realtime", ROWS, [], id="MobileNetV3 is faster, as it is said"),
        pytest.param(
            "realtime",
            [row("mobilenet_v3_large_075-fp32", 14.0, 0.9), ROWS[1]],
            ["efficientnet_lite0-fp32 is faster than mobilenet_v3_large_075-fp32: 13.0 to 14.0 ms"],
            id="it is slower here",
        ),
        pytest.param("quality", ROWS, [], id="seeded weights say nothing about quality"),
        pytest.param(
            "quality",
            [row("resnet50-fp32", 50, 0.97), row("resnet101-fp32", 90, 0.95)],
            ["resnet50-fp32 separates better than resnet101-fp32: 0.970 to 0.950"],
            id="the deeper one separates worse",
        ),
    ],
)
def test_disagreements(aim: str, rows: list[Row], said: list[str]) -> None:
    assert disagreements(ORDERS[aim], rows, aim) == said


def test_an_order_of_what_is_not_here_is_not_judged() -> None:
    assert verdict(ORDERS["realtime"], ROWS, "realtime") == "nothing here contradicts it"
    assert "fewer than two of them are here with trained weights" in verdict(ORDERS["quality"], ROWS, "quality")


def test_seeded_weights_are_measured_for_latency_alone(artefacts: Path, tmp_path: Path) -> None:
    seeded = msgspec.structs.replace(load_manifest(artefacts / "mobilenet_v2-fp32"), weights="seeded")
    (only,) = measure([seeded], {}, tmp_path / "known.json", lambda name, backend: 7.0)
    assert only.latency_ms == 7.0 and not only.trained and math.isnan(only.auc)
    assert not (tmp_path / "known.json").exists()


@pytest.mark.long
def test_separation_is_measured_once(artefacts: Path, tmp_path: Path) -> None:
    manifest = load_manifest(artefacts / "mobilenet_v2-fp32")
    pictures = {"canary": cv2.resize(cv2.imread(str(manifest.folder / "canary.png")), (448, 448))}
    first = separation(manifest, pictures, tmp_path / "known.json")
    assert 0.5 < first[0] <= 1 and first[0] == first[1] and first[2] > 0
    assert separation(manifest, {}, tmp_path / "known.json") == first
