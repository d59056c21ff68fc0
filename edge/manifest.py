"""What a model artefact is: a folder with a weights file and the `model.json` that describes it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from edge.errors import ModelError
from edge.files import decode_document, sha256_file

MODEL_FILE = "model.json"
FORMAT = 1

log = logging.getLogger(__name__)

Layout = Literal["", "NCHW", "NHWC"]
Colour = Literal["", "RGB", "BGR", "GRAY"]
DType = Literal["float32", "float16", "uint8", "int8", "int32", "int64"]
Precision = Literal["fp32", "fp16", "bf16", "int8-u8s8", "int8-s8s8", "int8"]
RoleName = Literal["embedder", "face_detector", "emotion", "face_mesh", "iris", "face_embedder", "object_detector"]


class _Part(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of `model.json`: immutable, unknown keys refused."""


class TensorSpec(_Part, frozen=True):
    """One input or output. For a picture input, ``value = (pixel - mean) * scale``, per channel in order of `colour`.

    A size of -1 in `shape` is free. `dims` names the dimensions, e.g. ``("n", "features")``; `node` is the tensor's
    name in the weights file where that is another.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType = "float32"
    layout: Layout = ""
    colour: Colour = ""
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    dims: tuple[str, ...] = ()
    node: str = ""

    def size(self, default: int = 0) -> tuple[int, int]:
        """Return (width, height) of a picture input; a free side gives `default`."""
        sides = self.shape[2:4] if self.layout == "NCHW" else self.shape[1:3]
        height, width = (side if side > 0 else default for side in sides)
        return width, height


class Canary(_Part, frozen=True):
    """A picture beside the weights whose class is known: a wrong channel order or layout shows when it is loaded."""

    file: str
    output: str
    top1: int
    label: str
    probability: float
    tolerance: float = 0.05


class Manifest(_Part, frozen=True, eq=False):
    """`model.json`. `folder` is where it was read; `mean_local` and `mean_global` are float32 (d,) or None.

    The means are those of local windows and of whole scenes over a varied picture set (`mean_source`); a small
    environment's mean is shrunk towards them. `fp32_nodes` names the nodes of the weights file that are computed in
    FP32 where the file itself can't say so (BF16). `drift` holds what was measured against `reference`, the artefact it
    was made from, and `gate` whether that passed.
    """

    folder: Path
    name: str
    version: str
    role: RoleName
    precision: Precision
    file: str
    sha256: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    source: str
    licence: str
    weights: Literal["trained", "seeded"]
    labels: tuple[str, ...] = ()
    decoder: str = ""
    canary: Canary | None = None
    mean_local: np.ndarray | None = None
    mean_global: np.ndarray | None = None
    mean_source: str = ""
    separation: dict[str, float] = {}
    fp32_nodes: tuple[str, ...] = ()
    reference: str = ""
    drift: dict[str, Any] = {}
    gate: Literal["", "passed", "failed"] = ""
    format: int = FORMAT

    @property
    def path(self) -> Path:
        """The weights file."""
        return self.folder / self.file

    @property
    def model_id(self) -> str:
        """Name and the first digits of the hash: what scores and caches quote."""
        return f"{self.name}@{self.sha256[:12]}"

    def input(self, name: str = "") -> TensorSpec:
        """Return the input `name`, or the only one."""
        return _pick(self.inputs, name, f"model {self.name}", "input")

    def output(self, name: str = "") -> TensorSpec:
        """Return the output `name`, or the only one."""
        return _pick(self.outputs, name, f"model {self.name}", "output")


def _pick(specs: tuple[TensorSpec, ...], name: str, thing: str, kind: str) -> TensorSpec:
    found = [spec for spec in specs if name in ("", spec.name)]
    if len(found) == 1:
        return found[0]
    have = ", ".join(spec.name for spec in specs)
    raise ModelError(
        thing, f"has no {kind} {name!r}" if name else f"has more than one {kind}", expected=f"one of {have}"
    )


def models_dir(setting: str) -> Path:
    """Return the folder of artefacts: `setting`, else EMOGAZE_MODELS, else ``~/.cache/emogaze/models``."""
    chosen = setting or os.environ.get("EMOGAZE_MODELS", "")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "emogaze" / "models"


def load_manifest(folder: Path, *, check_hash: bool = True) -> Manifest:
    """Read an artefact's `model.json` and check that the weights file is the one it describes.

    Raises
    ------
    ModelError
        There is no artefact, a key is unknown or missing, or the file's hash differs.
    """
    file = folder / MODEL_FILE
    try:
        values = decode_document(file.read_bytes(), msgspec.json.decode)
        if not isinstance(values, dict) or "folder" in values:
            raise ModelError(str(file), "is no description of a model", expected="an object without the key 'folder'")
        manifest = msgspec.convert({**values, "folder": folder}, Manifest, dec_hook=_decode)
    except FileNotFoundError:
        fix = f"`python -m models fetch default`, or `fetch {folder.name}` beyond it, or `emogaze model add FOLDER`"
        raise ModelError(str(folder), f"there is no model artefact (no {MODEL_FILE})", fix=fix) from None
    except (OSError, msgspec.DecodeError) as error:  # a ValidationError is a DecodeError
        raise ModelError(str(file), f"can't be read: {error}") from error
    if manifest.format != FORMAT:
        raise ModelError(
            str(file), "another format", expected=str(FORMAT), got=str(manifest.format), fix="fetch it again"
        )
    _check_role(manifest)
    _check_layout(manifest)
    if check_hash:
        _check_hash(manifest)
    return manifest


def scan_artefacts(folder: Path) -> tuple[list[Manifest], list[ModelError]]:
    """Return the manifests in `folder`, by name, and what is wrong with those that can't be read.

    Hashes are not checked; a folder without `model.json` is no artefact.
    """
    found, unreadable = [], []
    for file in sorted(folder.glob(f"[!.]*/{MODEL_FILE}")):
        try:
            found.append(load_manifest(file.parent, check_hash=False))
        except ModelError as error:
            unreadable.append(error)
    return found, unreadable


def list_artefacts(folder: Path) -> list[Manifest]:
    """Return the manifests in `folder`, by name; one that can't be read is named in a warning and left out."""
    found, unreadable = scan_artefacts(folder)
    for error in unreadable:
        log.warning("left out %s", error)
    return found


def encode(manifest: Manifest) -> bytes:
    """Return the text of `model.json`."""
    values = msgspec.to_builtins(manifest, enc_hook=_encode)
    del values["folder"]
    return msgspec.json.format(msgspec.json.encode(values), indent=1)


def _check_role(manifest: Manifest) -> None:
    """An embedder gives vectors, a classifier a probability per label, a detector names its decoder."""
    thing, role = str(manifest.folder / MODEL_FILE), manifest.role
    outputs = {spec.name: spec.shape for spec in manifest.outputs}
    if role in ("embedder", "face_embedder"):
        names = ("local", "global") if {"local", "global"} <= set(outputs) else ("features",)
        shapes = [outputs.get(name, ()) for name in names]
        if any(len(shape) != 2 or shape[1] < 2 for shape in shapes):
            got = ", ".join(f"{name} {shape}" for name, shape in outputs.items())
            expected = "'features' of shape (n, d), or 'local' and 'global'"
            raise ModelError(thing, "its output is no embedding", expected=expected, got=got)
    elif role == "emotion":
        expected = f"'probabilities' of shape (n, {len(manifest.labels)}), as many as labels"
        if outputs.get("probabilities", ())[1:] != (len(manifest.labels),):
            raise ModelError(thing, "doesn't classify its labels", expected=expected, got=str(outputs))
    elif role == "face_detector" and not manifest.decoder:
        raise ModelError(thing, "doesn't say how its boxes are decoded", expected="the key 'decoder'")


def _check_layout(manifest: Manifest) -> None:
    """A picture input has its channels where its layout says."""
    for spec in (spec for spec in manifest.inputs if spec.layout):
        channels = 1 if spec.colour == "GRAY" else 3
        place = 1 if spec.layout == "NCHW" else -1
        if len(spec.shape) != 4 or spec.shape[place] != channels:
            expected = f"{channels} channel{'s' if channels > 1 else ''} as {spec.layout} has them"
            thing = f"{manifest.folder / MODEL_FILE}, input {spec.name}"
            raise ModelError(thing, "wrong layout", expected=expected, got=str(spec.shape))


def _check_hash(manifest: Manifest) -> None:
    try:
        got = sha256_file(manifest.path)
    except OSError as error:
        raise ModelError(str(manifest.path), f"can't be read: {error.strerror}", fix="fetch it again") from error
    if got != manifest.sha256:
        fix = "it was altered or cut: fetch or add it again"
        raise ModelError(str(manifest.path), "wrong hash", expected=manifest.sha256[:16], got=got[:16], fix=fix)


def _decode(kind: type, value: object) -> object:
    if kind is np.ndarray:
        return np.asarray(value, dtype=np.float32)
    if kind is Path and isinstance(value, Path):
        return value
    raise NotImplementedError(kind)


def _encode(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [float(f"{v:.7g}") for v in value.tolist()]
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))
