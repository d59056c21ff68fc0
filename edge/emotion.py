"""A face in a picture -> probabilities of emotion classes, or the reason why there are none."""

from __future__ import annotations

import numpy as np

from edge.backends.base import Model, new_batch
from edge.errors import ModelError
from edge.labels import canonical
from edge.preprocess import fill_input
from edge.records import Box, Emotion, Image, Subject

#: The crop reaches beyond the face's box by this share of its width and height. Of the margins from -10 to 40 % it is
#: where a change of 6 % moves the probabilities least, with the boxes of both face detectors, on a clip of one face.
MARGIN = 0.05
MIN_SIDE_PX = 16  #: smaller faces have too few pixels for an expression


def crop_face(image: Image, box: Box) -> Image | None:
    """Return the part of the picture that a face's box and its margin cover, as a view; None if nothing is on it."""
    x, y, width, height = box
    left, top = x - MARGIN * width, y - MARGIN * height
    right, bottom = x + (1 + MARGIN) * width, y + (1 + MARGIN) * height
    x0, y0 = max(round(left), 0), max(round(top), 0)
    x1, y1 = min(round(right), image.shape[1]), min(round(bottom), image.shape[0])
    return image[y0:y1, x0:x1] if x1 > x0 and y1 > y0 else None


class EmotionClassifier:
    """Classify faces with one loaded model. Its labels are given by the house's names (`edge.labels`).

    Raises
    ------
    ModelError
        The model names no labels, or has no output `probabilities` of as many classes.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        manifest = model.manifest
        self._labels = tuple(canonical(label) for label in manifest.labels)
        self._spec = manifest.input()
        self._batch = new_batch(self._spec, 1)
        classes = {spec.name: spec.shape[1:] for spec in manifest.outputs}.get("probabilities")
        if not self._labels or classes != (len(self._labels),) or len(set(self._labels)) != len(self._labels):
            have = ", ".join(f"{spec.name} {spec.shape}" for spec in manifest.outputs)
            expected = f"an output `probabilities` of {len(self._labels)} classes with different names"
            raise ModelError(f"model {manifest.name}", "is no emotion classifier", expected=expected, got=have)

    def classify(self, image: Image, box: Box | None, t_ns: int, subject: Subject) -> Emotion:
        """Classify one face.

        Parameters
        ----------
        image : uint8 (h, w, 3) BGR
        box : Box or None
            The face, not clipped to the picture; None where there is no face.
        t_ns : int
            Time of the picture.
        subject : `wearer` or `fixated`
            Whose face it is.

        Returns
        -------
        Emotion
            Without a label and with a `reason` where nothing can be said: `no_face`, `face_off_picture` or
            `face_too_small`.
        """
        if box is None:
            return self._none(t_ns, subject, "no_face")
        face = crop_face(image, box)
        if face is None:
            return self._none(t_ns, subject, "face_off_picture")
        if min(face.shape[:2]) < MIN_SIDE_PX:
            return self._none(t_ns, subject, "face_too_small")
        fill_input(face, self._spec, self._batch[0])
        outputs = self.model.infer({self._spec.name: self._batch}, ("probabilities",), trusted=True)
        values = outputs["probabilities"][0].astype(np.float64)
        probabilities = values / values.sum()
        label = self._labels[int(probabilities.argmax())]
        named = dict(zip(self._labels, probabilities.tolist(), strict=True))
        return Emotion(t_ns, subject, label, named, self.model.manifest.model_id)

    def _none(self, t_ns: int, subject: Subject, reason: str) -> Emotion:
        return Emotion(t_ns, subject, "", {}, self.model.manifest.model_id, reason)
