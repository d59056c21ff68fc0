"""The space of embeddings, by hand: shrunk means, whitening, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from edge.embedding import fit_transform, pca_dim
from edge.errors import CacheError


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_mean_is_shrunk_towards_the_model() -> None:
    features = np.array([[10, 0], [20, 0]], np.float32)
    transform = fit_transform(features, "centred", f32(1, 34), scale="local")
    # (32 * (1, 34) + (30, 0)) / 34
    np.testing.assert_allclose(transform.mean, [62 / 34, 32], rtol=1e-6)
    one = fit_transform(features[:1], "centred", f32(1, 34), scale="global")
    assert np.linalg.norm(one(features[:1])) == pytest.approx(1.0), "a single scene isn't centred onto zero"


def test_raw_keeps_the_features() -> None:
    transform = fit_transform(np.array([[3, 4]], np.float32), "raw", None, scale="local")
    np.testing.assert_allclose(transform(np.array([[6, 8]], np.float32)), [[0.6, 0.8]], rtol=1e-6)


def test_pca_whitens() -> None:
    rng = np.random.default_rng(2)
    features = (rng.normal(size=(4000, 6)) * [9, 5, 3, 1, 0.1, 0.1] + 7).astype(np.float32)
    transform = fit_transform(features, "pca:3", features.mean(axis=0), scale="local")
    assert transform.projection is not None and transform.projection.shape == (6, 3)
    projected = (features - transform.mean) @ transform.projection
    np.testing.assert_allclose(np.cov(projected.T, bias=True), np.eye(3), atol=1e-3)


@pytest.mark.parametrize(
    ("n", "embedding", "message"),
    [
        pytest.param(11, "pca:3", "at least 12; got 11", id="too-few"),
        pytest.param(100, "pca:7", "too few local vectors for 7 axes", id="more-axes-than-features"),
    ],
)
def test_pca_needs_four_vectors_an_axis(n: int, embedding: str, message: str) -> None:
    with pytest.raises(CacheError, match=message):
        fit_transform(np.ones((n, 6), np.float32), embedding, np.zeros(6, np.float32), scale="local")


@pytest.mark.parametrize("mean", [None, np.zeros(5, np.float32)], ids=["none", "other-size"])
def test_centring_needs_the_models_mean(mean: np.ndarray | None) -> None:
    with pytest.raises(CacheError, match="mean_global"):
        fit_transform(np.ones((3, 6), np.float32), "centred", mean, scale="global")


@pytest.mark.parametrize("embedding", ["", "pca", "pca:0", "pca:x", "centered"])
def test_unknown_embedding(embedding: str) -> None:
    with pytest.raises(CacheError, match=r"score\.embedding"):
        pca_dim(embedding)
