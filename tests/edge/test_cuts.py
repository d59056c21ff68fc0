"""Another scene is told from noise, movement and slow light."""

from __future__ import annotations

import numpy as np
import pytest

from edge.cuts import SceneCut

SCENE = np.random.default_rng(0).integers(60, 190, (90, 160, 3)).repeat(4, axis=0).repeat(4, axis=1).astype(np.uint8)


def noisy(image: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(1).normal(0, 8, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def with_face(image: np.ndarray, share: float) -> np.ndarray:
    """Lay something bright over a share of the picture's width."""
    shown = image.copy()
    shown[:, : round(share * image.shape[1])] = 250
    return shown


@pytest.mark.parametrize(
    ("after", "cut"),
    [
        pytest.param(SCENE, False, id="the-same"),
        pytest.param(noisy(SCENE), False, id="noise"),
        pytest.param(np.roll(SCENE, 4, axis=1), False, id="movement"),
        pytest.param(SCENE + 15, False, id="a-little-light"),
        pytest.param(SCENE // 2, True, id="much-less-light"),
        pytest.param(with_face(SCENE, 0.2), False, id="a-fifth-is-new"),
        pytest.param(with_face(SCENE, 0.3), True, id="a-third-is-new"),
        pytest.param(SCENE[:-40], True, id="another-size"),
    ],
)
def test_cuts(after: np.ndarray, cut: bool) -> None:
    seen = SceneCut()
    assert seen(SCENE)
    assert not seen(SCENE)
    assert seen(np.asarray(after, np.uint8)) is cut


def test_small_pictures_are_compared_whole() -> None:
    seen = SceneCut()
    assert seen(np.zeros((6, 8, 3), np.uint8))
    assert seen(np.full((6, 8, 3), 90, np.uint8))
