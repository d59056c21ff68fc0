"""The runtime's emotion classifier on a data set's face pictures, as one system among others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edge.config import ModelsConfig
from edge.emotion import EmotionClassifier
from edge.errors import DataError
from edge.files import sha256_file
from edge.labels import canonical
from edge.manifest import load_manifest, models_dir
from host_tools.datasets.layout import Dataset
from host_tools.datasets.maps import read_picture
from host_tools.engine import Engine, Work, run
from host_tools.evaluate.devices import open_on
from host_tools.evaluate.looks import batches
from host_tools.evaluate.systems import Answers


def classify_faces(dataset: Dataset, models: ModelsConfig, artefact: str, *, engine: Engine) -> Answers:
    """Classify each sample's face picture, taken whole as the face.

    Probabilities of labels that the data set doesn't have are left out and the rest is not rescaled: what the
    classifier gives to another emotion is lost to it.

    Raises
    ------
    DataError
        If no sample has a face picture.
    """
    without = sum(not s.face for s in dataset.samples)
    if without == len(dataset):
        raise DataError(str(dataset.folder), "has no face pictures", fix="choose another kind of system")
    manifest = load_manifest(models_dir(models.dir) / artefact)
    context = {
        "model": manifest.model_id,
        "sha": manifest.sha256,
        "_artefact": artefact,
        "_models": msgspec.to_builtins(models),
        "_root": str(dataset.folder),
    }
    jobs = ({"items": part} for part in batches(_describe(dataset)))
    found = [one for part in run(jobs, make_classifier, context, engine=engine) for one in part]
    labels = dataset.label_set.labels
    p = np.array([[one["p"].get(label, 0.0) if one["p"] else np.nan for label in labels] for one in found])
    known = {canonical(label) for label in manifest.labels}
    notes = [f"{without} samples have no face picture, counted as wrong"] if without else []
    beyond = sorted(set(labels) - known)
    if beyond:
        notes.append("the classifier doesn't know " + ", ".join(beyond))
    return Answers([one["label"] for one in found], p, {}, tuple(notes))


def make_classifier(context: dict[str, Any], device: str) -> Work:
    """Return what classifies a batch of faces (a worker of `host_tools.engine`)."""
    models = msgspec.convert(context["_models"], ModelsConfig)
    classifier = EmotionClassifier(open_on(device, context["_artefact"], models))
    root = Path(context["_root"])

    def one(item: dict[str, Any]) -> dict[str, Any]:
        if not item["face"]:
            return {"label": "", "p": {}}
        picture = read_picture(root / item["face"])
        whole = (0.0, 0.0, float(picture.shape[1]), float(picture.shape[0]))
        emotion = classifier.classify(picture, whole, 0, "wearer")
        return {"label": emotion.label, "p": emotion.probabilities}

    return lambda job: [one(item) for item in job["items"]]


def _describe(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for sample in dataset.samples:
        yield {"face": sample.face, "sha": sha256_file(dataset.path(sample.face)) if sample.face else ""}
