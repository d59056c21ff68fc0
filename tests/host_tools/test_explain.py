"""Evidence for a score, with an embedder whose features can be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pixel_model import PixelModel

from edge.config import ScoreConfig
from edge.embedding import Transform
from edge.environment import EnvironmentCache, build_index
from edge.environment_build import Region, Regions, View, build, keep_covered
from edge.events import features_to_plain
from edge.features import Embedder
from edge.records import Features
from host_tools.explain import explain, occlusion_map, overlay


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(PixelModel(), ScoreConfig(window="40px"))


@pytest.fixture(scope="module")
def view() -> np.ndarray:
    coarse = np.random.default_rng(4).integers(0, 255, (8, 12, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((20, 20, 1), np.uint8))


@pytest.fixture(scope="module")
def cache(embedder: Embedder, view: np.ndarray) -> EnvironmentCache:
    """One view, whose stored picture is all white: proof that the covered picture is kept and not the view."""
    views = keep_covered([View("front", view)], lambda image: np.full_like(image, 255))
    left = Regions(units="norm", region=(Region(name="left", box=(0, 0, 0.5, 1)),))
    return build(embedder, views, ScoreConfig(window="40px"), regions=left, measured=False)


def payload(embedder: Embedder, window: np.ndarray, **changes: object) -> dict:
    local = embedder.local([window])[0]
    manifest = embedder.manifest
    features = Features(7, 99, local, local, manifest.model_id, "fp32")
    score = {
        **{"fcc_now": 0.8, "sim_local": 0.9, "sim_global": 0.3, "alpha": 0.5, "beta": 0.5, "window_px": 40},
        **{"weights": "merged", "weights_emotion": "surprise", "reason": "", "precision": "fp32"},
        "model_id": manifest.model_id,
    }
    return {
        "frame_id": 7,
        "gaze": [[0, 0, 1.0, 1.0, 1.0, True, None, None], [1, 5, None, None, 0.0, False, None, None]],
        "features": features_to_plain(features),
        "fixation": {"x_px": 60.0, "y_px": 40.0},
        "emotion": {"label": "surprise", "probabilities": {"surprise": 0.7, "happy": 0.3}, "reason": ""},
        "score": {**score, **changes},
    }


def test_the_nearest_windows_come_with_their_place_and_covered_picture(
    embedder: Embedder, cache: EnvironmentCache, view: np.ndarray
) -> None:
    # the tile at (40, 20) of side 40
    told = explain(payload(embedder, view[20:60, 40:80]), 99, cache, picture=view, embedder=embedder)
    best = told.neighbours[0]
    assert best.similarity == pytest.approx(1.0, abs=1e-5)
    assert (best.view, best.box, best.region) == ("front", (40, 20, 40, 40), "left")
    assert best.window is not None and best.window.shape == (40, 40, 3) and (best.window > 250).all()
    assert [n.similarity for n in told.neighbours] == sorted((n.similarity for n in told.neighbours), reverse=True)
    assert told.parts == pytest.approx((0.45, 0.15))
    assert told.emotion == {"surprise": 0.7, "happy": 0.3}
    assert told.window is not None and (told.window == view[20:60, 40:80]).all()
    assert told.similarity_again == pytest.approx(1.0, abs=1e-5)
    assert told.notes == ["1 of 2 gaze samples of this frame were invalid."]


def test_the_map_is_high_where_the_match_comes_from(embedder: Embedder, cache: EnvironmentCache) -> None:
    """Two corners differ from the mean, oppositely, so that the window's mean colour is the mean.

    Without one of them the vector loses one of its two equal parts, a cosine of 1 / sqrt(2) remains.
    """
    window = np.full((40, 40, 3), 100, np.uint8)
    window[:20, :20], window[20:, 20:] = (180, 20, 100), (20, 180, 100)
    centring = Transform(np.full(12, 100, np.float32))
    index = build_index(centring(embedder.local([window])))
    one = EnvironmentCache(cache.info, (centring, centring), (index, index), cache.entries[:1])
    loss, similarity = occlusion_map(embedder, one, window, 0)
    assert loss.shape == (8, 8) and similarity == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(loss[:3, 5:], 0.0, atol=1e-6)
    np.testing.assert_allclose(loss[5:, :3], 0.0, atol=1e-6)
    # a patch inside a corner covers a quarter of it: cos = (0.75 + 1) / sqrt(2 * (0.75 ** 2 + 1)) = 0.98995
    np.testing.assert_allclose(loss[1:3, 1:3], 1 - 1.75 / math.sqrt(2 * (0.75**2 + 1)), atol=1e-6)
    np.testing.assert_allclose(loss[5:7, 5:7], loss[1, 1], atol=1e-6)
    marked = overlay(window, loss)
    assert marked.shape == window.shape and marked.dtype == np.uint8


def test_an_even_window_has_a_flat_map(embedder: Embedder, cache: EnvironmentCache) -> None:
    loss, _ = occlusion_map(embedder, cache, np.full((40, 40, 3), 90, np.uint8), 0)
    np.testing.assert_allclose(loss, 0.0, atol=1e-6)
    assert (overlay(np.full((40, 40, 3), 90, np.uint8), np.zeros((8, 8))) > 0).any()


def test_without_picture_or_embedder_the_rest_is_told(
    embedder: Embedder, cache: EnvironmentCache, view: np.ndarray
) -> None:
    told = explain(payload(embedder, view[20:60, 40:80]), 99, cache)
    assert told.window is None and told.occlusion is None and math.isnan(told.similarity_again)
    assert len(told.neighbours) == 3


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        pytest.param(
            {"reason": "no_fixation", "fcc_now": None, "sim_local": None}, "There is no score", id="undefined"
        ),
        pytest.param({"weights": "fixed", "weights_emotion": ""}, "The weights are the fixed ones", id="fixed-weights"),
    ],
)
def test_what_limits_a_score_is_said(
    embedder: Embedder, cache: EnvironmentCache, view: np.ndarray, changes: dict, note: str
) -> None:
    told = explain(payload(embedder, view[20:60, 40:80], **changes), 99, cache)
    assert any(line.startswith(note) for line in told.notes)


def test_another_artefacts_cache_explains_nothing(cache: EnvironmentCache, view: np.ndarray) -> None:
    other = Embedder(PixelModel(name="other"), ScoreConfig(window="40px"))
    told = explain(payload(other, view[20:60, 40:80]), 99, cache, picture=view, embedder=other)
    assert told.neighbours == [] and told.occlusion is None
    assert told.notes[0].startswith("The cache belongs to pixels@")
