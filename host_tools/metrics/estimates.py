"""Scores with their intervals: one system, a reading against its base, and systems in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from host_tools.metrics import classification as cl
from host_tools.metrics.statistics import bootstrap_p, bootstrap_sums, cluster_codes, cohens_dz, percentile_interval

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

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
    return _difference(reading, system, f"{reading}_base", system, reading)


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
    return [_difference(metric, first, metric, second, metric) for metric in metrics]


def _difference(name: str, first: Resampled, first_metric: str, second: Resampled, second_metric: str) -> Difference:
    one, other = first.point[first_metric], second.point[second_metric]
    resampled = second.resampled[second_metric] - first.resampled[first_metric]
    dz = NAN
    if first.per_participant:
        dz = cohens_dz(second.per_participant[second_metric] - first.per_participant[first_metric])
    return Difference(
        metric=name,
        first=one,
        second=other,
        value=other - one,
        ci95=percentile_interval(resampled),
        p=bootstrap_p(resampled) if np.isfinite(other - one) else NAN,
        relative_percent=100 * (other - one) / one if one else NAN,
        dz=dz,
    )
