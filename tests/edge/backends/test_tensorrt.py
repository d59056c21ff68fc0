"""The engine builder on TensorRT-RTX, which needs no GPU; and that nothing of TensorRT is touched without a driver."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest

from edge.backends import _cuda, _trt_engine, tensorrt
from edge.backends._trt_engine import EngineKey, build, load_or_build
from edge.errors import BackendError
from edge.manifest import Manifest, list_artefacts, load_manifest
from tests.conftest import missing

KEY = EngineKey("Orin (8.7)", "10.3.0", "ab" * 32, "fp32", "gpu", (1, 2))


@pytest.fixture(scope="module")
def rtx() -> ModuleType:
    try:
        import tensorrt_rtx
    except ImportError as error:
        missing("tensorrt_rtx", str(error))
    return tensorrt_rtx


@pytest.fixture
def emotion(artefacts: Path) -> Manifest:
    return load_manifest(artefacts / "mini_xception-fp32")


def test_builds_a_real_artefact(rtx: ModuleType, emotion: Manifest) -> None:
    assert len(build(rtx, emotion, batches=(1, 4))) > 100_000


@pytest.mark.long
def test_every_s8s8_artefact_here_builds(rtx: ModuleType, artefacts: Path) -> None:
    found = [m for m in list_artefacts(artefacts) if m.precision == "int8-s8s8"]
    if not found:
        missing("int8", "no S8S8 artefact; run `python -m calibration int8 mobilenet_v2-fp32 --images DIR`")
    for manifest in found:
        assert len(build(rtx, manifest)) > manifest.path.stat().st_size / 2, manifest.name


def test_free_sides_are_refused(rtx: ModuleType, artefacts: Path) -> None:
    with pytest.raises(
        BackendError, match=r"has a free size; expected fixed sizes but for the batch; got \(-1, 3, -1, -1\)"
    ):
        build(rtx, load_manifest(artefacts / "centerface-fp32"))


def test_what_is_no_onnx_is_one_line(rtx: ModuleType, emotion: Manifest, tmp_path: Path) -> None:
    (tmp_path / emotion.file).write_bytes(b"no model")
    with pytest.raises(BackendError, match="TensorRT can't parse it") as error:
        build(rtx, msgspec.structs.replace(emotion, folder=tmp_path))
    assert "\n" not in str(error.value)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count builds instead of making them: what is tested is when one is made."""
    calls: list[str] = []

    def count(trt: ModuleType, manifest: Manifest, **options: object) -> bytes:
        calls.append(manifest.name)
        options["timing"].extend(b"learnt")
        return b"plan %d" % len(calls)

    monkeypatch.setattr(_trt_engine, "build", count)
    return calls


def test_a_plan_is_built_once(counted: list[str], emotion: Manifest, tmp_path: Path) -> None:
    trt = SimpleNamespace()
    assert load_or_build(trt, emotion, KEY, tmp_path) == b"plan 1"
    assert load_or_build(trt, emotion, KEY, tmp_path) == b"plan 1"
    assert len(counted) == 1
    assert [p.read_bytes() for p in tmp_path.glob("timing-*.cache")] == [b"learnt"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"gpu": "Xavier (7.2)"}, id="another GPU"),
        pytest.param({"tensorrt": "11.4.0"}, id="another TensorRT"),
        pytest.param({"model_sha256": "cd" * 32}, id="another model"),
        pytest.param({"precision": "fp16"}, id="another precision"),
        pytest.param({"accelerator": "dla"}, id="another accelerator"),
    ],
)
def test_a_foreign_plan_is_never_used(counted: list[str], emotion: Manifest, tmp_path: Path, change: dict) -> None:
    import dataclasses

    load_or_build(SimpleNamespace(), emotion, KEY, tmp_path)
    # Even under the name that the other key would have.
    other = dataclasses.replace(KEY, **change)
    for file in tmp_path.glob(f"*{KEY.digest}*"):
        file.rename(tmp_path / file.name.replace(KEY.digest, other.digest))
    assert load_or_build(SimpleNamespace(), emotion, other, tmp_path) == b"plan 2"


@pytest.mark.parametrize("spoil", ["cut", "no note", "note of another plan", "note is no JSON"])
def test_a_damaged_plan_is_built_again(counted: list[str], emotion: Manifest, tmp_path: Path, spoil: str) -> None:
    load_or_build(SimpleNamespace(), emotion, KEY, tmp_path)
    plan, note = next(tmp_path.glob("*.plan")), next(tmp_path.glob("*.json"))
    if spoil == "cut":
        plan.write_bytes(plan.read_bytes()[:-1])
    elif spoil == "no note":
        note.unlink()
    elif spoil == "note is no JSON":
        note.write_text("{")
    else:
        note.write_text(json.dumps({**json.loads(note.read_text()), "plan_sha256": "00"}))
    assert load_or_build(SimpleNamespace(), emotion, KEY, tmp_path) == b"plan 2"


def test_without_a_driver_it_says_so_and_loads_nothing() -> None:
    reason = tensorrt.missing()
    if not reason:
        pytest.skip("this machine has TensorRT and a GPU")
    assert "not installed" in reason or reason == _cuda.missing() != ""
