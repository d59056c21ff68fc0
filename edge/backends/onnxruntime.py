"""ONNX Runtime: ONNX files on the CPU, or on NVIDIA hardware through its CUDA and TensorRT providers."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import Any

from edge.backends.base import Model, Tensors, check_names
from edge.config import ModelsConfig
from edge.errors import BackendError
from edge.manifest import Manifest

SUFFIXES = (".onnx",)
PRECISIONS = ("fp32", "fp16", "int8-u8s8", "int8-s8s8")
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
_PLACE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |/onnxruntime_src/.*?\) (?=[A-Z])")
_QUIET = 3  # errors only: its warnings about providers come again as our own, in one line


def missing() -> str:
    return "" if find_spec("onnxruntime") else "not installed: pip install 'emogaze-edge[cpu]' (or [gpu])"


def open_session(manifest: Manifest, models: ModelsConfig) -> Model:
    import onnxruntime as ort

    if models.accelerator and models.accelerator not in PROVIDERS:
        raise BackendError(
            "models.accelerator", f"onnxruntime has no {models.accelerator!r}", expected=" | ".join(PROVIDERS)
        )
    ort.set_default_logger_severity(_QUIET)
    options = ort.SessionOptions()
    options.log_severity_level = _QUIET
    options.intra_op_num_threads = models.threads
    options.inter_op_num_threads = 1
    # A memory pattern is one block per input shape, kept for ever: a detector at several sizes would hold one for each
    # (307 against 200 MB for CenterFace at six sizes, 0 to 5 % faster). Without an arena it is a third slower.
    options.enable_mem_pattern = False
    _share_arena()
    options.add_session_config_entry("session.use_env_allocators", "1")
    # Weights stay; in the arena they would lie between the pieces that come and go.
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    # Two pools of spinning threads on two cores steal each other's time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    known = set(ort.get_available_providers())
    chosen = [
        PROVIDERS[name] for name in dict.fromkeys((models.accelerator or "cpu", "cpu")) if PROVIDERS[name] in known
    ]
    try:
        session = ort.InferenceSession(str(manifest.path), options, providers=chosen)
    except Exception as error:
        raise BackendError(f"model {manifest.name}", f"onnxruntime can't load it: {_in_words(error)}") from error
    nodes = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
    check_names(manifest, {kind: {node.name for node in found} for kind, found in nodes.items()})
    return OrtModel(manifest, session)


@cache
def _share_arena() -> None:
    """Give all sessions of this process one arena, which grows by what is asked for.

    By default each session has its own, and it doubles: 290 against 200 MB for CenterFace at six sizes.
    """
    import onnxruntime as ort

    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    growth = {"max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": -1, "max_dead_bytes_per_chunk": -1}
    ort.create_and_register_allocator(info, ort.OrtArenaCfg(growth))


class OrtModel(Model):
    """A session of ONNX Runtime."""

    def __init__(self, manifest: Manifest, session: Any) -> None:
        import onnxruntime as ort

        # get_available_providers() lists what isn't there; only the session tells what it really got.
        names = {provider: name for name, provider in PROVIDERS.items()}
        active = session.get_providers()[0]
        super().__init__(manifest, backend="onnxruntime", active=names.get(active, active))
        self._session: Any = session
        self._options = ort.RunOptions()
        self._options.only_execute_path_to_fetches = True

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        if self._session is None:
            raise BackendError(f"model {self.manifest.name}", "is closed")
        try:
            values = self._session.run(list(outputs), feeds, self._options)
        except Exception as error:
            raise BackendError(f"model {self.manifest.name}", f"onnxruntime failed: {_in_words(error)}") from error
        return dict(zip(outputs, values, strict=True))

    def close(self) -> None:
        self._session = None


def _in_words(error: Exception) -> str:
    """Return the message in one line, without its code and the place in C++ that it comes from."""
    return " ".join(_PLACE.sub("", str(error)).split())[:300]
