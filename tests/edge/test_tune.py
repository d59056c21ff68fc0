"""Measuring artefacts, and which of them make the ladder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edge import tune
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.ladder import read_ladder
from edge.manifest import Manifest, list_artefacts, load_manifest
from edge.tune import Measurement, Plan


def measured(artefact: str, backend: str, ms: float, reason: str = "") -> Measurement:
    times = {"n": 1.0, "p50": ms, "p90": ms, "p99": ms + 1, "max": ms + 1}
    return Measurement(artefact, backend, "cpu", 1, times, times, 100.0, 50.0, None, reason)


@pytest.fixture
def manifests(artefacts: Path) -> list[Manifest]:
    """A reference and three made from it, of which one failed its gate."""
    base = load_manifest(artefacts / "mobilenet_v2-fp32")

    def made(name: str, drift: float, gate: str) -> Manifest:
        return msgspec.structs.replace(base, name=name, reference=base.name, drift={"dfcc_median": drift}, gate=gate)

    return [base, made("bf16", 0.002, "passed"), made("int8", 0.006, "passed"), made("bad", 0.05, "failed")]


def test_a_family_is_the_reference_and_what_passed(manifests: list[Manifest]) -> None:
    names = ["mobilenet_v2-fp32", "bf16", "int8"]
    assert [m.name for m in tune.family(manifests, "mobilenet_v2-fp32")] == names
    assert [m.name for m in tune.family(manifests, "int8")] == names
    with pytest.raises(ModelError, match="there is no embedder 'nothing'; expected one of mobilenet_v2-fp32"):
        tune.family(manifests, "nothing")


def test_only_what_was_measured_decides(manifests: list[Manifest]) -> None:
    """INT8 that is slower than BF16 with more drift is no rung, whatever its name; nor is what could not run."""
    found = [
        measured("mobilenet_v2-fp32", "onnxruntime", 12.0),
        measured("mobilenet_v2-fp32", "openvino", 11.0),
        measured("bf16", "openvino", 5.0),
        measured("int8", "onnxruntime", 13.0),
        measured("int8", "openvino", 1.0, reason="crashed"),
    ]
    rungs = tune.ladder(found, manifests).rungs
    assert [(r.artefact, r.backend, r.latency_ms, r.drift) for r in rungs] == [
        ("mobilenet_v2-fp32", "openvino", 11.0, 0.0),
        ("bf16", "openvino", 5.0, 0.002),
    ]


def test_nothing_measured_is_an_error_with_its_reasons(manifests: list[Manifest]) -> None:
    with pytest.raises(ModelError, match=r"nothing could be measured \(int8 on openvino: crashed\)"):
        tune.ladder([measured("int8", "openvino", 1.0, reason="crashed")], manifests)


def test_a_failing_runtime_costs_one_measurement(artefacts: Path) -> None:
    settings = ModelsConfig(dir=str(artefacts), backend="onnxruntime", accelerator="abacus")
    result = tune.measure_apart("mobilenet_v2-fp32", settings, Plan(5, 0))
    assert "onnxruntime has no 'abacus'" in result.reason and result.warm == {}


def test_measures_for_real(artefacts: Path) -> None:
    settings = ModelsConfig(dir=str(artefacts), backend="onnxruntime")
    result = tune.measure_apart("mobilenet_v2-fp32", settings, Plan(5, 1))
    assert result.reason == "" and result.active == "cpu"
    assert result.warm["n"] == result.paced["n"] == 5
    hurried = tune.measure_apart("mobilenet_v2-fp32", settings, Plan(10_000, 0, seconds=0.01))
    assert hurried.warm["n"] == 5, "time is up, but five are the least"
    assert 0 < result.warm["p50"] <= result.warm["max"] and result.memory_mb > 5 and result.open_ms > 0


@pytest.mark.long
def test_the_command_writes_a_ladder(artefacts: Path, tmp_path: Path) -> None:
    file = tmp_path / "ladder.json"
    command = [sys.executable, "-m", "edge.cli", "tune", "-o", str(file), "--samples", "5", "--pace", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {m["artefact"] for m in report["measurements"]} <= {m.name for m in list_artefacts(artefacts)}
    assert [r.artefact for r in read_ladder(file).rungs] == [r["artefact"] for r in report["rungs"]]
