"""Scores with their intervals: one system, a reading against its base, and systems in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from host_tools.metrics import classification as cl
from host_tools.metrics.statistics import bootstrap_p, bootstrap_sums, cluster_codes, cohens_dz, percentile_interval

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % percentile-bootstrap interval."""

    value: float
    ci95: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first, resampled in pairs. `dz` is Cohen's over participants, `nan` with fewer than two."""

    metric: str
    first: float
    second: float
    value: float
    ci95: tuple[float, float]
    p: float
    relative_percent: float
    dz: float


def mean_with_interval(
    values: npt.ArrayLike, participants: Sequence[str] | None, *, n_resamples: int = 1000, seed: int = 0
) -> Estimate:
    """Return the mean of per-sample `values` (n,), `nan` left out, with its interval resampled by participant."""
    given = np.asarray(values, dtype=np.float64)
    has = np.isfinite(given)
    if not has.any():
        return Estimate(NAN, (NAN, NAN))
    terms = np.stack([np.where(has, given, 0.0), has], axis=1)
    sums = bootstrap_sums(terms, participants, n_resamples=n_resamples, seed=seed)
    means = np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), NAN), where=sums[:, 1] > 0)
    return Estimate(float(given[has].mean()), percentile_interval(means))


def mean_difference(
    metric: str,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    participants: Sequence[str] | None,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Compare the means of two systems' per-sample values (n,), on the samples where both are defined."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.flatnonzero(np.isfinite(a) & np.isfinite(b))
    if not len(both):
        return Difference(metric, NAN, NAN, NAN, (NAN, NAN), NAN, NAN, NAN)
    people = None if participants is None else [participants[int(i)] for i in both]
    terms = np.stack([b[both] - a[both], np.ones(len(both))], axis=1)
    sums = bootstrap_sums(terms, people, n_resamples=n_resamples, seed=seed)
    shifts = sums[:, 0] / sums[:, 1]
    codes = cluster_codes(people, len(both))
    per_person = np.bincount(codes, weights=terms[:, 0]) / np.bincount(codes)
    dz = cohens_dz(per_person) if people is not None and codes.max() > 0 else NAN
    return _difference(metric, float(a[both].mean()), float(b[both].mean()), shifts, dz)


@dataclass(frozen=True)
class Resampled:
    """One system's samples with the sums of each bootstrap resample.

    Two systems' resamples pair up when the samples are the same in the same order: equal seeds draw equal clusters.
    """

    samples: cl.Samples
    n_resamples: int = 1000
    seed: int = 0

    @cached_property
    def _terms(self) -> cl.Array:
        return cl.terms(self.samples)

    @cached_property
    def sums(self) -> cl.Array:
        """The sums of each resample, (n_resamples, t)."""
        return bootstrap_sums(self._terms, self.samples.participants, n_resamples=self.n_resamples, seed=self.seed)

    @cached_property
    def point(self) -> dict[str, float]:
        """The score of each metric on the samples themselves."""
        return {name: float(v) for name, v in self._values(self._terms.sum(axis=0)).items()}

    @cached_property
    def resampled(self) -> dict[str, cl.Array]:
        """The score of each metric in each resample, (n_resamples,) each."""
        return self._values(self.sums)

    @cached_property
    def per_participant(self) -> dict[str, cl.Array]:
        """The score of each metric on each participant's samples; empty without two participants."""
        people = self.samples.participants
        if people is None or len(set(people)) < 2:
            return {}
        codes = cluster_codes(people, len(self.samples))
        sums = np.zeros((codes.max() + 1, self._terms.shape[1]))
        np.add.at(sums, codes, self._terms)
        return self._values(sums)

    def estimate(self, metric: str) -> Estimate:
        """Return a metric of `values` with its interval."""
        return Estimate(self.point[metric], percentile_interval(self.resampled[metric]))

    def f1_per_class(self) -> list[Estimate]:
        """Return the F1 of each class over all samples, with its interval."""
        k = len(self.samples.labels)
        shape = (k, k + 1)
        point = cl.f1_per_class(self._terms.sum(axis=0)[: k * (k + 1)].reshape(shape))
        resampled = cl.f1_per_class(self.sums[:, : k * (k + 1)].reshape(-1, *shape))
        return [Estimate(float(point[i]), percentile_interval(resampled[:, i])) for i in range(k)]

    def _values(self, sums: cl.Array) -> dict[str, cl.Array]:
        return cl.values(sums, len(self.samples.labels), bf1_given=self.samples.bf1 is not None)


def against_base(system: Resampled, reading: str) -> Difference:
    """Compare a reading with its own base: what weighting by context does to it."""
    return _compare(reading, system, f"{reading}_base", system, reading)


def compare(first: Resampled, second: Resampled, metrics: Sequence[str]) -> list[Difference]:
    """Compare two systems on the same samples, metric by metric, by paired resampling.

    Raises
    ------
    ValueError
        If the samples are not the same in the same order.
    """
    a, b = first.samples, second.samples
    if not np.array_equal(a.true, b.true) or list(a.participants or ()) != list(b.participants or ()):
        raise ValueError("systems are compared on the same samples in the same order")
    if (first.n_resamples, first.seed) != (second.n_resamples, second.seed):
        raise ValueError("systems are compared on the same resamples: n_resamples and seed must be equal")
    return [_compare(metric, first, metric, second, metric) for metric in metrics]


def _compare(name: str, first: Resampled, first_metric: str, second: Resampled, second_metric: str) -> Difference:
    resampled = second.resampled[second_metric] - first.resampled[first_metric]
    dz = NAN
    if first.per_participant:
        dz = cohens_dz(second.per_participant[second_metric] - first.per_participant[first_metric])
    return _difference(name, first.point[first_metric], second.point[second_metric], resampled, dz)


def _difference(metric: str, first: float, second: float, resampled: cl.Array, dz: float) -> Difference:
    """Return second minus first; `resampled` (n_resamples,) are the differences in the resamples."""
    value = second - first
    return Difference(
        metric=metric,
        first=first,
        second=second,
        value=value,
        ci95=percentile_interval(resampled),
        p=bootstrap_p(resampled) if np.isfinite(value) else NAN,
        relative_percent=100 * value / first if first else NAN,
        dz=dz,
    )
