"""F1 and its context-weighted readings: every one a function of sums over samples.

The published formula is ``cawF1 = sum_i FCC_i bF1_i / sum_i FCC_i``. F1 belongs to a set, not to a sample, so bF1_i
needs a reading; all of them are computed, each beside its own value at FCC = 1 (its base):

=================  ============================================================  =======================
name               bF1_i                                                         base
=================  ============================================================  =======================
cawf1_literal      the sample's own given `bf1`; without one, as classwise       mean bf1 (weighted F1)
cawf1_classwise    F1 of the sample's true class over the set                    weighted F1
cawf1_macro        macro-F1 of the confusion in which sample i weighs FCC_i      macro-F1
cawf1_hard         1 if right, else 0                                            accuracy
cawf1_soft         probability given to the true class                           mean probability
=================  ============================================================  =======================

Samples without an FCC are left out of all ten, bases included, and counted; where no sample has one the readings are
undefined and the bases are those of all samples. Accuracy, F1, precision and recall are over all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from host_tools.labels import LabelSet

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

READINGS = ("cawf1_literal", "cawf1_classwise", "cawf1_macro", "cawf1_hard", "cawf1_soft")
HEADLINE = "cawf1_macro"
SET_METRICS = ("accuracy", "f1_macro", "f1_weighted", "precision_macro", "recall_macro")
_SCALARS = 9  # sums beside the confusions; `values` names them


@dataclass(frozen=True, slots=True)
class Samples:
    """One system's answers to n labelled samples.

    `true` holds codes 0..K-1, `pred` 0..K (K: outside the set). `fcc` is in [0, 1] or `nan`. `p_true` is the
    probability given to the true class (`nan` where none was given), `bf1` a given per-sample F1; both may be None.
    """

    labels: LabelSet
    true: Codes
    pred: Codes
    fcc: Array
    participants: Sequence[str] | None = None
    p_true: Array | None = None
    bf1: Array | None = None

    def __post_init__(self) -> None:
        given = [self.true, self.pred, self.fcc, self.p_true, self.bf1]
        if len({len(a) for a in given if a is not None}) != 1:
            raise ValueError("true, pred, fcc, p_true and bf1 must have one value per sample")
        if len(self.true) and not (self.true.min() >= 0 and self.true.max() < len(self.labels)):
            raise ValueError("true: codes outside the label set")

    def __len__(self) -> int:
        return len(self.true)

    def take(self, where: npt.NDArray) -> Samples:
        """Return the samples at `where` (indices or a mask)."""
        index = np.arange(len(self))[where]
        return replace(
            self,
            true=self.true[index],
            pred=self.pred[index],
            fcc=self.fcc[index],
            participants=None if self.participants is None else [self.participants[i] for i in index],
            p_true=None if self.p_true is None else self.p_true[index],
            bf1=None if self.bf1 is None else self.bf1[index],
        )

    def weighted_by(self, weights: npt.ArrayLike) -> Samples:
        """Return the samples with other weights in FCC's place (FCC to a power, joint attention of modalities)."""
        return replace(self, fcc=np.asarray(weights, dtype=np.float64))


def terms(samples: Samples) -> Array:
    """Return what each sample adds to each sum: (n, t), for `values` and for the bootstrap.

    Three confusions (all samples; those with an FCC; those weighted by it) and the sums of the other readings.
    """
    n, k = len(samples), len(samples.labels)
    fcc = samples.fcc
    has_fcc = np.isfinite(fcc)
    scope = has_fcc if has_fcc.any() else np.ones(n, dtype=bool)
    weight = np.where(has_fcc, fcc, 0.0)
    cells = k * (k + 1)
    out = np.zeros((n, 3 * cells + _SCALARS))
    rows, cell = np.arange(n), samples.true * (k + 1) + samples.pred
    out[rows, cell] = 1.0
    out[rows, cells + cell] = scope
    out[rows, 2 * cells + cell] = weight
    p = np.full(n, np.nan) if samples.p_true is None else samples.p_true
    bf1 = np.zeros(n) if samples.bf1 is None else samples.bf1
    has_p, p = np.isfinite(p), np.nan_to_num(p)
    scalars = [has_fcc, scope, weight, has_p * weight, p * weight, has_p & scope, p * scope, bf1 * weight, bf1 * scope]
    out[:, 3 * cells :] = np.stack(scalars, axis=1)
    return out


def values(sums: Array, n_labels: int, *, bf1_given: bool = False) -> dict[str, Array]:
    """Return every score from the sums of `terms`, over any leading axes (resamples, participants).

    Keys: `READINGS`, each reading's ``<name>_base``, `SET_METRICS`, ``mean_fcc`` and ``mean_fcc_bf1`` (with the literal
    bF1). Undefined is `nan`.
    """
    cells = n_labels * (n_labels + 1)
    shape = (*sums.shape[:-1], n_labels, n_labels + 1)
    everyone, scope, weighted = (_Confusion(sums[..., i * cells : (i + 1) * cells].reshape(shape)) for i in range(3))
    n_fcc, n, weight, weight_p, sum_wp, n_p, sum_p, sum_wb, sum_b = np.moveaxis(sums[..., 3 * cells :], -1, 0)
    f1 = scope.f1
    out = {
        **_set_metrics(everyone),
        "cawf1_classwise": weighted.mean_over_true(f1),
        "cawf1_classwise_base": scope.mean_over_true(f1),
        "cawf1_macro": _nanmean(weighted.f1),
        "cawf1_macro_base": _nanmean(f1),
        "cawf1_hard": _ratio(weighted.n_right, weight),
        "cawf1_hard_base": _ratio(scope.n_right, n),
        "cawf1_soft": _ratio(sum_wp, weight_p),
        "cawf1_soft_base": _ratio(sum_p, n_p),
        "mean_fcc": _ratio(weight, n_fcc),
    }
    if not bf1_given:  # the literal bF1 is then the class's F1
        sum_wb, sum_b = weighted.sum_over_true(f1), scope.sum_over_true(f1)
    out["cawf1_literal"] = _ratio(sum_wb, weight)
    out["cawf1_literal_base"] = _ratio(sum_b, n)
    out["mean_fcc_bf1"] = _ratio(sum_wb, n_fcc)
    return out


def score(samples: Samples) -> dict[str, float]:
    """Return every score of one system (see `values`)."""
    sums = terms(samples).sum(axis=0)
    scores = values(sums, len(samples.labels), bf1_given=samples.bf1 is not None)
    return {name: float(value) for name, value in scores.items()}


def confusion(samples: Samples, weights: npt.ArrayLike | None = None) -> Array:
    """Return the confusion (K, K + 1): row = true label, column = prediction, the last column outside the set."""
    k = len(samples.labels)
    w = np.ones(len(samples)) if weights is None else np.nan_to_num(np.asarray(weights, dtype=np.float64))
    counts = np.bincount(samples.true * (k + 1) + samples.pred, weights=w, minlength=k * (k + 1))
    return np.asarray(counts, dtype=np.float64).reshape(k, k + 1)


def f1_per_class(matrix: Array) -> Array:
    """Return F1 (..., K) of confusions (..., K, K + 1); `nan` for a class that is neither true nor predicted."""
    return _Confusion(matrix).f1


def precision_per_class(matrix: Array) -> Array:
    """Return precision (..., K); `nan` for a class that is never predicted."""
    return _Confusion(matrix).precision


def recall_per_class(matrix: Array) -> Array:
    """Return recall (..., K); `nan` for a class that is never true."""
    return _Confusion(matrix).recall


def joint_attention(attention: npt.ArrayLike, weights: Sequence[float]) -> Array:
    """Return A_i = sum_m w_m att_m,i of `attention` (n, m), over the modalities that sample i has.

    `weights` are convex; they are renormalised over what is there. A sample without any modality is `nan`. With gaze
    alone and w = 1, maF1 (these weights in FCC's place) is cawF1.
    """
    given = np.asarray(attention, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (given.shape[1],) or (w < 0).any() or w.sum() <= 0:
        raise ValueError(f"weights: expected {given.shape[1]} of at least 0, not all 0; got {list(weights)}")
    has = np.isfinite(given)
    return _ratio(np.where(has, given, 0.0) @ w, has @ w)


def _set_metrics(confusion: _Confusion) -> dict[str, Array]:
    return {
        "accuracy": _ratio(confusion.n_right, confusion.total),
        "f1_macro": _nanmean(confusion.f1),
        "f1_weighted": confusion.mean_over_true(confusion.f1),
        "precision_macro": _nanmean(confusion.precision),
        "recall_macro": _nanmean(confusion.recall),
    }


class _Confusion:
    """Confusions (..., K, K + 1) with their sums, each taken once: over resamples these are most of the work."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    @cached_property
    def right(self) -> Array:
        return np.diagonal(self.matrix, axis1=-2, axis2=-1)

    @cached_property
    def true(self) -> Array:
        return np.asarray(self.matrix.sum(axis=-1))

    @cached_property
    def predicted(self) -> Array:
        return np.asarray(self.matrix.sum(axis=-2)[..., :-1])

    @cached_property
    def n_right(self) -> Array:
        return np.asarray(self.right.sum(axis=-1))

    @cached_property
    def total(self) -> Array:
        return np.asarray(self.matrix.sum(axis=(-2, -1)))

    @cached_property
    def f1(self) -> Array:
        return _ratio(2 * self.right, self.true + self.predicted)

    @property
    def precision(self) -> Array:
        return _ratio(self.right, self.predicted)

    @property
    def recall(self) -> Array:
        return _ratio(self.right, self.true)

    def sum_over_true(self, per_class: Array) -> Array:
        """Sum of a per-class value over the samples, each with that of its true class."""
        return np.asarray((self.true * np.where(self.true > 0, per_class, 0.0)).sum(axis=-1))

    def mean_over_true(self, per_class: Array) -> Array:
        return _ratio(self.sum_over_true(per_class), self.total)


def _ratio(top: Array, bottom: Array) -> Array:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=np.asarray(bottom) > 0)


def _nanmean(per_class: Array) -> Array:
    defined = np.isfinite(per_class)
    return _ratio(np.where(defined, per_class, 0.0).sum(axis=-1), defined.sum(axis=-1))
