"""A linear probe on the scene embedding: an image model whose class activation maps are had in closed form.

For a network that ends in global average pooling and a linear layer, the map of class c is ``sum_k W[c, k] F_k`` over
the feature map F (Zhou et al. 2016); Grad-CAM gives the same up to scale (Selvaraju et al. 2017), so no gradients are
needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.config import ModelsConfig
from edge.errors import DataError
from host_tools.datasets.layout import Dataset
from host_tools.datasets.maps import read_picture
from host_tools.engine import Engine, Work, run
from host_tools.evaluate.config import SystemConfig
from host_tools.evaluate.embed import Array, Points, Request, embed, feature_maps, model_context, open_embedder
from host_tools.evaluate.looks import batches
from host_tools.evaluate.systems import Answers, fit_softmax
from host_tools.labels import encode_true
from host_tools.metrics.saliency import peaks

CAM_PX = 224  #: long side that a map is brought to, to look for its peaks
_INHIBITION = 0.1  #: radius that a peak takes out, as a share of the short side


@dataclass(frozen=True)
class Probed:
    """What the probe says of each sample: answers, class activation maps (rows, columns) and the places it looks at."""

    answers: Answers
    maps: list[npt.NDArray[np.float32]]
    points: list[Points]


def probe(
    system: SystemConfig,
    everything: Dataset,
    dataset: Dataset,
    models: ModelsConfig,
    counts: Sequence[int],
    *,
    media_sha: dict[str, str],
    engine: Engine,
) -> Probed:
    """Fit the probe on one split and answer the samples of `dataset`.

    Raises
    ------
    DataError
        If the split is empty, or shares a picture with the samples: the probe would have seen the answer.
    """
    train = everything.only(system.train_split)
    shared = {s.media for s in train.samples} & {s.media for s in dataset.samples}
    if shared:
        raise DataError(
            f"system {system.name!r}",
            f"{len(shared)} pictures are both in split {system.train_split!r} and evaluated",
            fix="choose another train_split, or evaluate another split",
        )
    requests = (Request(s.media, media_sha[s.media], {}) for s in train.samples)
    vectors = embed(requests, train.folder, models, projection=train.info.projection, engine=engine)
    features = np.stack([one.scene for one in vectors])
    codes = encode_true([s.label for s in train.samples], dataset.label_set)
    weights, intercepts = fit_softmax(features, codes, len(dataset.label_set))
    found = list(_answer(dataset, models, counts, weights, intercepts, media_sha, engine))
    p = np.stack([one["p"] for one in found])
    labels = [dataset.label_set.labels[int(k)] for k in p.argmax(axis=1)]
    note = f"fitted on {len(train)} samples of split {system.train_split!r}"
    return Probed(Answers(labels, p, {}, (note,)), [one["map"] for one in found], [one["points"] for one in found])


def _answer(
    dataset: Dataset,
    models: ModelsConfig,
    counts: Sequence[int],
    weights: Array,
    intercepts: Array,
    media_sha: dict[str, str],
    engine: Engine,
) -> Iterator[dict[str, Any]]:
    context = {
        **model_context(models),
        "_root": str(dataset.folder),
        "weights": np.round(weights, 9).tolist(),
        "intercepts": np.round(intercepts, 9).tolist(),
    }
    items = (
        {"media": s.media, "sha": media_sha[s.media], "n": int(n)} for s, n in zip(dataset.samples, counts, strict=True)
    )
    jobs = ({"items": part} for part in batches(items))
    for part in run(jobs, make_cam, context, engine=engine):
        yield from part


def make_cam(context: dict[str, Any], device: str) -> Work:
    """Return what gives a batch of samples probabilities, the predicted class's map and its peaks (a worker)."""
    embedder = open_embedder(context, device)
    root = Path(context["_root"])
    weights, intercepts = np.array(context["weights"]), np.array(context["intercepts"])

    def one(item: dict[str, Any]) -> dict[str, Any]:
        picture = read_picture(root / item["media"])
        features = feature_maps(embedder.model, [picture])[0].astype(np.float64)
        logits = weights @ features.mean(axis=(1, 2)) + intercepts
        p = np.exp(logits - logits.max())
        cam = np.tensordot(weights[int(logits.argmax())], features, axes=1)
        size = picture.shape[1], picture.shape[0]
        return {"p": p / p.sum(), "map": cam.astype(np.float32), "points": cam_points(cam, size, item["n"])}

    return lambda job: [one(item) for item in job["items"]]


def cam_points(cam: Array, size: tuple[int, int], n: int) -> Points:
    """Return the n highest peaks (n, 2) of a coarse map, in pixels of a picture of `size` (width, height)."""
    fine = upsample(cam, size, CAM_PX)
    x, y = peaks(fine, n, radius_px=_INHIBITION * min(fine.shape))
    scale = np.array(size) / [fine.shape[1], fine.shape[0]]
    return np.asarray(np.stack([x, y], axis=1) * scale)


def upsample(cam: npt.NDArray, size: tuple[int, int], long_side: int) -> Array:
    """Return a coarse map resized (cubic) to the proportions of a picture of `size`, `long_side` pixels long."""
    import cv2

    scale = long_side / max(size)
    target = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return np.asarray(cv2.resize(np.asarray(cam, dtype=np.float64), target, interpolation=cv2.INTER_CUBIC))
