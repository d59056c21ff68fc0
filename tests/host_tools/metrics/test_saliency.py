from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from host_tools.metrics import saliency as sal
from host_tools.metrics.statistics import roc_auc


@pytest.fixture(scope="module")
def reference(data: Path) -> tuple[np.ndarray, list[dict[str, Any]], dict[str, Any]]:
    folder = data / "reference" / "saliency_vectors"
    content = json.loads((folder / "expected.json").read_text())
    return np.load(folder / "saliency_gauss.npy"), content["fixations"], content["expected"]


def scores(reference: Any, **options: Any) -> list[sal.SaliencyScores]:
    values, fixations, _ = reference
    one, other = fixations
    return [
        sal.score(values, f["x"], f["y"], others=(g["x"], g["y"]), **options) for f, g in ((one, other), (other, one))
    ]


def test_auc_judd_equals_the_reference(reference: Any) -> None:
    mean = np.mean([s.auc_judd for s in scores(reference)])
    assert mean == pytest.approx(reference[2]["AUC_Judd_no_jitter(thresholds=fixations, average image)"], abs=1e-9)


def test_nss_equals_the_reference(reference: Any) -> None:
    expected = reference[2]
    assert np.mean([s.nss for s in scores(reference)]) == pytest.approx(expected["NSS_mean_over_images"], abs=1e-9)
    for f, per_fixation in zip(reference[1], (expected["NSS_per_fix"][:5], expected["NSS_per_fix"][5:]), strict=True):
        assert sal.score(reference[0], f["x"], f["y"]).nss == pytest.approx(np.mean(per_fixation), abs=1e-9)


def test_distribution_scores_equal_the_reference(reference: Any) -> None:
    # The reference gives six and seven digits; its fixation maps count a pixel once and blur with 10 px.
    expected = reference[2]
    given = scores(reference, sigma_px=10, once=True)
    assert np.mean([s.cc for s in given]) == pytest.approx(expected["CC_vs_fixmap_kernel10_unique"], abs=5e-7)
    assert np.mean([s.sim for s in given]) == pytest.approx(expected["SIM_vs_fixmap_kernel10_unique"], abs=5e-7)
    assert sal.sim(reference[0], np.ones((40, 40))) == pytest.approx(expected["SIM_vs_constant"], abs=5e-6)
    assert sal.kl(reference[0], reference[0]) == pytest.approx(expected["image_KL_self"], abs=1e-9)


def test_shuffled_auc_equals_the_reference(reference: Any) -> None:
    per_fixation = reference[2]["AUC_shuffled_per_fix"]
    one, other = scores(reference)
    assert one.auc_shuffled == pytest.approx(np.mean(per_fixation[:5]), abs=1e-8)
    assert other.auc_shuffled == pytest.approx(np.mean(per_fixation[5:]), abs=1e-8)


def test_rank_auc_equals_the_reference(reference: Any) -> None:
    values, fixations, expected = reference
    for f, auc in zip(fixations, expected["AUC_uniform_per_image"], strict=True):
        assert roc_auc(values[f["y"], f["x"]], values.ravel()) == pytest.approx(auc, abs=1e-9)


def test_auc_judd_by_hand() -> None:
    # Fixated are 4 and 2; free are 3 and 1. Threshold 4: hits 1/2, false alarms 0; threshold 2: 1 and 1/2.
    # Area: from 0 to 1/2 the mean of 1/2 and 1, from 1/2 to 1 one: 3/8 + 1/2.
    assert sal.score([[4.0, 3.0], [2.0, 1.0]], [0, 0], [0, 1]).auc_judd == pytest.approx(7 / 8)


def test_constant_map() -> None:
    scores = sal.score(np.ones((6, 8)), [1, 2], [3, 4])
    assert (scores.auc_judd, scores.nss, scores.cc) == (0.5, 0.0, 0.0)


def test_jitter_breaks_ties_by_its_seed() -> None:
    values, x, y = np.zeros((20, 20)), [3, 7, 11], [2, 9, 15]
    one, same, other = (sal.score(values, x, y, jitter_seed=s).auc_judd for s in (1, 1, 2))
    assert one == same != other
    assert one != 0.5


@pytest.mark.parametrize(
    ("x", "y", "used"),
    [([7.999, 0], [5.999, 0], 2), ([8, -0.001, 3], [0, 0, 6], 0), ([math.nan, 1], [1, 1], 1)],
    ids=["last-and-first-pixel", "one-pixel-off", "no-number"],
)
def test_off_the_image_is_dropped_and_counted(x: list[float], y: list[float], used: int) -> None:
    scores = sal.score(np.arange(48.0).reshape(6, 8), x, y)
    assert (scores.n_fixations, scores.n_off_image) == (used, len(x) - used)
    assert math.isnan(scores.auc_judd) == (used == 0)


def test_repeated_fixations_count_each_or_once() -> None:
    values = np.array([[3.0, 2.0], [1.0, 0.0]])
    each = sal.score(values, [0, 0, 1], [0, 0, 1])
    once = sal.score(values, [0, 0, 1], [0, 0, 1], once=True)
    std = math.sqrt(1.25)
    assert each.nss == pytest.approx((1.5 + 1.5 - 1.5) / 3 / std)
    assert once.nss == pytest.approx(0)
    assert (each.n_fixations, once.n_fixations) == (3, 2)


def test_kl_by_hand() -> None:
    p, q = np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]])
    assert sal.kl(p, q) == pytest.approx(0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75))


def test_fixation_map_of_counts_is_read_and_a_density_is_refused() -> None:
    rows, columns = sal.from_fixation_map([[0, 2], [1, 0]])
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 1), (0, 1), (1, 0)]
    with pytest.raises(ValueError, match="this is a density"):
        sal.from_fixation_map([[0.1, 0.9]])


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.ones((2, 2, 3)), r"\(2, 2, 3\)"), ([[np.nan, 1.0]], "1 values"), (np.ones((0, 4)), r"\(0, 4\)")],
    ids=["colour", "nan", "empty"],
)
def test_bad_maps_are_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sal.score(values, [0], [0])


def test_peaks_inhibit_their_surroundings() -> None:
    values = np.zeros((10, 20))
    values[2, 3], values[2, 4], values[8, 15] = 9, 8, 5
    x, y = sal.peaks(values, 2, radius_px=2)
    assert list(zip(x, y, strict=True)) == [(3.5, 2.5), (15.5, 8.5)]


def test_peaks_stop_when_the_map_is_used_up() -> None:
    x, _ = sal.peaks(np.ones((3, 3)), 5, radius_px=10)
    assert len(x) == 1
