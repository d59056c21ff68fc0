"""TensorFlow Lite files through LiteRT (`ai-edge-litert`) or its predecessor (`tflite-runtime`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, Tensors, check_names
from edge.config import ModelsConfig
from edge.errors import BackendError
from edge.manifest import Manifest, TensorSpec

SUFFIXES = (".tflite",)
PRECISIONS = ("fp32", "fp16", "int8")
_STDERR = 2
_NOTE = b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n"
_one_at_a_time = Lock()


def missing() -> str:
    # find_spec of a submodule would import its parent, which may not be there.
    for package in ("ai_edge_litert", "tflite_runtime"):
        if find_spec(package):
            return ""
    return "not installed: pip install 'emogaze-edge[litert]'"


def open_session(manifest: Manifest, models: ModelsConfig) -> Model:
    if find_spec("ai_edge_litert"):
        from ai_edge_litert.interpreter import Interpreter
    else:
        from tflite_runtime.interpreter import Interpreter
    if models.accelerator not in ("", "cpu"):
        raise BackendError("models.accelerator", f"tflite has no {models.accelerator!r}", expected="cpu")
    try:
        interpreter = Interpreter(model_path=str(manifest.path), num_threads=models.threads)
        with _without_note():
            interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise BackendError(f"model {manifest.name}", f"tflite can't load it: {error}") from error
    return TfliteModel(manifest, interpreter)


@contextmanager
def _without_note() -> Iterator[None]:
    """Keep `_NOTE` off standard error, and nothing else.

    LiteRT writes it when it first makes its CPU delegate; no call in Python and no variable of the environment sets
    its log level (google-ai-edge/LiteRT issue 7420). So what arrives at the file descriptor meanwhile is held, and
    passed on.
    """
    if sys.__stderr__ is None:  # standard error is closed, and its number may be another file's
        yield
        return
    with _one_at_a_time, open(os.memfd_create("stderr"), "w+b") as held, open(os.dup(_STDERR), "wb", 0) as stderr:
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(stderr.fileno(), _STDERR)
            held.seek(0)
            stderr.write(held.read().replace(_NOTE, b""))


class TfliteModel(Model):
    """An interpreter. Integer tensors are converted by their own scale and zero point."""

    def __init__(self, manifest: Manifest, interpreter: Any) -> None:
        super().__init__(manifest, backend="tflite", active="cpu")
        self._interpreter: Any = interpreter
        details = {"inputs": interpreter.get_input_details(), "outputs": interpreter.get_output_details()}
        check_names(manifest, {kind: {detail["name"] for detail in found} for kind, found in details.items()})
        self._in = _by_name(interpreter.get_input_details(), manifest.inputs)
        self._out = _by_name(interpreter.get_output_details(), manifest.outputs)

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        if self._interpreter is None:
            raise BackendError(f"model {self.manifest.name}", "is closed")
        self._resize(feeds)
        for name, array in feeds.items():
            detail = self._in[name]
            self._interpreter.set_tensor(detail["index"], quantise(array, detail))
        try:
            self._interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise BackendError(f"model {self.manifest.name}", f"tflite failed: {error}") from error
        return {
            name: dequantise(self._interpreter.get_tensor(self._out[name]["index"]), self._out[name])
            for name in outputs
        }

    def _resize(self, feeds: Tensors) -> None:
        """Give the inputs the shapes of `feeds` where the manifest leaves them free."""
        changed = [name for name, array in feeds.items() if tuple(self._in[name]["shape"]) != array.shape]
        if not changed:
            return
        for name in changed:
            self._interpreter.resize_tensor_input(self._in[name]["index"], feeds[name].shape)
        self._interpreter.allocate_tensors()
        self._in = _by_name(self._interpreter.get_input_details(), self.manifest.inputs)

    def close(self) -> None:
        self._interpreter = None


def quantise(array: npt.NDArray, detail: dict[str, Any]) -> npt.NDArray:
    """Convert float to an integer tensor's numbers: ``round(value / scale) + zero_point``, clipped to its range."""
    dtype = np.dtype(detail["dtype"])
    scale, zero_point = detail["quantization"]
    if array.dtype == dtype or scale == 0:
        return array.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(array / scale) + zero_point, limits.min, limits.max).astype(dtype)


def dequantise(array: npt.NDArray, detail: dict[str, Any]) -> npt.NDArray:
    """Convert an integer tensor's numbers back: ``(number - zero_point) * scale``; a float tensor stays as it is."""
    scale, zero_point = detail["quantization"]
    if array.dtype.kind == "f" or scale == 0:
        return array
    return ((array.astype(np.float32) - zero_point) * np.float32(scale)).astype(np.float32)


def _by_name(details: list[dict[str, Any]], specs: tuple[TensorSpec, ...]) -> dict[str, dict[str, Any]]:
    known = {detail["name"]: detail for detail in details}
    return {spec.name: known[spec.node or spec.name] for spec in specs}
