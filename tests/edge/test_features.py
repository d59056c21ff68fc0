"""Windows, the still scene, and the embedder's batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pixel_model import PixelModel

from edge.backends.base import open_model
from edge.config import ModelsConfig, ScoreConfig
from edge.errors import ConfigError, ModelError
from edge.features import Embedder, StillScene, crop_window, window_px
from edge.records import Frame


@pytest.mark.parametrize(
    ("size", "window", "expected"),
    [
        pytest.param((1280, 720), "auto", 180, id="720p"),
        pytest.param((1920, 999), "auto", 250, id="just-below-the-step"),
        pytest.param((1920, 1000), "auto", 200, id="at-the-step"),
        pytest.param((1920, 1001), "auto", 200, id="just-above-the-step"),
        pytest.param((720, 1280), "auto", 180, id="portrait-counts-its-short-side"),
        pytest.param((1000, 400), "25%", 100, id="share"),
        pytest.param((2000, 1000), "25%", 250, id="share-has-no-step"),
        pytest.param((1280, 720), "100px", 100, id="pixels"),
        pytest.param((176, 80), "100px", 80, id="pixels-held-to-the-picture"),
        pytest.param((3, 3), "auto", 1, id="tiny"),
        pytest.param((2, 2), "auto", 1, id="tiniest"),
    ],
)
def test_window_px(size: tuple[int, int], window: str, expected: int) -> None:
    assert window_px(*size, window) == expected


@pytest.mark.parametrize("window", ["25", "big", "19%", "31%", "0px", "-5px", "100 px"])
def test_window_that_cannot_be_had(window: str) -> None:
    with pytest.raises(ConfigError, match=r"score\.window"):
        window_px(1280, 720, window)


@pytest.mark.parametrize(
    ("point", "corner"),
    [
        pytest.param((50, 40), (40, 30), id="middle"),
        pytest.param((0, 0), (0, 0), id="shifted-from-the-corner"),
        pytest.param((99.9, 79.9), (80, 60), id="shifted-from-the-far-corner"),
        pytest.param((50, 3), (40, 0), id="shifted-from-an-edge"),
    ],
)
def test_crop_is_shifted_inside_and_is_a_view(point: tuple[float, float], corner: tuple[int, int]) -> None:
    image = np.zeros((80, 100, 3), np.uint8)
    image[..., 0], image[..., 1] = np.arange(100)[None, :], np.arange(80)[:, None]
    window = crop_window(image, *point, 20)
    assert window is not None and window.shape == (20, 20, 3) and window.base is image
    assert tuple(window[0, 0, :2]) == corner


@pytest.mark.parametrize(
    "point", [(-0.1, 5), (100, 5), (5, 80), (5, -1), (float("nan"), 5), (5, float("nan"))], ids=str
)
def test_a_point_off_the_picture_has_no_window(point: tuple[float, float]) -> None:
    assert crop_window(np.zeros((80, 100, 3), np.uint8), *point, 20) is None


def test_a_window_larger_than_the_picture_is_an_error() -> None:
    with pytest.raises(ValueError, match="100x80"):
        crop_window(np.zeros((80, 100, 3), np.uint8), 5, 5, 81)


def noisy(level: int, seed: int, deviation: float = 2.0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(level, deviation, (720, 1280, 3))
    return np.clip(noise, 0, 255).astype(np.uint8)


def test_still_scene() -> None:
    still = StillScene(2.0)
    assert not still.check(noisy(100, 1)), "the first picture has none before it"
    assert still.check(noisy(100, 2)), "sensor noise is no movement"
    changed = noisy(100, 3)
    changed[300:380, 600:680] += 40
    assert not still.check(changed), "a change of one part of a hundred of the picture"
    assert still.check(changed)
    assert not still.check(changed[::2, ::2]), "another size is another scene"


def test_slow_change_adds_up() -> None:
    still = StillScene(2.0)
    answers = [still.check(np.full((90, 160, 3), 100 + i, np.uint8)) for i in range(7)]
    assert answers == [False, True, True, False, True, True, False]


def test_tolerance_zero_never_reuses() -> None:
    still, image = StillScene(0.0), noisy(100, 1)
    assert [still.check(image), still.check(image)] == [False, False]


def frame(i: int, image: np.ndarray) -> Frame:
    return Frame(i, i * 40_000_000, image, "test")


def test_window_and_scene_in_one_batch_and_a_still_scene_alone() -> None:
    model = PixelModel()
    embedder = Embedder(model, ScoreConfig(window="20px"))
    image = np.full((80, 120, 3), (10, 20, 30), np.uint8)
    image[:20, :20] = (40, 50, 60)
    first = embedder.embed(frame(0, image.copy()), 5, 5)
    second = embedder.embed(frame(1, image.copy()), 100, 60)
    third = embedder.embed(frame(2, np.full((80, 120, 3), 200, np.uint8)), 100, 60)
    assert first is not None and second is not None and third is not None
    assert model.batches == [2, 1, 2]
    np.testing.assert_array_equal(first.local, np.repeat([60, 50, 40], 4).astype(np.float32))
    np.testing.assert_array_equal(second.local, np.repeat([30, 20, 10], 4).astype(np.float32))
    np.testing.assert_array_equal(second.global_, first.global_)
    np.testing.assert_array_equal(third.global_, np.full(12, 200, np.float32))
    assert (embedder.n_scenes, embedder.n_still) == (3, 1)
    assert (first.frame_id, second.t_ns, first.model_id, first.precision) == (
        0,
        40_000_000,
        model.manifest.model_id,
        "fp32",
    )
    assert first.local.dtype == first.global_.dtype == np.float32


def test_off_the_picture_runs_nothing() -> None:
    model = PixelModel()
    assert Embedder(model, ScoreConfig()).embed(frame(0, np.zeros((80, 120, 3), np.uint8)), 120, 5) is None
    assert model.batches == []


def test_a_model_of_batch_one_runs_twice() -> None:
    one, any_ = PixelModel(batch=1), PixelModel()
    image = np.random.default_rng(0).integers(0, 255, (80, 120, 3), dtype=np.uint8)
    got, expected = (Embedder(m, ScoreConfig()).embed(frame(0, image), 30, 30) for m in (one, any_))
    assert got is not None and expected is not None and one.batches == [1, 1]
    np.testing.assert_array_equal(got.local, expected.local)
    np.testing.assert_array_equal(got.global_, expected.global_)


def test_local_and_global_may_differ_in_size() -> None:
    embedder = Embedder(PixelModel(outputs=("local", "global")), ScoreConfig())
    features = embedder.embed(frame(0, np.zeros((80, 120, 3), np.uint8)), 30, 30)
    assert features is not None and (features.local.shape, features.global_.shape) == ((12,), (3,))
    assert embedder.dims == (12, 3)
    assert embedder.local([]).shape == (0, 12)


def test_many_pictures_go_in_batches_of_eight() -> None:
    model = PixelModel()
    images = [np.full((10, 10, 3), i, np.uint8) for i in range(19)]
    np.testing.assert_array_equal(Embedder(model, ScoreConfig()).scenes(images)[:, 0], np.arange(19))
    assert model.batches == [8, 8, 3]


def test_a_model_that_is_no_embedder_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no embedder.*scores"):
        Embedder(PixelModel(outputs=("scores",)), ScoreConfig())


def test_the_default_embedder(artefacts: Path) -> None:
    model = open_model("mobilenet_v2-fp32", ModelsConfig(dir=str(artefacts)))
    embedder = Embedder(model, ScoreConfig())
    image = np.random.default_rng(0).integers(0, 255, (240, 320, 3), dtype=np.uint8)
    features = embedder.embed(frame(0, image), 160, 120)
    assert features is not None and features.local.shape == features.global_.shape == (1280,)
    np.testing.assert_allclose(features.global_, embedder.scenes([image])[0], rtol=1e-3, atol=1e-4)
    assert (features.local >= 0).all(), "pooled after a ReLU"
