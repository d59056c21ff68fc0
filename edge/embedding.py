"""The space in which embeddings are compared: centred, perhaps projected and whitened, and normalised.

Centring matters: pooled features after a ReLU are non-negative, so that raw cosines sit in a narrow band near 1. The
mean of n cached vectors is shrunk towards the mean m_model over a varied picture set, (k * m_model + n * m_env) /
(k + n) with k = 32: in a small environment the plain mean would centre a single scene onto zero, and two onto opposite
vectors.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.config import EMBEDDING
from edge.errors import CacheError
from edge.records import Vector

Matrix = npt.NDArray[np.float32]

SHRINKAGE_K = 32  #: weight of the model's mean against n cached vectors
_ZERO = 1e-6  #: a centred vector shorter than this has no direction
_FLAT_AXIS = 1e-12  #: share of the largest variance below which an axis is noise
_PCA_SAMPLES = 4  #: vectors needed per dimension of the projection


def pca_dim(embedding: str) -> int:
    """Return N of ``pca:N``, 0 for ``centred`` and ``raw``.

    Raises
    ------
    CacheError
        `embedding` is none of these.
    """
    match = re.fullmatch(EMBEDDING, embedding)
    if not match:
        raise CacheError("score.embedding", "can't be read", expected="raw, centred or pca:N", got=embedding)
    return int(match[1] or 0)


@dataclass(frozen=True, slots=True)
class Transform:
    """From raw features to unit vectors: subtract `mean` (d,), multiply by `projection` (d, n) if any, normalise."""

    mean: Vector
    projection: Matrix | None = None

    def __call__(self, features: Matrix) -> Matrix:
        """Return unit vectors float32 (n, d'); a vector without a direction stays zero."""
        centred = features - self.mean
        projected = centred if self.projection is None else centred @ self.projection
        norm = np.linalg.norm(projected, axis=1, keepdims=True)
        unit = np.zeros_like(projected)
        np.divide(projected, norm, out=unit, where=norm > _ZERO)
        return np.ascontiguousarray(unit)

    def one(self, features: Vector) -> tuple[Vector | None, float]:
        """Return one unit vector and the length it had: not finite if the features aren't, and then, or at 0, None."""
        centred = features - self.mean
        projected = centred if self.projection is None else centred @ self.projection
        norm = math.sqrt(np.dot(projected, projected))
        return (projected / np.float32(norm) if _ZERO < norm < math.inf else None), norm

    @property
    def dim(self) -> int:
        """Size of the features that it takes."""
        return len(self.mean)


def fit_transform(features: Matrix, embedding: str, model_mean: Vector | None, *, scale: str) -> Transform:
    """Fit the transform of one scale.

    Parameters
    ----------
    features : float32 (n, d)
        The environment's raw embeddings.
    embedding : str
        ``raw``, ``centred`` or ``pca:N`` (centred, projected on N principal axes and whitened).
    model_mean : float32 (d,) or None
        The artefact's mean over a varied picture set.
    scale : str
        `local` or `global`, for errors.

    Raises
    ------
    CacheError
        The artefact brings no mean of this size, or n < 4 N.
    """
    n, d = features.shape
    if embedding == "raw":
        return Transform(np.zeros(d, dtype=np.float32))
    if model_mean is None or model_mean.shape != (d,):
        got = "none" if model_mean is None else str(model_mean.shape)
        raise CacheError(
            f"embedding {embedding}", f"the artefact's mean_{scale} doesn't fit", expected=f"({d},)", got=got
        )
    total = features.sum(axis=0, dtype=np.float64)
    mean = (SHRINKAGE_K * model_mean.astype(np.float64) + total) / (SHRINKAGE_K + n)
    dim = pca_dim(embedding)
    if not dim:
        return Transform(mean.astype(np.float32))
    if n < _PCA_SAMPLES * dim or dim > d:
        raise CacheError(
            f"embedding {embedding}",
            f"too few {scale} vectors for {dim} axes",
            expected=f"at least {_PCA_SAMPLES * dim}",
            got=str(n),
            fix="give more reference views or a smaller N",
        )
    return Transform(mean.astype(np.float32), _whitening(features - mean, dim))


def _whitening(centred: npt.NDArray[np.float64], dim: int) -> Matrix:
    """Return (d, dim): principal axes over the standard deviation along them; each one's largest part is positive."""
    variance, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    variance, axes = variance[::-1][:dim], axes[:, ::-1][:, :dim]
    sign = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dim)])
    deviation = np.sqrt(np.maximum(variance, _FLAT_AXIS * variance[0]))
    return np.ascontiguousarray(axes * sign / deviation, dtype=np.float32)
