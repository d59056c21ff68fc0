from __future__ import annotations

import math

import numpy as np
import pytest

from host_tools.metrics import statistics as st


def test_sums_of_resamples_are_those_of_drawn_indices() -> None:
    # With one term per cluster that names it, each resample's sums tell how often each cluster was drawn.
    terms = np.eye(3)[[0, 0, 1, 2]]
    sums = st.bootstrap_sums(terms, ["a", "a", "b", "c"], n_resamples=500, seed=3)
    drawn = sums / [2, 1, 1]
    assert np.array_equal(drawn, drawn.astype(int))
    assert (drawn.sum(axis=1) == 3).all()
    assert drawn.mean(axis=0) == pytest.approx([1, 1, 1], abs=0.1)


def test_bootstrap_of_a_mean_has_the_known_spread() -> None:
    values = np.arange(100.0)
    sums = st.bootstrap_sums(np.stack([values, np.ones(100)], axis=1), n_resamples=4000, seed=0)
    means = sums[:, 0] / sums[:, 1]
    assert means.mean() == pytest.approx(49.5, abs=0.2)
    assert means.std() == pytest.approx(values.std() / 10, rel=0.05)  # sigma / sqrt(n)


def test_a_cluster_is_drawn_whole() -> None:
    # Two participants, all of one right and all of the other wrong: accuracy of a resample is 0, 1/2 or 1.
    sums = st.bootstrap_sums(np.repeat([[1.0], [0.0]], 50, axis=0), ["p"] * 50 + ["q"] * 50, n_resamples=400, seed=1)
    assert set(sums[:, 0]) == {0, 50, 100}


def test_batches_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = np.random.default_rng(0).random((40, 2))
    whole = st.bootstrap_sums(terms, n_resamples=50, seed=5)
    monkeypatch.setattr(st, "_CELLS_AT_ONCE", 200)
    np.testing.assert_allclose(st.bootstrap_sums(terms, n_resamples=50, seed=5), whole, rtol=1e-12)


def test_indices_keep_clusters_whole() -> None:
    for drawn in st.bootstrap_indices(5, ["a", "b", "a", "b", "b"], n_resamples=20, seed=0):
        counts = np.bincount(drawn, minlength=5)
        assert counts[0] == counts[2]
        assert counts[1] == counts[3] == counts[4]


def test_percentile_interval_leaves_out_a_few_undefined() -> None:
    values = np.append(np.arange(101.0), np.nan)
    assert st.percentile_interval(values, 0.9) == pytest.approx((5, 95))


def test_mostly_undefined_is_undefined() -> None:
    assert all(math.isnan(v) for v in st.percentile_interval([1.0, np.nan, np.nan]))


@pytest.mark.parametrize(
    ("differences", "p"),
    [([1.0] * 9, 0.2), ([1.0] * 18 + [-1.0], 0.2), ([0.0] * 9, 1.0), ([-1.0] * 99, 0.02)],
    ids=["all-above", "one-below", "all-zero", "all-below"],
)
def test_bootstrap_p(differences: list[float], p: float) -> None:
    # 2 * (count on the smaller side + 1) / (resamples + 1)
    assert st.bootstrap_p(differences) == pytest.approx(p)


def test_corrections_by_hand() -> None:
    p = [0.01, 0.04, 0.03, np.nan]
    np.testing.assert_allclose(st.holm(p), [0.03, 0.06, 0.06, np.nan])
    np.testing.assert_allclose(st.benjamini_hochberg(p), [0.03, 0.04, 0.04, np.nan])
    np.testing.assert_allclose(st.bonferroni(p), [0.03, 0.12, 0.09, np.nan])


def test_effect_sizes_by_hand() -> None:
    assert st.cohens_dz([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert math.isnan(st.cohens_dz([1.0, 1.0]))
    assert st.cohens_h(1.0, 0.0) == pytest.approx(math.pi)
    assert st.cliffs_delta([1, 2, 3], [2]) == 0.0
    assert st.cliffs_delta([3, 4], [1, 3]) == pytest.approx(3 / 4)
    assert st.roc_auc([3, 4], [1, 3]) == pytest.approx(7 / 8)


def test_resampled_auc_is_the_auc_of_each_resample() -> None:
    value, positive = [1.0, 2.0, 2.0, 3.0], [False, True, False, True]
    aucs = st.resampled_auc(value, positive, ["a", "a", "b", "b"], n_resamples=200)
    assert set(aucs.tolist()) == {1.0, 0.875}  # a twice: 2 > 1; b twice: 3 > 2; both: 2 > 1, 2 = 2, 3 > 1, 3 > 2
    assert np.isnan(st.resampled_auc(value, [True] * 4, n_resamples=3)).all()
    assert np.isnan(st.resampled_auc([], [], n_resamples=3)).all()
