"""OpenVINO: ONNX files on Intel and ARM CPUs, Intel GPUs and NPUs. The only runtime here that computes in BF16."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from edge.backends.base import Model, Tensors, check_names
from edge.config import ModelsConfig
from edge.errors import BackendError
from edge.manifest import Manifest

SUFFIXES = (".onnx",)
PRECISIONS = ("fp32", "fp16", "bf16", "int8-u8s8")
DEVICES = {"cpu": "CPU", "gpu": "GPU", "npu": "NPU"}
#: Without a hint it computes in BF16 wherever the CPU can, whatever the file says: an FP32 artefact must mean FP32.
_HINTS = {"bf16": "bf16", "fp16": "f16"}
#: Keeps a layer out of lower precision: the name of the mark since 2026, and the one before; unknown ones are ignored.
_KEEP = (
    {"name": "DisablePrecisionConversion", "version": "0", "value": "dynamic:f16,bf16"},
    {"name": "precise", "version": "0"},
)
_RUNTIME_KEYS = ("layerType", "originalLayersNames", "runtimePrecision")


def missing() -> str:
    return "" if find_spec("openvino") else "not installed: pip install 'emogaze-edge[openvino]'"


def open_session(manifest: Manifest, models: ModelsConfig) -> Model:
    import openvino as ov

    asked = models.accelerator or "cpu"
    if asked not in DEVICES:
        raise BackendError("models.accelerator", f"openvino has no {asked!r}", expected=" | ".join(DEVICES))
    core = ov.Core()
    device = DEVICES[asked]
    if not any(name.split(".")[0] == device for name in core.available_devices):
        device = "CPU"
    capabilities = core.get_property(device, "OPTIMIZATION_CAPABILITIES")
    if manifest.precision == "bf16" and "BF16" not in capabilities:
        raise BackendError(
            f"model {manifest.name}", f"{device} here computes no BF16", expected=", ".join(capabilities)
        )
    settings: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _HINTS.get(manifest.precision, "f32"),
        "CACHE_DIR": str(manifest.folder.parent / ".openvino"),
    }
    if device == "CPU":
        settings |= {"INFERENCE_NUM_THREADS": models.threads, "NUM_STREAMS": 1}
    try:
        compiled = core.compile_model(_read(core, manifest), device, settings)
    except RuntimeError as error:
        raise BackendError(f"model {manifest.name}", f"openvino can't load it: {_last_line(error)}") from error
    names = {"inputs": compiled.inputs, "outputs": compiled.outputs}
    check_names(manifest, {kind: {n for port in ports for n in port.get_names()} for kind, ports in names.items()})
    _check_fp32(manifest, compiled)
    return OpenvinoModel(manifest, compiled, device.lower())


def _read(core: Any, manifest: Manifest) -> Any:
    """Read the file. What stays in FP32 is marked in OpenVINO's own format: the only one that has words for it."""
    import openvino as ov

    if not manifest.fp32_nodes:
        return str(manifest.path)
    with tempfile.TemporaryDirectory() as folder:
        description, weights = Path(folder) / "model.xml", Path(folder) / "model.bin"
        ov.serialize(core.read_model(str(manifest.path)), description, weights)
        tree = ElementTree.parse(description)
        values = ov.Tensor(np.fromfile(weights, dtype=np.uint8))
    for layer in tree.iter("layer"):
        if _node(layer.get("name", "")) in manifest.fp32_nodes:
            marks = ElementTree.SubElement(layer, "rt_info")
            for mark in _KEEP:
                ElementTree.SubElement(marks, "attribute", mark)
    return core.read_model(ElementTree.tostring(tree.getroot()), values)


def _check_fp32(manifest: Manifest, compiled: Any) -> None:
    """Refuse a runtime that doesn't heed the marks: its scores would be other ones than those that were measured."""
    if not manifest.fp32_nodes:
        return
    for op in compiled.get_runtime_model().get_ops():
        info = {key: value.astype(str) for key, value in op.get_rt_info().items() if key in _RUNTIME_KEYS}
        kept = {_node(name) for name in info.get("originalLayersNames", "").split(",")} & set(manifest.fp32_nodes)
        precision = info.get("runtimePrecision", "")
        if kept and info.get("layerType") == "Convolution" and precision != "f32":
            thing, what = f"model {manifest.name}", f"this OpenVINO doesn't keep {', '.join(sorted(kept))} in FP32"
            fix = "use the FP32 artefact, or another release of openvino"
            raise BackendError(thing, what, got=precision, fix=fix)


def _node(layer: str) -> str:
    """Return the ONNX node that a layer was made of: ``n_conv_0/WithoutBiases`` belongs to ``n_conv_0``."""
    return layer.split("/", maxsplit=1)[0]


class OpenvinoModel(Model):
    """A compiled model and its one request."""

    def __init__(self, manifest: Manifest, compiled: Any, active: str) -> None:
        super().__init__(manifest, backend="openvino", active=active)
        self._request: Any = compiled.create_infer_request()
        self._ports = {spec.name: compiled.output(spec.name) for spec in manifest.outputs}

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        if self._request is None:
            raise BackendError(f"model {self.manifest.name}", "is closed")
        try:
            results = self._request.infer(
                {name: np.ascontiguousarray(array) for name, array in feeds.items()}, share_inputs=True
            )
        except RuntimeError as error:
            raise BackendError(f"model {self.manifest.name}", f"openvino failed: {_last_line(error)}") from error
        return {name: results[self._ports[name]] for name in outputs}

    def close(self) -> None:
        self._request = None
        self._ports = {}


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1][:200]
