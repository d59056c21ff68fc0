"""The rows of the models table."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.models import rows
from edge.manifest import load_manifest
from edge.tune import Measurement


def measured(artefact: str, backend: str, ms: float, reason: str = "") -> Measurement:
    times = {} if reason else {"n": 1.0, "p50": ms, "p90": ms, "p99": 2 * ms, "max": 2 * ms}
    return Measurement(artefact, backend, "cpu", 1, times, times, 100.0, 50.0, None, reason)


def test_ratio_is_to_the_reference_on_onnx_runtime(artefacts: Path) -> None:
    base = load_manifest(artefacts / "mobilenet_v2-fp32")
    int8 = msgspec.structs.replace(base, name="q", reference=base.name, drift={"dfcc_median": 0.006}, gate="passed")
    unmeasured = msgspec.structs.replace(base, name="u", reference="other", drift={})
    found = [
        measured(base.name, "onnxruntime", 12.0),
        measured(base.name, "openvino", 10.0),
        measured("q", "openvino", 3.0),
        measured("q", "onnxruntime", 0.0, reason="crashed"),
        measured("u", "openvino", 3.0),
    ]
    table = rows([base, int8, unmeasured], found)
    assert [row["ratio"] for row in table] == [pytest.approx(1.0), pytest.approx(1.2), pytest.approx(4.0), None, None]
    assert [row["drift_median_dfcc"] for row in table] == [0.0, 0.0, 0.006, 0.006, None]
    assert table[2]["p99_ms"] == 6.0 and table[3]["reason"] == "crashed"
