from __future__ import annotations

import math

import numpy as np
import pytest

from edge.embedding import Transform
from host_tools.evaluate import attention as at
from host_tools.evaluate.embed import HUMAN, Embedded, cell_density, pool

NO_MEAN = Transform(np.zeros(2, np.float32))
SIZE = (100, 80)


def environment(local: list[list[float]], media: list[int]) -> at.Environment:
    vectors, codes = np.array(local, np.float32), np.array(media)
    return at.Environment(NO_MEAN, NO_MEAN, vectors, codes, vectors, codes)


def sample(human: list[list[float]], system: list[list[float]] | None = None) -> Embedded:
    sets = {HUMAN: np.array(human, np.float32).reshape(-1, 2)}
    if system is not None:
        sets["net"] = np.array(system, np.float32).reshape(-1, 2)
    pooled = {name: v.mean(axis=0) if len(v) else None for name, v in sets.items()}
    return Embedded(SIZE, np.array([1.0, 0.0], np.float32), sets, pooled)


DISTANCE = np.array([[1.0, 2.0, 9.0], [0.5, 8.0, 9.0]])


@pytest.mark.parametrize(
    ("how", "pairs"),
    [("optimal", [(0, 1), (1, 0)]), ("nearest", [(0, 1), (1, 0)]), ("order", [(0, 0), (1, 1)])],
    ids=["optimal", "nearest", "order"],
)
def test_matching(how: str, pairs: list[tuple[int, int]]) -> None:
    rows, columns = at.match_points(DISTANCE, how)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == pairs


def test_nearest_is_greedy_where_optimal_is_not() -> None:
    distance = np.array([[1.0, 1.5], [2.0, 9.0]])
    assert at.match_points(distance, "nearest")[1].tolist() == [0, 1]  # 1 + 9
    assert at.match_points(distance, "optimal")[1].tolist() == [1, 0]  # 1.5 + 2


def test_predicted_fcc_by_hand() -> None:
    # Matched by place: the first with the second and the second with the first; cosines 1 and 0; pooled (1,1)/2 both.
    points = {HUMAN: np.array([[10.0, 10], [60, 60]]), "net": np.array([[61.0, 60], [11, 10]])}
    one = sample([[2, 0], [0, 2]], [[3, 0], [3, 0]])
    pairs = at.Pairs()
    at.add_predicted(pairs, 0, one, points, environment([[1, 0]], [0]), at.Rules("net", "optimal", sphere=False))
    assert sorted(zip(pairs.fixation, pairs.sim_local, strict=True)) == [(0, 1.0), (1, 0.0)]
    whole = 1 / math.sqrt(2)  # (1, 1) against (1, 0)
    assert pairs.sim_global == pytest.approx([whole, whole])
    fcc = pairs.fcc(2, ["happy", "sad"], "merged")
    assert fcc[0] == pytest.approx((0.5 * (0.4 * 1 + 0.6 * whole + 1) + 0.5 * (0.6 * whole + 1)) / 2)
    assert math.isnan(fcc[1])
    assert pairs.fcc(2, ["happy", "sad"], "merged", local=False)[0] == pytest.approx(0.5 * (whole + 1))


def test_unmatched_fixations_are_counted_and_those_off_the_picture_left_out() -> None:
    points = {HUMAN: np.array([[10.0, 10], [60, 60]]), "net": np.array([[10.0, 10], [200, 10]])}
    one = sample([[1, 0], [0, 1]], [[1, 0], [math.nan, math.nan]])
    pairs = at.Pairs()
    at.add_predicted(pairs, 0, one, points, environment([[1, 0]], [0]), at.Rules("net", "optimal", sphere=False))
    assert (pairs.fixation, pairs.n_unmatched) == ([0], 1)


def test_no_prediction_is_a_reason_not_a_zero() -> None:
    points = {HUMAN: np.array([[10.0, 10]]), "net": np.empty((0, 2))}
    pairs, rules = at.Pairs(), at.Rules("net", "order", sphere=False)
    at.add_predicted(pairs, 0, sample([[1, 0]], []), points, environment([[1, 0]], [0]), rules)
    assert (pairs.sample, pairs.reasons) == ([], {"no predicted fixation": 1})


def test_observed_never_finds_the_scored_picture() -> None:
    # Window (1, 0) of picture 0: its twin in picture 0 doesn't count, the best elsewhere is (0.6, 0.8).
    pairs = at.Pairs()
    around = environment([[1, 0], [0.6, 0.8], [0, 1]], [0, 1, 2])
    at.add_observed(pairs, [0], [sample([[5, 0]])], [0], around)
    assert pairs.sim_local == pytest.approx([0.6])
    assert pairs.sim_global == pytest.approx([0.6])


def test_observed_samples_keep_their_own_windows_in_a_block() -> None:
    around = environment([[1, 0], [0.6, 0.8], [0, 1]], [0, 1, 2])
    block = [sample([[0, 2], [3, 0]]), sample(np.empty((0, 2)).tolist()), sample([[5, 0], [np.nan, 0]])]
    pairs = at.Pairs()
    at.add_observed(pairs, [4, 5, 6], block, [2, 1, 0], around)
    # Picture 2 finds 0.8 and 1 elsewhere; picture 0 finds 0.6, and its second place lies off the picture.
    assert (pairs.sample, pairs.fixation) == ([4, 4, 6], [0, 1, 0])
    assert pairs.sim_local == pytest.approx([0.8, 1.0, 0.6])
    assert pairs.reasons == {"no recorded fixation on the picture": 1}


def test_nobody_looked_at_any_picture() -> None:
    nothing = np.empty((0, 1), np.float32)
    around = at.Environment(NO_MEAN, NO_MEAN, nothing, np.empty(0, int), nothing, np.empty(0, int))
    pairs = at.Pairs()
    at.add_observed(pairs, [0, 1], [sample([]), sample([[np.nan, 0]])], [0, 1], around)
    assert (pairs.sample, pairs.reasons) == ([], {"no recorded fixation on the picture": 2})


def test_alone_in_the_environment_is_undefined() -> None:
    pairs = at.Pairs()
    at.add_observed(pairs, [0], [sample([[5, 0]])], [0], environment([[1, 0]], [0]))
    assert math.isnan(pairs.fcc(1, ["sad"], "merged")[0])
    assert pairs.reasons == {"vector without a direction": 1}


def test_density_sums_to_one_and_follows_the_points() -> None:
    density = cell_density((4, 5), np.array([[10.0, 10.0]]), SIZE, 20, sphere=False)
    assert density.sum() == pytest.approx(1)
    assert np.unravel_index(density.argmax(), density.shape) == (0, 0)


def test_density_of_a_narrow_window_between_cells_does_not_vanish() -> None:
    density = cell_density((2, 2), np.array([[50.0, 40.0]]), SIZE, 1, sphere=False)
    assert density == pytest.approx(np.full((2, 2), 0.25))


def test_pooled_scene_is_the_weighted_mean_of_the_map() -> None:
    feature_map = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    wide = pool(feature_map, np.array([[50.0, 40.0]]), SIZE, 10_000, sphere=False)
    assert wide == pytest.approx([1.5, 5.5], abs=1e-4)
    narrow = pool(feature_map, np.array([[75.0, 60.0]]), SIZE, 2, sphere=False)
    assert narrow == pytest.approx([3, 7])
    assert pool(feature_map, np.array([[-1.0, 0.0]]), SIZE, 2, sphere=False) is None


def test_on_a_panorama_both_sides_of_the_seam_are_near() -> None:
    one, other = np.array([[1.0, 40]]), np.array([[99.0, 40]])
    assert at.distances(one, other, SIZE, sphere=False)[0, 0] == pytest.approx(98)
    assert at.distances(one, other, SIZE, sphere=True)[0, 0] == pytest.approx(7.2)
