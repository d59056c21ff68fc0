"""The answers of the systems under test: labels, probabilities and attention, from tables or from a fitted probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from edge.files import sha256_file
from host_tools import labels as lb
from host_tools.datasets.layout import Dataset, read_fixation_table
from host_tools.datasets.maps import read_map
from host_tools.evaluate.config import SystemConfig
from host_tools.metrics.saliency import peaks
from host_tools.samples import check_ids, named, share
from host_tools.tables import read_table

Array = npt.NDArray[np.float64]
Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """A system's answers in the order of the data set's samples.

    `pred` holds canonical labels ("" where there is none), `p` probabilities (n, K) or None, `extra` further columns
    (`bf1`, `att_<modality>`), `notes` what was counted.
    """

    pred: list[str]
    p: Array | None = None
    extra: dict[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_answers(path: Path, dataset: Dataset) -> Answers:
    """Read a table of predictions: sample_id, pred, optional p_<label>, att_<modality>, bf1.

    A sample without a prediction counts as wrong and is counted; predictions for samples that the data set (or the
    chosen split) doesn't hold are left out and counted.

    Raises
    ------
    DataError
        A column is missing, an id stands twice, no sample has a prediction, or a value is outside [0, 1].
    """
    table = read_table(path)
    ids = check_ids(table.text("sample_id"), table.path)
    place = {name: i for i, name in enumerate(ids)}
    rows = [place.get(sample.sample_id) for sample in dataset.samples]
    absent = [s.sample_id for s, row in zip(dataset.samples, rows, strict=True) if row is None]
    if len(absent) == len(dataset):
        raise DataError(
            str(path), "predicts none of the samples", expected=named([s.sample_id for s in dataset.samples])
        )
    maps = lb.meaning_maps(dataset.info.maps)
    said = [lb.canonical(text, maps) for text in table.text("pred")]
    notes = [f"{len(absent)} samples without a prediction, counted as wrong: {named(absent)}"] if absent else []
    beyond = len(ids) - (len(dataset) - len(absent))
    if beyond:
        notes.append(f"{beyond} predictions are of no sample of this data set or split, and are left out")

    def aligned(values: Array) -> Array:
        return np.array([np.nan if row is None else values[row] for row in rows])

    columns = {lb.canonical(name[2:], maps): name for name in table.columns if name.startswith("p_")}
    lacking = [label for label in dataset.label_set.labels if label not in columns]
    p = None
    if columns and lacking:
        raise DataError(str(path), "has probabilities of some labels only", expected="also " + ", ".join(lacking))
    if columns:
        p = np.stack([aligned(share(table, columns[label])) for label in dataset.label_set.labels], axis=1)
    extra = {n: aligned(share(table, n)) for n in table.columns if n in ("bf1", "fcc") or n.startswith("att_")}
    return Answers(["" if row is None else said[row] for row in rows], p, extra, tuple(notes))


def predicted_points(config: SystemConfig, base: Path, dataset: Dataset, counts: Sequence[int]) -> Iterator[Points]:
    """Give the places (n, 2) that a system looks at in each sample, in order; (0, 2) where it says none.

    From a table of fixations, or from saliency maps by their highest peaks with inhibition of return, as many as
    `counts` says were recorded.
    """
    if config.fixations:
        path = base / config.fixations
        everyone = read_fixation_table(path, dataset.known)
        for sample in dataset.samples:
            columns = everyone.get(sample.sample_id)
            yield np.empty((0, 2)) if columns is None else np.stack([columns["x_px"], columns["y_px"]], axis=1)
        return
    for sample, n in zip(dataset.samples, counts, strict=True):
        path_of_map = map_path(base / config.maps, sample.sample_id)
        if path_of_map is None:
            yield np.empty((0, 2))
            continue
        values = read_map(path_of_map)
        x, y = peaks(values, n, radius_px=0.1 * min(values.shape))
        yield np.stack([x, y], axis=1)


def map_path(folder: Path, sample_id: str) -> Path | None:
    """Return where a sample's saliency map lies, or None."""
    for suffix in (".npy", ".png"):
        path = folder / f"{sample_id}{suffix}"
        if path.is_file():
            return path
    return None


def fit_softmax(
    features: npt.ArrayLike, codes: npt.NDArray[np.int64], n_labels: int, *, l2: float = 1.0
) -> tuple[Array, Array]:
    """Fit a multinomial logistic regression; return weights (K, d) and intercepts (K,) for raw features.

    Features are standardised inside; `l2` penalises the weights of the standardised features, per sample.
    """
    from scipy.optimize import minimize

    x = np.asarray(features, dtype=np.float64)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    z = (x - mean) / spread / np.sqrt(x.shape[1])
    target = np.eye(n_labels)[codes]

    def loss(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(n_labels, -1)
        logits = z @ w[:, :-1].T + w[:, -1]
        logits -= logits.max(axis=1, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        residual = (np.exp(log_p) - target) / len(z)
        gradient = np.concatenate([residual.T @ z, residual.sum(axis=0)[:, None]], axis=1)
        gradient[:, :-1] += l2 / len(z) * w[:, :-1]
        value = -np.sum(target * log_p) / len(z) + l2 / (2 * len(z)) * np.sum(w[:, :-1] ** 2)
        return float(value), gradient.ravel()

    start = np.zeros(n_labels * (z.shape[1] + 1))
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    w = found.x.reshape(n_labels, -1)
    weights = w[:, :-1] / spread / np.sqrt(x.shape[1])
    return weights, w[:, -1] - weights @ mean


def content_hash(folder: Path) -> str:
    """Return a hash of the contents of a file, or of a folder's files and their names."""
    import hashlib

    if folder.is_file():
        return sha256_file(folder)
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder)} {sha256_file(path)}\n".encode())
    return digest.hexdigest()
