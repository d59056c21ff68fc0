"""INT8 as explicit Q/DQ ONNX: one calibration, two files, and the layers that can't bear it left in float.

U8S8 (asymmetric activations) is what ONNX Runtime and OpenVINO run fast; S8S8, symmetric and without quantised bias,
is what TensorRT takes, whose newer versions know explicit quantisation alone. Weights are per channel: per tensor
destroys a MobileNet. The graph is quantised as it is, since preprocessing would split HardSwish.

The plain way quantises what every operation reads and gives. What it destroys, as it does MobileNetV3, is quantised the
careful way: only what convolutions read, their channels equalised, and squeeze-and-excitation in float. OpenVINO and
TensorRT fuse that as well; ONNX Runtime computes such convolutions in float.
"""

from __future__ import annotations

import contextlib
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

from calibration.activations import Statistics, observe
from calibration.bias import correct_bias, correctable
from calibration.equalise import equalise
from edge.backends.base import Model, open_artefact
from edge.config import ModelsConfig
from edge.errors import DataError, ModelError
from edge.manifest import Manifest
from edge.records import Image
from models.embedders import batches, embed

METHODS = {"percentile": "Percentile", "minmax": "MinMax", "entropy": "Entropy"}
PERCENTILE = 99.99
_BINS = 2048
_CHUNK = 8  # crops whose activations are held at once
_OPS = ["Conv", "Gemm", "MatMul", "Add", "Mul", "Clip", "Relu", "MaxPool"]  # not the last mean: it is the result
_RANKED = ("Conv", "Gemm", "MatMul", "Add", "Mul")  # the others only pass on what these give
_CAREFUL_OPS = ["Conv"]
_CAREFUL_METHOD = "minmax"  # with equalised channels the extremes are no outliers: cut off, they cost new pictures most
_NO_OUTPUTS = "OpTypesToExcludeOutputQuantization"
_N_PROBES = 32
#: How many of the most sensitive layers stay in float, tried in this order until the embedding is near enough.
_KEPT = (0, 1, 2, 4, 8, 12, 16, 24, 32)
#: Mean centred cosine on calibration crops at which the gate may be passed, so that judging is worth its time.
NEAR_ENOUGH = {"plain": 0.98, "careful": 0.99}
_HOPELESS = 0.8  # below it, leaving layers out one by one leads nowhere


Pixels = npt.NDArray[np.float32]


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
    """A quantised model, the layers left in float, and the mean centred cosine to FP32 on calibration crops."""

    scheme: Scheme
    content: bytes
    kept: tuple[str, ...]
    cosine: float
    way: str


class Quantiser:
    """Calibrates one FP32 embedder and quantises it by any scheme.

    Parameters
    ----------
    reference : Model
        The FP32 artefact, an ONNX file.
    crops : list of pictures
        What to calibrate on.
    method : str
        `percentile`, `minmax` or `entropy`; the careful way takes `minmax`.
    careful : bool
        Quantise the careful way.
    """

    def __init__(
        self, reference: Model, crops: list[Image], *, method: str = "percentile", careful: bool = False
    ) -> None:
        manifest = reference.manifest
        if manifest.role != "embedder" or manifest.path.suffix != ".onnx" or manifest.precision != "fp32":
            got = f"{manifest.role}, {manifest.file}, {manifest.precision}"
            raise ModelError(
                f"model {manifest.name}", "can't be quantised", expected="an FP32 embedder in ONNX", got=got
            )
        if len(crops) < _N_PROBES:
            raise DataError("calibration", "too few crops", expected=f"at least {_N_PROBES}", got=str(len(crops)))
        self._manifest, self._careful, self._way = manifest, careful, "careful" if careful else "plain"
        self._probes = crops[:: len(crops) // _N_PROBES][:_N_PROBES]
        self._truth = embed(reference, self._probes)
        self._model = onnx.load(manifest.path)
        self._float = on_one_pixel(self._model) if careful else ()
        seen = list(batches(crops, manifest.input(), _CHUNK))
        self._convolutions = {n.name: n for n in correctable(self._model) if n.name not in self._float}
        if careful:
            self._model = equalise(self._model, list(self._convolutions), self._observe(seen))
            self._convolutions = {n.name: n for n in self._model.graph.node if n.name in self._convolutions}
        self._statistics = self._observe(seen)
        self._ranges = _ranges(self._model, manifest.input().name, seen, _CAREFUL_METHOD if careful else method)
        ranked = _CAREFUL_OPS if careful else _RANKED
        self._layers = [n.name for n in self._model.graph.node if n.op_type in ranked and n.name not in self._float]

    def _observe(self, seen: list[Pixels]) -> Statistics:
        return observe(self._model, [node.input[0] for node in self._convolutions.values()], seen)

    def search(self, scheme: Scheme) -> Iterator[Quantised]:
        """Yield ever more careful models: the layers that hurt most, each quantised alone, are left in float first."""
        ranking: list[str] = []
        steps = [n for n in _KEPT if n < len(self._layers)]
        for n in steps:
            if n and not ranking:
                ranking = self.sensitive_layers(scheme)
            kept = tuple(ranking[:n])
            content = self.quantise(scheme, kept)
            found = Quantised(scheme, content, (*kept, *self._float), self.cosine(content, scheme), self._way)
            if not self._careful and found.cosine < _HOPELESS:
                return
            if found.cosine >= NEAR_ENOUGH[found.way] or n == steps[-1]:
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
        ops, options = (_CAREFUL_OPS, {_NO_OUTPUTS: _CAREFUL_OPS}) if self._careful else (_OPS, {})
        kept = (*kept, *self._float)
        quantised = [name for name in self._convolutions if name not in kept]
        with quiet():
            quantizer = QDQQuantizer(
                correct_bias(self._model, quantised, self._statistics),
                True,
                False,
                QuantType.QInt8,
                activations,
                self._ranges,
                [],
                list(kept),
                ops,
                scheme.options | options,
            )
            quantizer.quantize_model()
        content: bytes = quantizer.model.model.SerializeToString()
        return content

    def cosine(self, content: bytes, scheme: Scheme) -> float:
        """Mean cosine of the embeddings to FP32's, both centred by FP32's mean: a few that are far off count."""
        with open_content(self._manifest, content, scheme.precision) as model:
            values = embed(model, self._probes)
        mean = self._truth.mean(axis=0)
        a, b = self._truth - mean, values - mean
        return float(np.mean((a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))))


@contextlib.contextmanager
def open_content(
    manifest: Manifest, content: bytes, precision: str, *, backend: str = "onnxruntime"
) -> Iterator[Model]:
    """Open weights that are no artefact yet, described by another's manifest."""
    import msgspec

    with tempfile.TemporaryDirectory() as folder:
        file = f"model{manifest.path.suffix}"
        (Path(folder) / file).write_bytes(content)
        described = msgspec.structs.replace(manifest, folder=Path(folder), file=file, precision=precision, canary=None)
        model = open_artefact(described, ModelsConfig(), backend=backend)
        yield model
        model.close()


def on_one_pixel(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the convolutions that read a picture's mean, as in squeeze-and-excitation: they cost next to nothing."""
    small: set[str] = set()
    for node in model.graph.node:
        if node.op_type == "GlobalAveragePool" or (node.op_type != "Mul" and small.intersection(node.input)):
            small.update(node.output)
    return tuple(n.name for n in model.graph.node if n.op_type == "Conv" and n.input[0] in small)


def _ranges(model: onnx.ModelProto, picture: str, seen: list[Pixels], method: str) -> Any:
    """Run the pictures and return every tensor's range."""
    from onnxruntime.quantization import CalibrationMethod, create_calibrator

    options = {"percentile": PERCENTILE, "symmetric": False, "num_bins": _BINS} if method == "percentile" else {}
    with tempfile.TemporaryDirectory() as folder, quiet():
        onnx.save(model, Path(folder) / "model.onnx")
        calibrator = create_calibrator(
            str(Path(folder) / "model.onnx"),
            [],
            augmented_model_path=str(Path(folder) / "augmented.onnx"),
            calibrate_method=CalibrationMethod[METHODS[method]],
            extra_options=options,
        )
        for batch in seen:
            calibrator.collect_data(_Reader(batch, picture))
        return calibrator.compute_data()


class _Reader:
    """Hands pictures to ONNX Runtime's calibrator, one by one."""

    def __init__(self, batch: Pixels, name: str) -> None:
        self._pictures, self._name = iter(batch), name

    def get_next(self) -> dict[str, Pixels] | None:
        picture = next(self._pictures, None)
        return None if picture is None else {self._name: picture[None]}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the quantisation library's prints and advice from the terminal."""
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
