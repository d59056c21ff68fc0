"""The model zoo's emotion classifiers as baselines: the largest face of a picture, classified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edge.commands.base import progress
from edge.files import sha256_file
from host_tools.engine import Engine, Job, Work, run
from host_tools.memo.ask.survey import Subject

BATCH = 64  #: pictures of one job; fixed, so that what is stored doesn't depend on how many jobs run at once
FACES = "centerface-fp32"
FACE_SCORE = 0.3


def classify(artefact: str, subjects: Sequence[Subject], engine: Engine) -> dict[str, tuple[str, str]]:
    """Return picture -> (label, ""); the label is empty where no face was found.

    Raises
    ------
    ModelError
        If the artefact or the face detector isn't there.
    """
    jobs = [_job(subjects[i : i + BATCH]) for i in range(0, len(subjects), BATCH)]
    batches = run(jobs, make_worker, context_of(artefact), engine=engine)
    labels = [label for batch in progress(batches, artefact, len(jobs)) for label in batch]
    return {s.image: (label, "") for s, label in zip(subjects, labels, strict=True)}


def _job(subjects: Sequence[Subject]) -> Job:
    return {"pictures": [str(s.path) for s in subjects], "sha256": [sha256_file(s.path) for s in subjects]}


def context_of(artefact: str) -> dict[str, Any]:
    """Return what a classification depends on beside the picture."""
    from edge.manifest import load_manifest, models_dir

    manifests = [load_manifest(models_dir("") / name) for name in (artefact, FACES)]
    return {"artefact": artefact, "sha256": [m.sha256 for m in manifests], "face_score": FACE_SCORE}


def make_worker(context: dict[str, Any], device: str) -> Work:
    """Load detector and classifier, and return what labels a batch of pictures."""
    import cv2

    from edge.backends.base import open_model
    from edge.config import ModelsConfig
    from edge.emotion import EmotionClassifier
    from edge.faces import FaceDetector

    detector = FaceDetector(open_model(FACES, ModelsConfig()))
    classifier = EmotionClassifier(open_model(context["artefact"], ModelsConfig()))

    def label(path: str) -> str:
        image: Any = cv2.imread(path, cv2.IMREAD_COLOR)
        if image is None:
            return ""
        faces = detector.detect(image, context["face_score"], min(640, max(image.shape[:2])))
        box = max((f.box for f in faces), key=lambda b: b[2] * b[3], default=None)
        return classifier.classify(image, box, 0, "wearer").label

    def work(job: Job) -> list[str]:
        return [label(path) for path in job["pictures"]]

    return work
