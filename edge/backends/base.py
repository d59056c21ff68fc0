"""The contract of an inference runtime.

A plug-in module in this folder defines

- ``SUFFIXES``: the weights files it runs, e.g. ``(".onnx",)``;
- ``PRECISIONS``: the precisions it can compute in, of those in `edge.manifest.Precision`;
- ``missing() -> str``: why it can't run here, or "";
- ``open_session(manifest: Manifest, models: ModelsConfig) -> Model``.

`Model.infer` does the checks once for all; a plug-in writes only the inside, `_run`.
"""

from __future__ import annotations

import ctypes
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from time import perf_counter_ns
from types import ModuleType
from typing import cast

import numpy as np
import numpy.typing as npt

from edge import plugins
from edge.config import ModelsConfig
from edge.errors import BackendError, ModelError
from edge.manifest import Canary, Manifest, TensorSpec, load_manifest, models_dir
from edge.preprocess import fill_input
from edge.records import Image
from edge.signatures import check_artefact

Tensors = dict[str, npt.NDArray]
PACKAGE = "edge.backends"

log = logging.getLogger(__name__)


class Model(ABC):
    """A loaded artefact on one inference runtime. One thread at a time.

    Attributes
    ----------
    manifest : Manifest
    active : str
        The accelerator that is really in use, e.g. ``"cpu"``.
    degraded : str
        Why it isn't the one that was asked for; empty when it is.
    inference_ns : int
        Time spent inside the runtime so far.
    """

    def __init__(self, manifest: Manifest, *, backend: str, active: str) -> None:
        self.manifest, self.backend, self.active, self.degraded = manifest, backend, active, ""
        self.inference_ns = 0
        self._inputs = {spec.name: spec for spec in manifest.inputs}
        self._outputs = {spec.name: spec for spec in manifest.outputs}

    def infer(
        self, feeds: Mapping[str, npt.NDArray], outputs: tuple[str, ...] | None = None, *, trusted: bool = False
    ) -> Tensors:
        """Run the model.

        Parameters
        ----------
        feeds : mapping of str to array
            One array per input, in the shape and dtype of the manifest.
        outputs : tuple of str, optional
            The outputs wanted; what leads to no other isn't computed where the runtime can leave it out. Default: all.
        trusted : bool
            The inputs are known to be finite, as what `fill_input` writes is: leave out the pass over them.

        Returns
        -------
        dict of str to array
            In the shape and dtype of the manifest. An empty batch gives empty arrays without running the model.

        Raises
        ------
        ValueError
            An input is missing, unknown, of another shape or dtype, or not finite; an output is unknown.
        ModelError
            The model gave something that isn't finite.
        BackendError
            The runtime failed.
        """
        wanted = tuple(self._outputs) if outputs is None else outputs
        if feeds.keys() != self._inputs.keys() or not self._outputs.keys() >= set(wanted):
            raise ValueError(
                f"model {self.manifest.name}: inputs {list(self._inputs)} and outputs {list(self._outputs)}; "
                f"got inputs {list(feeds)} and outputs {list(wanted)}"
            )
        empty = False
        for name, spec in self._inputs.items():
            array = feeds[name]
            if not _fits(array, spec):
                raise ValueError(
                    f"model {self.manifest.name}, input {name}: expected {spec.dtype} {spec.shape}, "
                    f"got {array.dtype} {array.shape}"
                )
            if not trusted and not _finite(array):
                raise ValueError(f"model {self.manifest.name}, input {name}: holds NaN or infinity")
            empty = empty or len(array) == 0
        if empty:
            return {name: _empty(self._outputs[name]) for name in wanted}
        start = perf_counter_ns()
        results = self._run(dict(feeds), wanted)
        self.inference_ns += perf_counter_ns() - start
        for name in wanted:
            if not _finite(results[name]):
                raise ModelError(f"model {self.manifest.name}", f"output {name} isn't finite", fix="check the weights")
        return results

    @abstractmethod
    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        """Run on checked inputs (batch of at least one) and return `outputs`."""

    def close(self) -> None:  # noqa: B027 - a runtime that frees itself leaves it as it is
        """Free the runtime's memory. May be called twice."""


def open_model(name: str, models: ModelsConfig) -> Model:
    """Load an artefact by its name, on the configured inference runtime or the first that runs its file.

    Its hash is checked, and its canary picture where it has one. An accelerator that was asked for and isn't in use
    is an error under `models.strict`, else a warning, and stands in `Model.degraded`.

    Raises
    ------
    ModelError
        There is no such artefact, it was altered, failed its accuracy gate or its canary check, or this device knows
        publishers and none of them signed it.
    BackendError
        No inference runtime here runs it.
    """
    folder = models_dir(models.dir) / name
    manifest = load_manifest(folder)
    check_artefact(folder, models)
    return open_artefact(manifest, models)


def open_artefact(manifest: Manifest, models: ModelsConfig, *, backend: str = "") -> Model:
    """Load an artefact as `open_model` does, wherever its folder is; `backend` wins over the configured one."""
    thing = f"model {manifest.name}"
    if manifest.gate == "failed" and manifest.name not in models.force:
        fix = f"use {manifest.reference}, or name it in models.force"
        raise ModelError(thing, "failed its accuracy gate when it was quantised", fix=fix)
    model = choose_backend(manifest, backend or models.backend).open_session(manifest, models)
    asked = models.accelerator
    if asked and asked != model.active:
        model.degraded = f"asked for {asked}, running on {model.active}"
        if models.strict:
            model.close()
            raise BackendError(thing, model.degraded, fix="see `emogaze doctor`, or unset models.strict")
        log.warning("%s: %s", thing, model.degraded)
    if manifest.canary:
        check_canary(model)
    _return_memory()
    return model


def _return_memory() -> None:
    """Give freed memory back to the system: reading, converting and packing weights takes up to 20 MB for a moment."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)


def choose_backend(manifest: Manifest, asked: str = "") -> ModuleType:
    """Return the plug-in `asked` for, or the first that runs the artefact's file and is installed."""
    reasons = []
    for name in [asked] if asked else plugins.names(PACKAGE):
        plugin = plugins.load(PACKAGE, name, setting="models.backend")
        reason = why_not(plugin, manifest)
        if not reason:
            return plugin
        reasons.append(f"{name}: {reason}")
    raise BackendError(f"model {manifest.name}", f"no inference runtime for {manifest.file} ({'; '.join(reasons)})")


def why_not(plugin: ModuleType, manifest: Manifest) -> str:
    """Return why a plug-in can't run an artefact here, or ""."""
    if manifest.path.suffix not in plugin.SUFFIXES:
        return f"runs {', '.join(plugin.SUFFIXES)}"
    if manifest.precision not in plugin.PRECISIONS:
        return f"doesn't compute in {manifest.precision}"
    reason: str = plugin.missing()
    return reason


def check_names(manifest: Manifest, found: dict[str, set[str]]) -> None:
    """Compare a loaded file's ``inputs`` and ``outputs`` with the manifest's; a plug-in calls it once.

    Raises
    ------
    BackendError
        The file lacks a tensor of the manifest, or wants an input that isn't in it.
    """
    for kind, specs in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        expected = {spec.node or spec.name for spec in specs}
        if not expected <= found[kind] or (kind == "inputs" and len(specs) < len(found[kind])):
            raise BackendError(
                f"model {manifest.name}",
                f"other {kind} than model.json",
                expected=", ".join(sorted(expected)),
                got=", ".join(sorted(found[kind])),
            )


def check_canary(model: Model) -> None:
    """Run the canary picture; a class other than the known one means wrong colours, layout or weights.

    Raises
    ------
    ModelError
        The picture is gone, or the top class or its probability differs.
    """
    manifest, canary = model.manifest, model.manifest.canary
    if canary is None:
        raise ValueError(f"model {manifest.name} has no canary picture")
    top1, probability = classify_canary(model, canary)
    if top1 != canary.top1 or abs(probability - canary.probability) > canary.tolerance:
        raise ModelError(
            f"model {manifest.name}",
            "the canary picture isn't recognised",
            expected=f"{canary.label} at {canary.probability:.2f}",
            got=f"class {top1} at {probability:.2f}",
            fix="check colour order, layout, mean and scale in model.json",
        )


def classify_canary(model: Model, canary: Canary) -> tuple[int, float]:
    """Return the top class of a canary picture and its probability."""
    import cv2

    file = model.manifest.folder / canary.file
    image = cast(Image | None, cv2.imread(str(file), cv2.IMREAD_COLOR))
    if image is None:
        raise ModelError(str(file), "the canary picture can't be read", fix="fetch it again")
    spec = model.manifest.input()
    batch = new_batch(spec, 1)
    fill_input(image, spec, batch[0])
    logits = model.infer({spec.name: batch}, (canary.output,))[canary.output][0].astype(np.float64)
    probabilities = np.exp(logits - logits.max())
    top1 = int(probabilities.argmax())
    return top1, float(probabilities[top1] / probabilities.sum())


def new_batch(spec: TensorSpec, n: int, size: tuple[int, int] | None = None) -> npt.NDArray[np.float32]:
    """Return an empty float32 batch of `n` pictures for `spec`; `size` = (width, height) where its sides are free."""
    width, height = size or spec.size()
    channels = 1 if spec.colour == "GRAY" else 3
    item = (channels, height, width) if spec.layout == "NCHW" else (height, width, channels)
    return np.empty((n, *item), dtype=np.float32)


def _fits(array: npt.NDArray, spec: TensorSpec) -> bool:
    """Whether an array has the dtype and shape of an input; -1 fits any side, and a batch may be empty."""
    batch, *sides = spec.shape
    n, *have = array.shape or (-1,)
    fits = have == sides or (len(have) == len(sides) and all(w in (-1, h) for w, h in zip(sides, have, strict=True)))
    return fits and (batch == -1 or n in (0, batch)) and array.dtype == spec.dtype


def _finite(array: npt.NDArray) -> bool:
    """Whether no value is NaN or infinite: one pass over the sum of squares, which either of them spoils."""
    if array.dtype.kind != "f":
        return True
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        return math.isfinite(np.dot(flat, flat)) or bool(np.isfinite(array).all())


def _empty(spec: TensorSpec) -> npt.NDArray:
    return np.empty((0, *(max(side, 0) for side in spec.shape[1:])), dtype=spec.dtype)
