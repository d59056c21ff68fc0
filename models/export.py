"""A user's own network as an artefact: a state dict of a known architecture, an ONNX file, or a PyTorch module."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edge.backends.base import open_artefact
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.manifest import Manifest, TensorSpec
from edge.records import Image
from models.architectures import ARCHITECTURES
from models.embedders import means
from models.recipes import write_artefact
from models.state import from_state_dict

MAX_OPSET = 21  # newer than what the oldest runtime that we support reads
_IMAGE = "image"


@dataclass(frozen=True)
class Origin:
    """Where a network comes from and under which licence: what a user must say, since a file doesn't."""

    source: str
    licence: str
    weights: str = "trained"


def from_weights(architecture: str, weights: Path, name: str, origin: Origin, target: Path) -> Manifest:
    """Make an FP32 embedder of one of `ARCHITECTURES` and a PyTorch state dict; it is read without PyTorch.

    Raises
    ------
    ModelError
        The architecture is unknown, or the weights don't fit it.
    """
    if architecture not in ARCHITECTURES:
        raise ModelError(
            "models export", f"there is no architecture {architecture!r}", expected=", ".join(ARCHITECTURES)
        )
    definition = ARCHITECTURES[architecture]
    content = definition.model(from_state_dict(weights), architecture).SerializeToString()
    fields = {"inputs": definition.inputs, "outputs": definition.outputs}
    return write_embedder(name, content, origin, target, fields)


def from_onnx(file: Path, name: str, origin: Origin, target: Path, *, picture: TensorSpec, features: str) -> Manifest:
    """Make an FP32 embedder of an ONNX file.

    Parameters
    ----------
    file : Path
    name : str
    origin : Origin
    target : Path
        Folder of artefacts.
    picture : TensorSpec
        Its layout, colour, mean and scale describe the input; name and shape are taken from the file.
    features : str
        The output that is the embedding, (n, d) or a map (n, d, h, w), whose mean is then taken.

    Raises
    ------
    ModelError
        It can't be read, is newer than the runtimes, has NaN weights, several inputs, or no such output.
    """
    import onnx
    from onnx import numpy_helper

    model = _read(file)
    graph = model.graph
    weights = {weight.name for weight in graph.initializer}
    for weight in graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ModelError(str(file), f"weight {weight.name} holds NaN or infinity", fix="train or export it again")
    pictures = [value for value in graph.input if value.name not in weights]
    if len(pictures) != 1:
        raise ModelError(
            str(file), "isn't a network of one picture", got=f"inputs {', '.join(v.name for v in pictures)}"
        )
    shapes = {v.name: _shape(v) for v in onnx.shape_inference.infer_shapes(model).graph.output}
    if features not in shapes or len(shapes[features]) not in (2, 4):
        got = ", ".join(f"{n} {s}" for n, s in shapes.items())
        raise ModelError(str(file), f"output {features!r} is no embedding", expected="(n, d) or (n, d, h, w)", got=got)
    size = _shape(pictures[0])
    channels = size[1] if picture.layout == "NCHW" and len(size) == 4 else size[-1]
    if len(size) != 4 or channels != 3:
        raise ModelError(str(file), "wrong layout", expected=f"3 channels as {picture.layout} has them", got=str(size))
    spec = msgspec.structs.replace(picture, name=_IMAGE, node="", shape=(-1, *size[1:]), dims=())
    content = _rename(model, pictures[0].name, features, len(shapes[features]) == 4)
    outputs = (TensorSpec(name="features", shape=(-1, shapes[features][1]), dims=("n", "features")),)
    return write_embedder(name, content, origin, target, {"inputs": (spec,), "outputs": outputs})


def _read(file: Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(file)
        onnx.checker.check_model(model)
    except FileNotFoundError:
        raise ModelError(str(file), "no such file") from None
    except (DecodeError, onnx.checker.ValidationError) as error:
        raise ModelError(str(file), f"is no valid ONNX model: {str(error).splitlines()[0][:200]}") from error
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset > MAX_OPSET:
        fix = f"export it with opset_version={MAX_OPSET} or less"
        raise ModelError(str(file), "opset too new", expected=f"at most {MAX_OPSET}", got=str(opset), fix=fix)
    return model


def _rename(model: Any, picture: str, features: str, is_map: bool) -> bytes:
    """Give input and embedding the names that the runtime knows; a map gets its mean; the batch is set free."""
    from onnx import TensorProto, helper

    graph = model.graph
    inner = "map" if is_map else "features"
    renamed = {picture: _IMAGE, features: inner}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    for value in (*graph.input, *graph.output):
        value.name = renamed.get(value.name, value.name)
    if is_map:
        graph.node.append(helper.make_node("GlobalAveragePool", ["map"], ["pooled"]))
        graph.node.append(helper.make_node("Flatten", ["pooled"], ["features"]))
    for value in graph.input:
        if value.name == _IMAGE:
            value.type.tensor_type.shape.dim[0].dim_param = "n"
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", None]))
    content: bytes = model.SerializeToString()
    return content


def write_embedder(name: str, content: bytes, origin: Origin, target: Path, fields: dict[str, Any]) -> Manifest:
    """Check an embedder's ONNX model and write its artefact."""
    import onnx

    if not name.endswith("-fp32"):
        raise ModelError(f"model {name}", "the name must say its precision", expected=f"{name}-fp32")
    onnx.checker.check_model(onnx.load_from_string(content))
    manifest = Manifest(
        **{
            "folder": target / name,
            "name": name,
            "version": "1",
            "role": "embedder",
            "precision": "fp32",
            "file": f"{name}.onnx",
            "sha256": hashlib.sha256(content).hexdigest(),
            "source": origin.source,
            "licence": origin.licence,
            "weights": origin.weights,
            **fields,
        }
    )
    write_artefact(manifest, {manifest.file: content})
    return manifest


def add_means(manifest: Manifest, picture_set: list[Image]) -> Manifest:
    """Run a new artefact on the varied picture set, and write the means that small environments are shrunk towards."""
    model = open_artefact(manifest, ModelsConfig())
    manifest = msgspec.structs.replace(manifest, **means(model, picture_set))
    model.close()
    write_artefact(manifest, {manifest.file: manifest.path.read_bytes()})
    return manifest


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(dim.dim_value or -1 for dim in value.type.tensor_type.shape.dim)
