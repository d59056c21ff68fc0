"""Builds and caches TensorRT engines, with TensorRT 10 or 11: strongly typed networks, INT8 as explicit Q/DQ alone.

The module is a parameter, so that TensorRT-RTX, which parses and builds without a GPU, runs the same code in tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from edge.errors import BackendError
from edge.files import write_atomic
from edge.manifest import Manifest

BATCHES = (1, 2, 4, 8)  #: one profile each, with nothing left free: the kernels are chosen for exactly this size
_WORKSPACE = 1 << 30

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineKey:
    """What an engine depends on. A plan of another GPU, TensorRT or model is never run."""

    gpu: str
    tensorrt: str
    model_sha256: str
    precision: str
    accelerator: str
    batches: tuple[int, ...] = BATCHES

    @property
    def digest(self) -> str:
        return _digest(json.dumps(asdict(self), sort_keys=True))


def load_or_build(trt: ModuleType, manifest: Manifest, key: EngineKey, folder: Path) -> bytes:
    """Return the plan of an artefact from `folder`, or build it and keep it there.

    A plan is used only if the note beside it names this very key and the plan's hash; anything else is rebuilt.
    """
    plan, note = (folder / f"{manifest.name}-{key.digest}{suffix}" for suffix in (".plan", ".json"))
    with contextlib.suppress(OSError, ValueError):
        written = json.loads(note.read_text(encoding="utf-8"))
        content = plan.read_bytes()
        if written == _note(key, content):
            return content
    log.warning("model %s: building a TensorRT engine for %s, which takes minutes", manifest.name, key.gpu)
    with _timing_cache(folder / f"timing-{_digest(key.gpu + key.tensorrt)}.cache") as timing:
        content = build(trt, manifest, accelerator=key.accelerator, batches=key.batches, timing=timing)
    write_atomic(plan, content)
    write_atomic(note, json.dumps(_note(key, content), indent=1))
    return content


def build(
    trt: ModuleType,
    manifest: Manifest,
    *,
    accelerator: str = "gpu",
    batches: tuple[int, ...] = BATCHES,
    timing: bytearray | None = None,
) -> bytes:
    """Parse an ONNX artefact and build its engine.

    Parameters
    ----------
    trt : module
        `tensorrt`, or `tensorrt_rtx`.
    manifest : Manifest
    accelerator : str
        ``gpu``, or ``dla`` with what it can't do left to the GPU.
    batches : tuple of int
        Batch sizes, each a profile of its own.
    timing : bytearray, optional
        Timing cache to start from; what was learnt is put back into it.

    Returns
    -------
    bytes
        The serialised engine.

    Raises
    ------
    BackendError
        The file can't be parsed or built, with TensorRT's own words.
    """
    thing = f"model {manifest.name}"
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)  # the only kind there is some day
    network = builder.create_network(0 if flag is None else 1 << int(flag))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(manifest.path.read_bytes()):
        said = " ".join(parser.get_error(0).desc().split())[:200] if parser.num_errors else "no reason given"
        raise BackendError(thing, f"TensorRT can't parse it: {said}")
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, _WORKSPACE)
    config.clear_flag(trt.BuilderFlag.TF32)  # an FP32 artefact must mean FP32
    if accelerator == "dla":
        config.default_device_type = trt.DeviceType.DLA
        config.DLA_core = 0
        config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    _add_profiles(builder, config, manifest, batches)
    cache = config.create_timing_cache(bytes(timing)) if timing is not None else None
    if cache is not None:
        config.set_timing_cache(cache, False)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise BackendError(thing, "TensorRT can't build an engine of it", fix="see its messages above")
    if timing is not None and cache is not None:
        timing[:] = bytes(config.get_timing_cache().serialize())
    return bytes(plan)


def _add_profiles(builder: Any, config: Any, manifest: Manifest, batches: tuple[int, ...]) -> None:
    for spec in manifest.inputs:
        if any(side < 1 for side in spec.shape[1:]):
            expected = "fixed sizes but for the batch"
            raise BackendError(f"model {manifest.name}", "has a free size", expected=expected, got=str(spec.shape))
    free = [spec for spec in manifest.inputs if spec.shape[0] == -1]
    for batch in batches if free else ():
        profile = builder.create_optimization_profile()
        for spec in free:
            shape = (batch, *spec.shape[1:])
            profile.set_shape(spec.name, shape, shape, shape)
        config.add_optimization_profile(profile)


@contextlib.contextmanager
def _timing_cache(path: Path) -> Iterator[bytearray]:
    """Give the timing cache to build with, and keep what was learnt."""
    timing = bytearray()
    with contextlib.suppress(OSError):
        timing[:] = path.read_bytes()
    yield timing
    if timing:
        write_atomic(path, bytes(timing))


def _note(key: EngineKey, content: bytes) -> dict[str, Any]:
    return {**json.loads(json.dumps(asdict(key))), "plan_sha256": hashlib.sha256(content).hexdigest()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
