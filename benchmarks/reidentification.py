"""Can a covered face be recognised? Two attacks with a real face recogniser, on faces whose identity is known.

Each face is cropped from its picture twice, with other framing, brightness and compression: once for the gallery and
once as the probe. Both crops stem from one picture, which is the easiest case for the attacker. The *clear* attack
compares covered probes with a clear gallery. The *alike* attack covers the gallery in the same way, as someone would
who has clear pictures of the suspects and knows the method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, new_batch, open_model
from edge.capture.images import list_pictures, read_picture
from edge.config import ModelsConfig, RedactConfig
from edge.errors import DataError
from edge.preprocess import fill_input
from edge.privacy import cover_face
from edge.records import Box, Image
from edge.redaction import Detectors
from edge.tracking import grow

RECOGNISER = "face_recognition-fp32"
COVERS = ("none", "blur", "mosaic", "solid")
LEAST = 20  #: identities
MIN_HEIGHT_PX = 64  #: a smaller face isn't recognised even when it is clear
CONTEXT = 0.2  #: the recogniser learnt from crops with so much around the face
SHIFT, SCALE, GAIN = 0.04, 0.06, 0.12  #: how far two crops of one face differ, as shares
QUALITY = (60, 90)

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class KnownFace:
    """A face of a person who is in no other picture of the set, as far as is known."""

    image: Image
    box: Box


def find_faces(pictures: Sequence[Path], models: ModelsConfig) -> list[KnownFace]:
    """Return the faces of `pictures` that are at least 64 px high, by the recall detector at a high score."""
    detectors = Detectors.open(models)
    settings = RedactConfig(recall_score=0.6, turned="never")
    faces = []
    for path in (p for source in pictures for p in list_pictures(source)):
        image = read_picture(path).image
        faces += [KnownFace(image, f.box) for f in detectors.on_still(image, settings) if f.box[3] >= MIN_HEIGHT_PX]
    return faces


def measure(faces: Sequence[KnownFace], models: ModelsConfig, *, seed: int = 0) -> dict[str, Any]:
    """Run both attacks on every cover.

    Returns
    -------
    dict
        `n`, `chance`, and per cover and attack: `hits` (the nearest of the gallery is the right one), `rate`, its
        95 % Wilson interval, and `above_chance`: whether the interval lies above chance.

    Raises
    ------
    DataError
        There are fewer than 20 faces.
    """
    if len(faces) < LEAST:
        raise DataError("faces", "are too few to tell", expected=f"at least {LEAST}", got=str(len(faces)))
    model = open_model(RECOGNISER, models)
    margin = RedactConfig().margin
    rng = np.random.default_rng(seed)
    gallery = {cover: embed(model, [render(f, cover, margin, rng) for f in faces]) for cover in COVERS}
    probes = {cover: embed(model, [render(f, cover, margin, rng) for f in faces]) for cover in COVERS}
    attacks = {
        cover: {
            "clear": _rank1(probes[cover], gallery["none"]),
            "alike": _rank1(probes[cover], gallery[cover]),
        }
        for cover in COVERS
    }
    return {"recogniser": model.manifest.model_id, "n": len(faces), "chance": 1 / len(faces), "attacks": attacks}


def render(face: KnownFace, cover: str, margin: float, rng: np.random.Generator) -> Image:
    """Return one crop of a face: covered as redaction does it, then framed, lit and compressed anew."""
    x, y, w, h = face.box
    place, size = rng.uniform(-SHIFT, SHIFT, 2), rng.uniform(1 - SCALE, 1 + SCALE)
    box = (x + place[0] * w, y + place[1] * h, w * size, h * size)  # where a detector would put it in another picture
    image = face.image
    if cover != "none":
        image = image.copy()
        cover_face(image, box, cover, margin)
    # No more than what the cover covers: beside it, the background of one picture would give it away.
    crop = _crop(image, grow(box, CONTEXT))
    lit = np.clip(crop.astype(np.float32) * rng.uniform(1 - GAIN, 1 + GAIN), 0, 255).astype(np.uint8)
    _, data = cv2.imencode(".jpg", lit, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(*QUALITY))])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


def embed(model: Model, crops: Sequence[Image]) -> Vectors:
    """Return the recogniser's vectors, float32 (n, d)."""
    spec = model.manifest.input()
    vectors = []
    for crop in crops:
        batch = new_batch(spec, 1)
        fill_input(crop, spec, batch[0])
        vectors.append(model.infer({spec.name: batch})["features"][0])
    return np.stack(vectors)


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a rate (Wilson 1927), at 95 % by default."""
    rate = hits / n
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def _rank1(probes: Vectors, gallery: Vectors) -> dict[str, Any]:
    distances = np.linalg.norm(probes[:, None].astype(np.float64) - gallery[None], axis=2)
    own = np.diag(distances)
    # A face is recognised if its own gallery picture alone is nearest: equal distances tell nobody apart.
    others = distances + np.diag(np.full(len(own), np.inf))
    hits = int((own < others.min(axis=1)).sum())
    low, high = wilson(hits, len(own))
    return {"hits": hits, "rate": hits / len(own), "interval": [low, high], "above_chance": low > 1 / len(own)}


def _crop(image: Image, box: Box) -> Image:
    """Crop a box; what lies outside the picture repeats its edge."""
    x, y, w, h = box
    rows = np.clip(np.arange(round(y), max(round(y) + 2, round(y + h))), 0, image.shape[0] - 1)
    columns = np.clip(np.arange(round(x), max(round(x) + 2, round(x + w))), 0, image.shape[1] - 1)
    return np.ascontiguousarray(image[rows][:, columns])
