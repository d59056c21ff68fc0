from __future__ import annotations

import numpy as np
import pytest

from host_tools.metrics import patterns as pt

NAN = float("nan")


def test_percentile_is_the_share_below_and_half_of_the_equal() -> None:
    found = pt.percentiles_in([1, 2, 2, 4, NAN], [0, 1, 2, 3, 9, NAN])
    assert found[:5].tolist() == [0.0, 0.125, 0.5, 0.75, 1.0]
    assert np.isnan(found[5])
    # Of the weight 1 + 3, a value between the two lies above 1.
    assert pt.percentiles_in([1, 5], [2], [1, 3]).tolist() == [0.25]
    assert np.isnan(pt.percentiles_in([], [1])).all()


def test_brightness_by_hand() -> None:
    luminance, saturation = np.array([[0, 10], [20, 30]]), np.array([[7, 7], [7, 7]])
    at = np.array([1, 0]), np.array([1, 0])  # luminance 30 and 0: percentiles 7/8 and 1/8; saturation: 1/2 both
    assert pt.brightness(luminance, saturation, at, np.ones((2, 2))) == 0.5
    assert pt.brightness(luminance, saturation, (at[0][:1], at[1][:1]), np.ones((2, 2))) == (7 / 8 + 1 / 2) / 2
    nowhere = np.empty(0, np.int64)
    assert np.isnan(pt.brightness(luminance, saturation, (nowhere, nowhere), np.ones((2, 2))))


def test_both_high_needs_both() -> None:
    found = pt.both_high([100, 200, 300], [-9, -5, NAN])
    assert found[:2].tolist() == pytest.approx([(1 / 6 + 1 / 4) / 2, (1 / 2 + 3 / 4) / 2])
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["threat", "exit", "threat"], 1.0),
        (["threat", "threat", "", "exit"], 0.5),
        (["exit", "exit"], 0.0),
        (["exit", ""], NAN),
    ],
    ids=["to-and-fro", "once-of-two", "stays", "one-look"],
)
def test_alternation(kinds: list[str], expected: float) -> None:
    assert pt.alternation(kinds) == pytest.approx(expected, nan_ok=True)


def test_dwell_and_avoidance() -> None:
    assert pt.dwell([100, 300], [False, True]) == 0.75
    assert np.isnan(pt.dwell([], []))
    assert pt.avoidance(0.25, 0.75) == 0.25
    assert (pt.avoidance(0.2, 0.2), pt.avoidance(0.2, 0.0)) == (0.5, 1.0)
    assert np.isnan(pt.avoidance(0.0, 0.5))
    assert np.isnan(pt.avoidance(0.2, NAN))
