"""DBSCAN on fixations (Ester et al., 1996), on a picture or on the sphere.

On an equirectangular scene pixels break at the seam and at the poles, so distances there are great-circle angles.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
NOISE = -1


def cluster_pixels(xy_px: npt.ArrayLike, eps_px: float = 30.0, min_samples: int = 3) -> Labels:
    """Cluster places (n, 2) in pixels; see `cluster` for the labels."""
    xy = _pairs(xy_px)
    return cluster(np.linalg.norm(xy[:, None] - xy[None], axis=2), eps_px, min_samples)


def cluster_directions(directions_deg: npt.ArrayLike, eps_deg: float, min_samples: int = 3) -> Labels:
    """Cluster directions (n, 2), azimuth and elevation in degrees, by great-circle angle; see `cluster`."""
    return cluster(pairwise_angles(_pairs(directions_deg)), eps_deg, min_samples)


def pairwise_angles(directions_deg: Floats) -> Floats:
    """Return the great-circle angles (n, n) in degrees between directions (n, 2), by the haversine formula."""
    az, el = np.radians(directions_deg).T
    h = np.sin((el[:, None] - el) / 2) ** 2 + np.cos(el[:, None]) * np.cos(el) * np.sin((az[:, None] - az) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(np.minimum(h, 1.0))))


def cluster(distances: Floats, eps: float, min_samples: int) -> Labels:
    """Return the cluster of each point: 0, 1, ... in order of first point, -1 for noise.

    Parameters
    ----------
    distances : ndarray (n, n)
        Symmetric.
    eps : float
        Points at most so far apart are neighbours; a point is its own neighbour.
    min_samples : int
        A point with so many neighbours, itself included, is a core point.

    Raises
    ------
    ValueError
        `distances` isn't square or holds nan, or a parameter isn't positive.
    """
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or np.isnan(distances).any():
        raise ValueError(f"distances must be square and without nan, got shape {distances.shape}")
    if eps <= 0 or min_samples < 1:
        raise ValueError(f"eps {eps} and min_samples {min_samples} must be positive")
    near = distances <= eps
    core = near.sum(axis=1) >= min_samples
    labels = np.full(len(distances), NOISE, dtype=np.int64)
    n_clusters = 0
    for seed in np.flatnonzero(core):
        if labels[seed] != NOISE:
            continue
        labels[seed] = n_clusters
        waiting = deque([seed])
        while waiting:
            reached = np.flatnonzero(near[waiting.popleft()] & (labels == NOISE))
            labels[reached] = n_clusters
            waiting.extend(reached[core[reached]])
        n_clusters += 1
    return labels


def _pairs(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64).reshape(-1, 2)
    if np.isnan(array).any():
        raise ValueError("places must not be nan")
    return array
