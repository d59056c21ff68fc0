"""TensorRT on NVIDIA hardware: engines are built here from ONNX artefacts and cached per GPU, version and model."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.backends import _cuda, _trt_engine
from edge.backends.base import Model, Tensors, check_names
from edge.config import ModelsConfig
from edge.errors import BackendError
from edge.manifest import Manifest

SUFFIXES = (".onnx",)
PRECISIONS = ("fp32", "fp16", "int8-s8s8")
ACCELERATORS = ("gpu", "dla")

log = logging.getLogger(__name__)


def missing() -> str:
    if not find_spec("tensorrt"):
        return "not installed: on a Jetson it comes with JetPack, elsewhere pip install 'emogaze-edge[tensorrt]'"
    return _cuda.missing()


def open_session(manifest: Manifest, models: ModelsConfig) -> Model:
    import tensorrt as trt

    active = models.accelerator or "gpu"
    if active not in ACCELERATORS:
        expected = " | ".join(ACCELERATORS)
        raise BackendError("models.accelerator", f"tensorrt has no {active!r}", expected=expected)
    key = _trt_engine.EngineKey(_cuda.gpu_name(), trt.__version__, manifest.sha256, manifest.precision, active)
    plan = _trt_engine.load_or_build(trt, manifest, key, manifest.folder.parent / ".tensorrt")
    return TensorrtModel(manifest, trt, plan, active)


class TensorrtModel(Model):
    """An engine with one execution context, pinned buffers and a CUDA graph for each batch size."""

    def __init__(self, manifest: Manifest, trt: ModuleType, plan: bytes, active: str) -> None:
        super().__init__(manifest, backend="tensorrt", active=active)
        self._memory = _cuda.open_memory()
        self._runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        if self._engine is None:
            raise BackendError(
                f"model {manifest.name}", "TensorRT refuses its engine", fix="delete the .tensorrt folder"
            )
        names = [self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)]
        modes = {name: self._engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT for name in names}
        found = {"inputs": {n for n in names if modes[n]}, "outputs": {n for n in names if not modes[n]}}
        check_names(manifest, found)
        self._batches = _trt_engine.BATCHES if manifest.inputs[0].shape[0] == -1 else (manifest.inputs[0].shape[0],)
        self._runs = {n: _Run(self._engine, self._memory, i, n, names) for i, n in enumerate(self._batches)}

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        total, largest = len(next(iter(feeds.values()))), self._batches[-1]
        parts = []
        for start in range(0, total, largest):
            part = {name: array[start : start + largest] for name, array in feeds.items()}
            n = len(next(iter(part.values())))
            run = self._runs[next(size for size in self._batches if size >= n)]
            parts.append({name: values[:n].copy() for name, values in run(part, n).items() if name in outputs})
        return {name: np.concatenate([part[name] for part in parts]) for name in outputs}

    def close(self) -> None:
        self._runs = {}
        self._memory.close()


class _Run:
    """Everything for one batch size: context, buffers, and the graph of upload, inference and download."""

    def __init__(self, engine: Any, memory: _cuda.Memory, profile: int, batch: int, names: list[str]) -> None:
        self._memory, self._context = memory, engine.create_execution_context()
        if engine.num_optimization_profiles > 1:
            self._context.set_optimization_profile_async(profile, memory.stream)
        self._buffers: dict[str, tuple[npt.NDArray, int]] = {}
        for name in names:
            shape = (batch, *tuple(engine.get_tensor_shape(name))[1:])
            host = memory.pinned(shape, _dtype(engine.get_tensor_dtype(name)))
            host[...] = 0
            pointer = memory.device(host.nbytes)
            self._buffers[name] = host, pointer
            self._context.set_tensor_address(name, pointer)
        self._inputs = [n for n in names if engine.get_tensor_mode(n).name == "INPUT"]
        for name in self._inputs:
            self._context.set_input_shape(name, self._buffers[name][0].shape)
        self._work()  # once outside the graph: the first call may allocate
        memory.synchronise()
        self._graph = self._capture()

    def __call__(self, feeds: Tensors, n: int) -> Tensors:
        for name, array in feeds.items():
            self._buffers[name][0][:n] = array
        if self._graph is None:
            self._work()
        else:
            self._graph.launch()
        self._memory.synchronise()
        return {name: host for name, (host, _) in self._buffers.items() if name not in self._inputs}

    def _work(self) -> None:
        for name in self._inputs:
            host, pointer = self._buffers[name]
            self._memory.upload(pointer, host)
        if not self._context.execute_async_v3(self._memory.stream):
            raise BackendError("TensorRT", "inference failed", fix="see its messages above")
        for name, (host, pointer) in self._buffers.items():
            if name not in self._inputs:
                self._memory.download(host, pointer)

    def _capture(self) -> _cuda.Graph | None:
        try:
            return _cuda.Graph(self._memory.stream, self._work)
        except BackendError as error:  # some layers can't be captured: DLA, loops
            log.info("no CUDA graph: %s", error)
            return None


def _dtype(kind: Any) -> npt.DTypeLike:
    import tensorrt as trt

    return trt.nptype(kind)
