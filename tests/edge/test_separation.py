"""AUC by hand, and what the pairs promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edge.separation import draw_probes, mismatched_pairs, roc_auc


@pytest.mark.parametrize(
    ("positive", "negative", "expected"),
    [
        pytest.param([3, 4], [1, 2], 1.0, id="apart"),
        pytest.param([1, 2], [3, 4], 0.0, id="swapped"),
        pytest.param([1, 1], [1, 1, 1], 0.5, id="all-tied"),
        # pairs: 2>1, 2=2 (half), 5>1, 5>2
        pytest.param([2, 5], [1, 2], 3.5 / 4, id="one-tie"),
    ],
)
def test_roc_auc(positive: list[float], negative: list[float], expected: float) -> None:
    assert roc_auc(positive, negative) == expected


def test_roc_auc_of_nothing_is_undefined() -> None:
    assert math.isnan(roc_auc([], [1.0])) and math.isnan(roc_auc([1.0], []))


def coordinates(height: int, width: int) -> np.ndarray:
    """A picture whose pixels say where they are (steps of one up to 255)."""
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0], image[..., 1] = np.arange(width)[None, :], np.arange(height)[:, None]
    return image


def test_probes_are_shifted_by_15_percent_and_dimmed() -> None:
    probes = draw_probes([coordinates(160, 240)], "auto", n=50)
    assert probes.side.tolist() == [40] * 50
    for base, shifted in zip(probes.base, probes.shifted, strict=True):
        assert base.shape == shifted.shape == (40, 40, 3)
        # dimming and rounding move the reading of a coordinate by at most 0.7 pixels; a window lies on whole ones
        step = shifted[0, 0, :2] / 0.8 - base[0, 0, :2]
        assert math.hypot(*step) == pytest.approx(6.0, abs=2.0)


def test_mismatched_pairs_are_two_windows_apart_in_one_view() -> None:
    probes = draw_probes([coordinates(160, 240), coordinates(120, 200)], "auto", n=60)
    pairs = mismatched_pairs(probes)
    assert len(pairs) > 40
    for i, j in pairs:
        assert probes.view[i] == probes.view[j]
        assert np.linalg.norm(probes.centre[i] - probes.centre[j]) >= 2 * probes.side[i]


def test_a_view_too_small_for_two_windows_has_no_mismatched_pair() -> None:
    assert mismatched_pairs(draw_probes([coordinates(100, 100)], "100px", n=10)) == []


def test_probes_are_seeded() -> None:
    one, same, other = (draw_probes([coordinates(160, 240)], "auto", n=20, seed=s).centre for s in (1, 1, 2))
    assert (one == same).all() and (one != other).any()
