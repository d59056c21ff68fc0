"""Faces to emotions: what can't be said has a reason, and a real clip is read as its labels say."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest
from pixel_model import PixelModel

from edge.backends.base import Model, Tensors, open_model
from edge.capture import open_capture
from edge.config import ModelsConfig, SceneConfig
from edge.emotion import EmotionClassifier, crop_face
from edge.errors import ModelError
from edge.faces import FaceDetector
from edge.manifest import Manifest, TensorSpec


class ColourModel(Model):
    """Three classes as likely as red, green and blue are bright: 1 to 2, which don't sum to 1."""

    def __init__(self, labels: tuple[str, ...], output: str = "probabilities") -> None:
        values = msgspec.structs.asdict(PixelModel().manifest)
        values |= {"role": "emotion", "labels": labels, "outputs": (TensorSpec(name=output, shape=(-1, 3)),)}
        super().__init__(Manifest(**values), backend="numpy", active="cpu")

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        return {outputs[0]: (feeds["image"].mean(axis=(2, 3)) / 255 + 1).astype(np.float32)}


LABELS = ("anger", "happiness", "Surprised")


def test_probabilities_under_the_houses_names() -> None:
    image = np.zeros((100, 100, 3), np.uint8)
    image[..., 2] = 255  # red
    emotion = EmotionClassifier(ColourModel(LABELS)).classify(image, (20, 20, 40, 40), 7, "wearer")
    assert (emotion.label, emotion.subject, emotion.t_ns, emotion.reason) == ("angry", "wearer", 7, "")
    assert emotion.probabilities == pytest.approx({"angry": 0.5, "happy": 0.25, "surprise": 0.25}, abs=1e-6)


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        pytest.param(None, "no_face", id="none"),
        pytest.param((120.0, 10.0, 30.0, 30.0), "face_off_picture", id="right-of-it"),
        pytest.param((-50.0, -50.0, 40.0, 40.0), "face_off_picture", id="above-left"),
        pytest.param((10.0, 10.0, 0.0, 0.0), "face_off_picture", id="zero-area"),
        pytest.param((10.0, 10.0, 8.0, 30.0), "face_too_small", id="narrow"),
        pytest.param((-35.0, 10.0, 40.0, 40.0), "face_too_small", id="a-sliver-at-the-edge"),
    ],
)
def test_no_face_no_emotion(box: tuple[float, float, float, float] | None, reason: str) -> None:
    emotion = EmotionClassifier(ColourModel(LABELS)).classify(np.zeros((100, 100, 3), np.uint8), box, 7, "fixated")
    assert (emotion.label, emotion.probabilities, emotion.reason) == ("", {}, reason)


def test_the_crop_reaches_beyond_the_box_and_stays_on_the_picture() -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    inside, edge = crop_face(image, (50, 20, 40, 60)), crop_face(image, (180, 60, 40, 60))
    assert inside is not None and inside.shape == (66, 44, 3)
    assert edge is not None and edge.shape == (43, 22, 3)


@pytest.mark.parametrize(
    ("labels", "output"),
    [
        pytest.param((), "probabilities", id="no-labels"),
        pytest.param(("a", "b"), "probabilities", id="too-few"),
        pytest.param(("anger", "angry", "sad"), "probabilities", id="one-name-twice"),
        pytest.param(LABELS, "scores", id="unknown-output"),
    ],
)
def test_what_is_no_classifier_is_refused(labels: tuple[str, ...], output: str) -> None:
    with pytest.raises(ModelError, match="no emotion classifier"):
        EmotionClassifier(ColourModel(labels, output))


def test_agreement_with_the_labels_of_a_clip(data: Path, artefacts: Path) -> None:
    """A check that crop, colours and label order are right; no statement about accuracy."""
    models = ModelsConfig(dir=str(artefacts))
    detector = FaceDetector(open_model("blazeface_full_sparse-fp32", models))
    classifier = EmotionClassifier(open_model("mini_xception-fp32", models))
    with (data / "faces" / "emotion_segments_WolfgangLanger.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["label"] != "ambiguous"]
    label_of = {i: row["label"] for row in rows for i in range(int(row["first_frame"]), int(row["last_frame"]) + 1)}
    agree = []
    clip = SceneConfig(source=str(data / "faces" / "WolfgangLanger_Pexels.mp4"))
    with open_capture(clip, "face") as source:
        while frame := source.read():
            if frame.frame_id % 8 == 0 and frame.frame_id in label_of:
                found = detector.detect(frame.image, 0.4)
                emotion = classifier.classify(frame.image, found[0].box if found else None, frame.t_ns, "wearer")
                agree.append(emotion.label == label_of[frame.frame_id])
    assert len(agree) > 35
    assert np.mean(agree) >= 0.9
