"""INT8 as explicit Q/DQ ONNX: one calibration, two files, and the layers that can't bear it left in float.

U8S8 (asymmetric activations) is what ONNX Runtime and OpenVINO run fast; S8S8, symmetric and without quantised bias,
is what TensorRT takes, whose newer versions know explicit quantisation alone. Weights are per channel: per tensor
destroys a MobileNet. The graph is quantised as it is, since preprocessing would split HardSwish.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from edge.backends.base import Model, new_batch, open_artefact
from edge.config import ModelsConfig
from edge.errors import DataError, ModelError
from edge.manifest import Manifest, TensorSpec
from edge.preprocess import fill_input
from edge.records import Image
from models.embedders import embed

METHODS = {"percentile": "Percentile", "minmax": "MinMax", "entropy": "Entropy"}
PERCENTILE = 99.99
_BINS = 2048
_CHUNK = 8  # crops whose activations are held at once
_OPS = ["Conv", "Gemm", "MatMul", "Add", "Mul", "Clip", "Relu", "MaxPool"]  # not the last mean: it is the result
_RANKED = ("Conv", "Gemm", "MatMul", "Add", "Mul")  # the others only pass on what these give
_N_PROBES = 32
#: How many of the most sensitive layers stay in float, tried in this order until the embedding is near enough.
_KEPT = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
NEAR_ENOUGH = 0.984  # median centred cosine on calibration crops at which the FCC gate is usually passed


@dataclass(frozen=True)
class Scheme:
    """How activations are quantised; weights are always symmetric int8 per channel."""

    precision: str
    signed: bool

    @property
    def options(self) -> dict[str, Any]:
        return {"ActivationSymmetric": self.signed, "WeightSymmetric": True, "QuantizeBias": not self.signed}


SCHEMES = (Scheme("int8-u8s8", signed=False), Scheme("int8-s8s8", signed=True))


@dataclass(frozen=True)
class Quantised:
    """A quantised model, the layers left in float, and the median centred cosine to FP32 on calibration crops."""

    scheme: Scheme
    content: bytes
    kept: tuple[str, ...]
    cosine: float


class Quantiser:
    """Calibrates one FP32 embedder and quantises it by any scheme.

    Parameters
    ----------
    reference : Model
        The FP32 artefact, an ONNX file.
    crops : list of pictures
        What to calibrate on.
    method : str
        `percentile`, `minmax` or `entropy`.
    """

    def __init__(self, reference: Model, crops: list[Image], *, method: str = "percentile") -> None:
        manifest = reference.manifest
        if manifest.role != "embedder" or manifest.path.suffix != ".onnx" or manifest.precision != "fp32":
            got = f"{manifest.role}, {manifest.file}, {manifest.precision}"
            raise ModelError(
                f"model {manifest.name}", "can't be quantised", expected="an FP32 embedder in ONNX", got=got
            )
        if len(crops) < _N_PROBES:
            raise DataError("calibration", "too few crops", expected=f"at least {_N_PROBES}", got=str(len(crops)))
        self._reference, self._manifest = reference, manifest
        self._model = onnx.load(manifest.path)
        self._ranges = _ranges(manifest, crops, method)
        self._probes = crops[:: len(crops) // _N_PROBES][:_N_PROBES]
        self._truth = embed(reference, self._probes)
        self._layers = [node.name for node in self._model.graph.node if node.op_type in _RANKED]

    def search(self, scheme: Scheme) -> Iterator[Quantised]:
        """Yield ever more careful models: the layers that hurt most, each quantised alone, are left in float first."""
        ranking: list[str] = []
        for n in (n for n in _KEPT if n < len(self._layers)):
            if n == 1:
                ranking = self.sensitive_layers(scheme)
            kept = tuple(ranking[:n])
            content = self.quantise(scheme, kept)
            found = Quantised(scheme, content, kept, self.cosine(content, scheme))
            if found.cosine >= NEAR_ENOUGH or n == _KEPT[-1]:
                yield found

    def sensitive_layers(self, scheme: Scheme) -> list[str]:
        """Return the layers, the one first whose quantisation alone moves the embedding most."""
        names = [node.name for node in self._model.graph.node]
        alone = {
            layer: self.cosine(self.quantise(scheme, tuple(n for n in names if n != layer)), scheme)
            for layer in self._layers
        }
        return sorted(alone, key=lambda layer: alone[layer])

    def quantise(self, scheme: Scheme, kept: tuple[str, ...] = ()) -> bytes:
        """Return the Q/DQ model by `scheme`, with the nodes `kept` in float."""
        from onnxruntime.quantization import QDQQuantizer, QuantType

        activations = QuantType.QInt8 if scheme.signed else QuantType.QUInt8
        with quiet():
            quantizer = QDQQuantizer(
                copy.deepcopy(self._model),
                True,
                False,
                QuantType.QInt8,
                activations,
                self._ranges,
                [],
                list(kept),
                _OPS,
                scheme.options,
            )
            quantizer.quantize_model()
        content: bytes = quantizer.model.model.SerializeToString()
        return content

    def cosine(self, content: bytes, scheme: Scheme) -> float:
        """Median cosine of the embeddings to FP32's, both centred by FP32's mean."""
        with open_content(self._manifest, content, scheme.precision) as model:
            values = embed(model, self._probes)
        mean = self._truth.mean(axis=0)
        a, b = self._truth - mean, values - mean
        return float(np.median((a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))))


@contextlib.contextmanager
def open_content(
    manifest: Manifest, content: bytes, precision: str, *, backend: str = "onnxruntime"
) -> Iterator[Model]:
    """Open weights that are no artefact yet, described by another's manifest."""
    import msgspec

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.onnx").write_bytes(content)
        described = msgspec.structs.replace(
            manifest, folder=Path(folder), file="model.onnx", precision=precision, canary=None
        )
        model = open_artefact(described, ModelsConfig(), backend=backend)
        yield model
        model.close()


def _ranges(manifest: Manifest, crops: list[Image], method: str) -> Any:
    """Run the crops and return every tensor's range."""
    from onnxruntime.quantization import CalibrationMethod, create_calibrator

    options = {"percentile": PERCENTILE, "symmetric": False, "num_bins": _BINS} if method == "percentile" else {}
    with tempfile.TemporaryDirectory() as folder, quiet():
        calibrator = create_calibrator(
            str(manifest.path),
            [],
            augmented_model_path=str(Path(folder) / "augmented.onnx"),
            calibrate_method=CalibrationMethod[METHODS[method]],
            extra_options=options,
        )
        for start in range(0, len(crops), _CHUNK):
            calibrator.collect_data(_Reader(crops[start : start + _CHUNK], manifest.input()))
        return calibrator.compute_data()


class _Reader:
    """Hands crops to ONNX Runtime's calibrator, one by one."""

    def __init__(self, crops: list[Image], spec: TensorSpec) -> None:
        self._crops, self._spec = iter(crops), spec

    def get_next(self) -> dict[str, npt.NDArray] | None:
        crop = next(self._crops, None)
        if crop is None:
            return None
        batch = new_batch(self._spec, 1)
        fill_input(crop, self._spec, batch[0])
        return {self._spec.name: batch}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the quantisation library's prints and advice from the terminal."""
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
