"""The noise, by OpenDP: each function is one mechanism with the budget that it costs.

All values are bounded first, because only a bounded value has a sensitivity. Neighbouring data differ in one record,
added or removed; a record is the unit of privacy (one fixation, one session or one person), so whoever calls makes
one record of each unit. Noise comes from the system's random source and can't be seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import ConfigError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The closed interval that a feature is clamped to, and its unit."""

    lower: float
    upper: float
    unit: str

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise ValueError(f"bounds: expected lower < upper, got {self.lower} and {self.upper}")

    @property
    def middle(self) -> float:
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> float:
        return (self.upper - self.lower) / 2


def private_count(n: int, epsilon: float, *, changes: int = 1) -> float:
    """Return a count with discrete Laplace noise of scale changes / epsilon; may be negative. Costs epsilon."""
    return float(_count(epsilon, changes)([0.0] * n))


def private_mean(values: Sequence[float], bounds: Bounds, epsilon: float, *, changes: int = 1) -> float:
    """Return the mean of bounded values from a noisy sum and a noisy count, half of epsilon each.

    The sum runs over distances from the middle of the bounds, which halves its sensitivity; the quotient is clamped to
    the bounds, which costs nothing. `changes` is how many values one unit adds or removes at most.
    """
    centred = [min(max(value, bounds.lower), bounds.upper) - bounds.middle for value in values]
    total = float(_sum(bounds.half, epsilon / 2, changes)(centred))
    count = max(private_count(len(centred), epsilon / 2, changes=changes), 1.0)
    return min(max(bounds.middle + total / count, bounds.lower), bounds.upper)


def private_histogram(vectors: npt.ArrayLike, epsilon: float, delta: float) -> Array:
    """Return the sum of vectors with Gaussian noise.

    Parameters
    ----------
    vectors : array_like (n, cells)
        One row per unit, each of Euclidean length at most 1 (longer ones are scaled down to it).
    epsilon, delta : float
        What it costs.
    """
    rows = np.asarray(vectors, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    total = (rows / np.maximum(length, 1.0)).sum(axis=0)
    return np.asarray(_gaussian(total.size, 1.0, epsilon, delta)(total.tolist()))


def private_series(values: npt.ArrayLike, bounds: Bounds, keep: int, chunk: int, budget: tuple[float, float]) -> Array:
    """Return a time series with noise on its low frequencies only: Fourier perturbation in chunks.

    Successive values of eye movements are correlated, so noise of the size that hides one value doesn't hide a person:
    the average over correlated values removes it. Here the whole series is the unit (each value may change at once,
    however they are correlated). The series is cut into chunks, each is transformed (orthonormal DCT-II), and only the
    first `keep` coefficients are kept and get noise. Method: Fourier perturbation (Rastogi and Nath, SIGMOD 2010), in
    chunks for eye movement features (Bozkir, Günlü, Fuhl, Schaefer and Kasneci, PLOS ONE 2021). With an orthonormal
    transform the coefficients' Euclidean sensitivity is at most the series', sqrt(n) * (upper - lower), and the noise
    is Gaussian.

    Parameters
    ----------
    values : array_like (n,)
        One value per time step; its length is public.
    bounds : Bounds
        What the values are clamped to.
    keep, chunk : int
        Coefficients kept of each chunk of so many values.
    budget : (float, float)
        epsilon and delta.
    """
    series = np.clip(np.asarray(values, np.float64), bounds.lower, bounds.upper) - bounds.middle
    n = series.size
    if n == 0 or not 1 <= keep <= chunk:
        raise ValueError(f"series of {n}: expected at least one value and 1 <= keep <= chunk, got {keep} and {chunk}")
    padded = np.zeros(-(-n // chunk) * chunk)
    padded[:n] = series
    basis = _dct_basis(chunk)[:keep]
    coefficients = padded.reshape(-1, chunk) @ basis.T
    noisy = _gaussian(coefficients.size, float(np.sqrt(n) * 2 * bounds.half), *budget)(coefficients.ravel().tolist())
    back = np.asarray(noisy).reshape(coefficients.shape) @ basis
    return np.clip(back.ravel()[:n] + bounds.middle, bounds.lower, bounds.upper)


def _dct_basis(n: int) -> Array:
    """Return the orthonormal DCT-II as rows, lowest frequency first."""
    k, t = np.mgrid[:n, :n]
    basis = np.cos(np.pi * (t + 0.5) * k / n) * np.sqrt(2 / n)
    basis[0] /= np.sqrt(2)
    return np.asarray(basis)


@lru_cache(maxsize=256)
def _count(epsilon: float, changes: int) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return dp.binary_search_chain(
        lambda s: space >> dp.t.then_count() >> dp.m.then_laplace(s), d_in=changes, d_out=epsilon
    )


@lru_cache(maxsize=256)
def _sum(half: float, epsilon: float, changes: int) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    bounded = space >> dp.t.then_clamp((-half, half)) >> dp.t.then_sum()
    return dp.binary_search_chain(lambda s: bounded >> dp.m.then_laplace(s), d_in=changes, d_out=epsilon)


@lru_cache(maxsize=256)
def _gaussian(size: int, sensitivity: float, epsilon: float, delta: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.l2_distance(T=float)

    def make(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(scale)), delta)

    return dp.binary_search_chain(make, d_in=sensitivity, d_out=(epsilon, delta))


@lru_cache(maxsize=1)
def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ConfigError("differential privacy", "needs OpenDP", fix="pip install 'emogaze-edge[privacy]'") from None
    dp.enable_features("contrib")
    return dp
