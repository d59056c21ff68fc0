"""DBSCAN: by hand, and against connected components."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from host_tools.metrics.clusters import NOISE, cluster, cluster_directions, cluster_pixels, pairwise_angles


def test_by_hand() -> None:
    # Three within 30 px make a core at the middle one; its neighbours are border points; one lies apart.
    xy = [(0, 0), (30, 0), (60, 0), (200, 0), (91, 0)]
    assert cluster_pixels(xy).tolist() == [0, 0, 0, NOISE, NOISE]


def test_the_point_itself_counts() -> None:
    assert cluster_pixels([(0, 0), (30, 0)], min_samples=2).tolist() == [0, 0]
    assert cluster_pixels([(0, 0), (30, 0)]).tolist() == [NOISE, NOISE]
    assert cluster_pixels([(0, 0)], min_samples=1).tolist() == [0]
    assert cluster_pixels(np.empty((0, 2))).tolist() == []


@pytest.mark.parametrize(
    "directions",
    [[(179, 0), (-180, 0), (-179, 0)], [(0, 89.5), (120, 89.5), (-120, 89.5)]],
    ids=["seam", "pole"],
)
def test_seam_and_pole_are_no_borders(directions: list[tuple[float, float]]) -> None:
    assert cluster_directions(directions, eps_deg=1.01).tolist() == [0, 0, 0]
    assert cluster_pixels(directions, eps_px=1.0).tolist() == [NOISE] * 3


def test_core_points_are_the_connected_components_of_core_points() -> None:
    rng = np.random.default_rng(1)
    directions = np.column_stack([rng.uniform(-180, 180, 400), rng.uniform(-90, 90, 400)])
    labels = cluster_directions(directions, eps_deg=8.0, min_samples=4)
    near = pairwise_angles(directions) <= 8.0
    core = near.sum(axis=1) >= 4
    n, components = connected_components(near[np.ix_(core, core)], directed=False)
    assert n > 3
    assert labels.max() + 1 == n
    assert len(set(zip(labels[core].tolist(), components.tolist(), strict=True))) == n
    border = ~core & (labels != NOISE)
    assert all(np.any(near[i] & core & (labels == labels[i])) for i in np.flatnonzero(border))
    assert not np.any(near[np.ix_(labels == NOISE, core)])


@pytest.mark.parametrize(
    ("distances", "eps", "n"),
    [(np.zeros((2, 3)), 1, 3), (np.full((2, 2), np.nan), 1, 3), (np.zeros((2, 2)), 0, 3)],
    ids=["not square", "nan", "no radius"],
)
def test_wrong_input(distances: np.ndarray, eps: float, n: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        cluster(distances, eps, n)
