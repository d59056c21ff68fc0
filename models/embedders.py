"""What all embedders share: their outputs, the canary picture, and the means over a varied picture set."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, choose_backend, new_batch
from edge.config import ModelsConfig
from edge.manifest import Canary, Manifest, TensorSpec
from edge.preprocess import fill_input
from edge.records import Image
from models.archives import Store
from models.recipes import Built

if TYPE_CHECKING:
    import onnx

#: Pictures of the scikit-image wheel, as varied as it has them: people, animals, textures, sky, paper, microscopy.
PICTURES = (
    *("astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png"),
    *("gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png", "page.png", "retina.jpg"),
    "rocket.jpg",
)
_CANARY = ("chelsea.png", 285, "Egyptian cat")  # number and name of the class in ImageNet
_GRID = 3  # local windows per side of a picture
_WINDOW = 0.25  # their size, as a share of the short side


def outputs(features: int, side: int, classes: int = 0) -> tuple[TensorSpec, ...]:
    """An embedder's outputs: the last feature map, its mean over the picture, and logits where it has any."""
    found = (
        TensorSpec(name="features", shape=(-1, features), dims=("n", "features")),
        TensorSpec(name="map", shape=(-1, features, side, side), dims=("n", "features", "rows", "columns")),
    )
    return (*found, TensorSpec(name="logits", shape=(-1, classes), dims=("n", "classes"))) if classes else found


def picture(store: Store, name: str) -> Image:
    """Return a picture of the set as BGR."""
    import cv2

    data = np.frombuffer(_without_profile(store.member("pictures", f"skimage/data/{name}")), dtype=np.uint8)
    return cast(Image, cv2.imdecode(data, cv2.IMREAD_COLOR))


def _without_profile(picture: bytes) -> bytes:
    """Leave out a PNG's colour profile: OpenCV doesn't use it, but libpng warns of one that it finds faulty."""
    kind = picture.find(b"iCCP")  # a chunk: length (4 bytes), kind (4), data, checksum (4)
    if not picture.startswith(b"\x89PNG") or kind < 0:
        return picture
    length = int.from_bytes(picture[kind - 4 : kind], "big")
    return picture[: kind - 4] + picture[kind + 4 + length + 4 :]


def windows(image: Image) -> list[Image]:
    """Cut a regular grid of local windows, each a quarter of the short side."""
    height, width = image.shape[:2]
    side = round(_WINDOW * min(height, width))
    lefts, tops = (np.linspace(0, length - side, _GRID).round().astype(int) for length in (width, height))
    return [image[top : top + side, left : left + side] for top in tops for left in lefts]


def embed(model: Model, images: list[Image], output: str = "features", batch: int = 8) -> npt.NDArray[np.float32]:
    """Return the float32 (n, d) `output` of pictures of any size."""
    spec = model.manifest.input()
    return np.concatenate([model.infer({spec.name: x}, (output,))[output] for x in batches(images, spec, batch)])


def batches(images: list[Image], spec: TensorSpec, size: int) -> Iterator[npt.NDArray[np.float32]]:
    """Yield pictures as a network takes them, up to `size` at once."""
    for start in range(0, len(images), size):
        chunk = images[start : start + size]
        pixels = new_batch(spec, len(chunk))
        for item, image in zip(pixels, chunk, strict=True):
            fill_input(image, spec, item)
        yield pixels


def picture_set(store: Store) -> list[Image]:
    """Return the varied picture set that means are taken over."""
    return [picture(store, name) for name in PICTURES]


def means(model: Model, images: list[Image]) -> dict[str, Any]:
    """Return the manifest's `mean_local`, `mean_global` and `mean_source` of an embedder."""
    names = {spec.name for spec in model.manifest.outputs}
    local, scene = ("local", "global") if {"local", "global"} <= names else ("features", "features")
    return {
        "mean_local": embed(model, [w for image in images for w in windows(image)], local).mean(axis=0),
        "mean_global": embed(model, images, scene).mean(axis=0),
        "mean_source": "scikit-image: " + ", ".join(PICTURES),
    }


def finish(
    model: onnx.ModelProto,
    inputs: tuple[TensorSpec, ...],
    outputs_: tuple[TensorSpec, ...],
    store: Store,
    *,
    imagenet: bool = False,
) -> Built:
    """Run a new embedder on the picture set: its means, and the canary where it knows ImageNet's classes."""
    import cv2

    content = model.SerializeToString()
    fields: dict[str, Any] = {"inputs": inputs, "outputs": outputs_}
    images = picture_set(store)
    extra = {}
    with tempfile.TemporaryDirectory() as folder:
        loaded = _load(Path(folder), content, fields)
        fields |= means(loaded, images)
        if imagenet:
            name, top1, label = _CANARY
            small = cast(Image, cv2.resize(picture(store, name), inputs[0].size(), interpolation=cv2.INTER_AREA))
            logits = embed(loaded, [small], "logits")[0].astype(np.float64)
            probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
            extra = {
                "canary.png": cv2.imencode(".png", small)[1].tobytes(),
                "canary.LICENSE": store.licence("pictures"),
            }
            share = round(float(probabilities[top1]), 4)
            fields["canary"] = Canary(file="canary.png", output="logits", top1=top1, label=label, probability=share)
        loaded.close()
    return Built(content, ".onnx", fields, extra)


def _load(folder: Path, content: bytes, fields: dict[str, Any]) -> Model:
    """Open weights that are no artefact yet."""
    (folder / "model.onnx").write_bytes(content)
    manifest = Manifest(
        folder=folder,
        name="new",
        version="0",
        role="embedder",
        precision="fp32",
        file="model.onnx",
        sha256="",
        source="",
        licence="",
        weights="trained",
        **fields,
    )
    return choose_backend(manifest).open_session(manifest, ModelsConfig())
