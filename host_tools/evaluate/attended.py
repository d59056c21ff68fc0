"""Saliency scores of each system's attention against the recorded fixations, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from edge.files import sha256_file
from host_tools.datasets.maps import read_map
from host_tools.engine import Engine, Work, run
from host_tools.evaluate.looks import Looks, batches
from host_tools.evaluate.probe import upsample
from host_tools.metrics import saliency as sal

Points = npt.NDArray[np.float64]
WORK_PX = 480  #: maps and fixations are brought to this long side; larger ones cost time and change nothing seen
METRICS = ("auc_judd", "nss", "cc", "sim", "kl", "auc_shuffled")
_OTHERS = 100  #: fixations of other samples that the shuffled AUC is taken against


@dataclass(frozen=True)
class Attention:
    """What a system attends to in one sample: a map file, a coarse map, or places; one of them."""

    map_file: Path | None = None
    coarse: npt.NDArray[np.float32] | None = None
    points: Points | None = None


def scores(
    attention: Iterator[Attention], looks: Sequence[Looks], *, sigma_px: float, engine: Engine
) -> Iterator[dict[str, float]]:
    """Give the saliency scores (`METRICS`, and the counts of fixations) of each sample, in order."""
    others = _others(looks)
    items = (_item(a, look, others) for a, look in zip(attention, looks, strict=True))
    jobs = ({"items": part} for part in batches(items))
    for part in run(jobs, make_scorer, {"sigma_px": sigma_px, "work_px": WORK_PX}, engine=engine):
        yield from part


def make_scorer(context: dict[str, Any], device: str) -> Work:
    """Return what scores a batch of samples (a worker of `host_tools.engine`)."""

    def one(item: dict[str, Any]) -> dict[str, float]:
        width, height = item["size"]
        fixations = np.array(item["fixations"], dtype=np.float64).reshape(-1, 2)
        nothing_said = not item["map_sha"] and item["coarse"] is None and not item["points"]
        if not width or not len(fixations) or nothing_said:
            return asdict(sal.score(np.zeros((1, 1)), [], []))
        scale = min(1.0, context["work_px"] / max(width, height))
        sigma = context["sigma_px"] * scale
        values = _map(item, (width, height), scale, sigma)
        ratio = np.array([values.shape[1] / width, values.shape[0] / height])
        others = np.array(item["others"]).reshape(-1, 2) * [values.shape[1], values.shape[0]]
        return asdict(sal.score(values, *(fixations * ratio).T, sigma_px=sigma, others=(others[:, 0], others[:, 1])))

    return lambda job: [one(item) for item in job["items"]]


def _map(item: dict[str, Any], size: tuple[int, int], scale: float, sigma: float) -> sal.Array:
    import cv2

    target = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    if item["map_sha"]:
        values = read_map(Path(item["_map"]))
        if values.shape != (size[1], size[0]):
            expected, got = f"{size[0]}x{size[1]}", f"{values.shape[1]}x{values.shape[0]}"
            raise DataError(item["_map"], "has another size than its picture", expected=expected, got=got)
        return np.asarray(cv2.resize(values, target, interpolation=cv2.INTER_AREA))
    if item["coarse"] is not None:
        return upsample(np.array(item["coarse"]), size, max(target))
    points = np.array(item["points"], dtype=np.float64).reshape(-1, 2) * scale
    pixels, _ = sal.to_pixels(points[:, 0], points[:, 1], (target[1], target[0]))
    return sal.density((target[1], target[0]), pixels, sigma)


def _item(attention: Attention, looks: Looks, others: Points) -> dict[str, Any]:
    path = attention.map_file
    return {
        "size": list(looks.size),
        "fixations": np.stack([looks.x_px, looks.y_px], axis=1).tolist(),
        "others": others.tolist(),
        "_map": str(path) if path else "",
        "map_sha": sha256_file(path) if path else "",
        "coarse": None if attention.coarse is None else attention.coarse.tolist(),
        "points": None if attention.points is None else attention.points.tolist(),
    }


def _others(looks: Sequence[Looks]) -> Points:
    """Return fixations of the data set as shares of their picture's size, evenly chosen: the shuffled AUC's negatives.

    They come from all samples; the scored one's own share is 1 in n.
    """
    everyone = [np.stack([k.x_px / k.size[0], k.y_px / k.size[1]], axis=1) for k in looks if k.size[0] and len(k)]
    if not everyone:
        return np.empty((0, 2))
    rows = np.concatenate(everyone)
    rows = rows[((rows >= 0) & (rows < 1)).all(axis=1)]
    return np.asarray(rows[:: max(1, len(rows) // _OTHERS)])
