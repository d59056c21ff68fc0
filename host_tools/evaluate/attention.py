"""From vectors to similarities to FCC, by where the compared attention comes from.

`predicted`, `gradcam`
    v is what the system looks at, e what people look at in the same sample; fixations are matched one to one. Globally
    the scene is pooled with the density of either, since a whole scene against itself would be 1 by construction.
`observed`
    For systems that give labels alone: v is what people look at, e the best match in the environment, which never
    holds the scored picture. A best match over a whole index is biased upward.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.embedding import Transform, fit_transform, pca_dim
from edge.environment import EnvironmentCache
from edge.fcc import fcc_of_fixations, fcc_of_samples, weights_for
from edge.manifest import Manifest
from edge.records import NAN
from host_tools.datasets import panorama
from host_tools.evaluate.embed import HUMAN, Embedded, Matrix, Points, on_picture

Array = npt.NDArray[np.float64]
LARGEST_ENVIRONMENT = 20_000  #: windows kept; beyond it every n-th is


@dataclass(slots=True)
class Pairs:
    """Compared fixations: the sample's place, the recorded fixation's number in it, and both cosines (or `nan`).

    `reasons` counts why samples or fixations have none.
    """

    sample: list[int] = field(default_factory=list)
    fixation: list[int] = field(default_factory=list)
    sim_local: list[float] = field(default_factory=list)
    sim_global: list[float] = field(default_factory=list)
    n_unmatched: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def lack(self, reason: str) -> None:
        """Count a sample or fixation without a similarity."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def fcc_per_fixation(self, emotions: Sequence[str], weights: str, *, local: bool = True) -> Array:
        """Return the FCC of each pair; see `fcc`."""
        row = {e: weights_for(weights, e)[:2] if local else (0.0, 1.0) for e in set(emotions)}
        alpha_beta = np.array([row[emotions[i]] for i in self.sample], dtype=np.float64).reshape(-1, 2)
        sim_local, sim_global = (np.array(s, dtype=np.float64) for s in (self.sim_local, self.sim_global))
        if not local:
            sim_local = np.where(np.isnan(sim_local), np.nan, 0.0)
        return fcc_of_fixations(sim_local, sim_global, alpha_beta[:, 0], alpha_beta[:, 1])

    def fcc(self, n: int, emotions: Sequence[str], weights: str, *, local: bool = True) -> Array:
        """Return the FCC (n,) of the samples, `nan` where undefined.

        Parameters
        ----------
        n : int
            Number of samples.
        emotions : sequence of str
            The emotion of each sample, which selects its weights.
        weights : str
            Table of weights (`edge.fcc.WEIGHTS`).
        local : bool
            False leaves the global term alone (alpha = 0), for the ablation.
        """
        each = self.fcc_per_fixation(emotions, weights, local=local)
        by_sample = fcc_of_samples([str(i) for i in self.sample], each)
        fcc = np.full(n, np.nan)
        fcc[[int(name) for name in by_sample.samples]] = by_sample.fcc
        return fcc


@dataclass(frozen=True, slots=True)
class Rules:
    """How a system's places are compared: its name, how they are matched, and whether distances run on a sphere."""

    system: str
    match: str
    sphere: bool


@dataclass(frozen=True, slots=True)
class Environment:
    """What all people looked at, as unit vectors with the picture that each comes from, and both transforms."""

    local_transform: Transform
    global_transform: Transform
    local: Matrix
    local_media: npt.NDArray[np.int64]
    scenes: Matrix
    scene_media: npt.NDArray[np.int64]
    cache: EnvironmentCache | None = None

    def best(
        self, windows: Sequence[Matrix], scenes: Sequence[Matrix], media: Sequence[int]
    ) -> list[tuple[Array, float]]:
        """Return, of some samples, the best cosine of each window and of the scene, never against their own picture.

        Parameters
        ----------
        windows : sequence of float32 (n, d)
            Each sample's windows. All samples are compared in one product: one by one, most of the time goes into
            reading the environment.
        scenes : sequence of float32 (d,)
            Each sample's whole scene.
        media : sequence of int
            Code of each sample's picture.
        """
        if self.cache is not None:
            return [self._look_up(self.cache, w, scene) for w, scene in zip(windows, scenes, strict=True)]
        counts = [len(w) for w in windows]
        local = self.local_transform(np.concatenate(windows))
        best = _best(local @ self.local.T, self.local_media == np.repeat(media, counts)[:, np.newaxis])
        best[~local.any(axis=1)] = NAN
        whole = self.global_transform(np.stack(scenes)) @ self.scenes.T
        of_scenes = _best(whole, self.scene_media == np.asarray(media)[:, np.newaxis])
        return list(zip(np.split(best, np.cumsum(counts)[:-1]), of_scenes.tolist(), strict=True))

    @staticmethod
    def _look_up(cache: EnvironmentCache, windows: Matrix, scene: Matrix) -> tuple[Array, float]:
        found = [cache.lookup(v, scene) for v in windows]
        return np.array([m.sim_local for m in found]), found[0].sim_global if found else NAN


def build_environment(
    embedded: Iterable[Embedded], media: Sequence[int], n_fixations: int, manifest: Manifest, embedding: str
) -> Environment:
    """Fit the environment of a data set: its mean and projection, and what people looked at.

    Parameters
    ----------
    embedded : iterable of Embedded
        Every sample's vectors.
    media : sequence of int
        Code of each sample's picture.
    n_fixations : int
        How many recorded fixations there are in all; of more than `LARGEST_ENVIRONMENT` every n-th is kept.
    """
    step = -(-n_fixations // LARGEST_ENVIRONMENT) or 1
    local: list[Matrix] = []
    local_media: list[int] = []
    scenes: dict[int, Matrix] = {}
    seen = 0
    for one, picture in zip(embedded, media, strict=True):
        rows = one.local[HUMAN][(-seen) % step :: step]
        seen += len(one.local[HUMAN])
        rows = rows[np.isfinite(rows).all(axis=1)]
        local.append(rows)
        local_media += [picture] * len(rows)
        if len(scenes) < LARGEST_ENVIRONMENT:
            scenes.setdefault(picture, one.scene)
    windows = np.concatenate(local) if local else np.empty((0, 1), np.float32)
    views = np.stack(list(scenes.values())) if scenes else np.empty((0, 1), np.float32)
    transforms = (
        fit_transform(windows, embedding, manifest.mean_local, scale="local"),
        fit_transform(views, _global_embedding(embedding, len(views)), manifest.mean_global, scale="global"),
    )
    return Environment(
        *transforms,
        transforms[0](windows),
        np.array(local_media, dtype=np.int64),
        transforms[1](views),
        np.array(list(scenes), dtype=np.int64),
    )


def load_environment(folder: Path, manifest: Manifest, embedding: str) -> Environment:
    """Use a cache that `emogaze env build` wrote; it must not hold the scored pictures."""
    cache = EnvironmentCache.load(folder, manifest, embedding=embedding)
    nothing, none = np.empty((0, 1), np.float32), np.empty(0, np.int64)
    return Environment(*cache.transforms, nothing, none, nothing, none, cache)


def add_predicted(
    pairs: Pairs,
    sample: int,
    one: Embedded,
    points: Mapping[str, Points],
    environment: Environment,
    rules: Rules,
) -> None:
    """Compare what a system looks at with what people look at in one sample, and add it to `pairs`."""
    recorded, predicted = (np.flatnonzero(on_picture(points[name], one.size)) for name in (HUMAN, rules.system))
    human, said = one.pooled[HUMAN], one.pooled[rules.system]
    if human is None or said is None:
        pairs.lack("no recorded fixation on the picture" if not len(recorded) else "no predicted fixation")
        return
    distance = distances(points[rules.system][predicted], points[HUMAN][recorded], one.size, sphere=rules.sphere)
    rows, columns = match_points(distance, rules.match)
    pairs.n_unmatched += len(recorded) + len(predicted) - 2 * len(rows)
    v = environment.local_transform(one.local[rules.system][predicted[rows]])
    e = environment.local_transform(one.local[HUMAN][recorded[columns]])
    whole = environment.global_transform(np.stack([said, human]))
    _extend(pairs, sample, recorded[columns], _cosines(v, e), _cosines(whole[:1], whole[1:])[0])


def add_observed(
    pairs: Pairs, samples: Sequence[int], block: Sequence[Embedded], media: Sequence[int], environment: Environment
) -> None:
    """Compare what people look at in some samples with the best match in the environment, and add it to `pairs`."""
    recorded = [np.flatnonzero(np.isfinite(one.local[HUMAN]).all(axis=1)) for one in block]
    looked = [k for k, rows in enumerate(recorded) if len(rows)]
    for _ in range(len(block) - len(looked)):
        pairs.lack("no recorded fixation on the picture")
    if not looked:
        return
    windows = [block[k].local[HUMAN][recorded[k]] for k in looked]
    found = environment.best(windows, [block[k].scene for k in looked], [media[k] for k in looked])
    for k, (local, whole) in zip(looked, found, strict=True):
        _extend(pairs, samples[k], recorded[k], local, whole)


def distances(one: Points, other: Points, size: tuple[int, int], *, sphere: bool) -> Array:
    """Return the distances (n, m) between places of a picture: pixels, or degrees on a panorama."""
    if sphere:
        a, b = (panorama.to_angles(p[:, 0], p[:, 1], *size) for p in (one, other))
        return panorama.great_circle_deg(a, b)
    return np.asarray(np.hypot(one[:, None, 0] - other[None, :, 0], one[:, None, 1] - other[None, :, 1]))


def match_points(distance: Array, how: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Match rows and columns of a distance matrix one to one; min(n, m) pairs come back.

    `optimal` makes the sum of distances smallest (Hungarian method), `nearest` takes the closest pair first, and
    `order` the first with the first.
    """
    n = min(distance.shape)
    if how == "order":
        return np.arange(n), np.arange(n)
    if how == "optimal":
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(distance)
        return np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    left = distance.astype(np.float64).copy()
    pairs = []
    for _ in range(n):
        row, column = np.unravel_index(np.argmin(left), left.shape)
        pairs.append((int(row), int(column)))
        left[row, :] = left[:, column] = np.inf
    found = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _best(similarities: npt.NDArray, own: npt.NDArray[np.bool_]) -> Array:
    """Return the largest of each row, what is of the row's `own` picture left out; `nan` if none is left."""
    best = np.where(own, -np.inf, similarities).max(axis=1, initial=-np.inf).astype(np.float64)
    return np.where(np.isfinite(best), np.clip(best, -1, 1), NAN)


def _cosines(one: Matrix, other: Matrix) -> Array:
    """Return the cosines (n,) of rows of unit vectors; `nan` where a vector has no direction."""
    cosine = np.einsum("nd,nd->n", one.astype(np.float64), other.astype(np.float64))
    defined = one.any(axis=1) & other.any(axis=1)
    return np.where(defined, np.clip(cosine, -1, 1), np.nan)


def _extend(pairs: Pairs, sample: int, fixations: npt.NDArray[np.int64], local: Array, whole: float) -> None:
    pairs.sample += [sample] * len(local)
    pairs.fixation += fixations.tolist()
    pairs.sim_local += local.tolist()
    pairs.sim_global += [float(whole)] * len(local)
    undefined = int(np.isnan(local).sum()) if np.isfinite(whole) else len(local)
    for _ in range(undefined):
        pairs.lack("vector without a direction")


def _global_embedding(embedding: str, n_scenes: int) -> str:
    """A projection needs four scenes per axis; with fewer the global scale is centred alone."""
    dim = pca_dim(embedding)
    return embedding if not dim or n_scenes >= 4 * dim else "centred"
