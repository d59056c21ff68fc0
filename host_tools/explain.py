"""What one score rests on: the cached windows most like the one looked at, its parts, and an occlusion map.

An occlusion map covers one patch of the window after the other and notes how much of the similarity to the cached
window is lost (Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks", 2014). Positive: the patch
spoke for the match; negative: against it. It is made from the picture that is at hand, which is the redacted one: a
covered face is seen covered, and the similarity may differ from the recorded one, which is given beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import cv2
import numpy as np
import numpy.typing as npt

from edge.environment import EnvironmentCache
from edge.events import features_from_plain
from edge.features import Embedder, crop_window
from edge.records import Image

Floats = npt.NDArray[np.float64]

_CELLS = 8  #: steps of the occluding patch, across and down
_PATCH = 2  #: side of the patch in steps


@dataclass(frozen=True)
class Neighbour:
    """A cached window: how like it is, where it lies (pixels of its view), its region, and its picture where kept."""

    entry: int
    similarity: float
    view: str
    box: tuple[int, int, int, int]
    region: str
    window: Image | None
    picture: Image | None


@dataclass(frozen=True)
class Explanation:
    """What a score rests on. `parts` are alpha * sim_local and beta * sim_global; FCC is half their sum plus a half.

    `occlusion` is float64 (8, 8), the loss of similarity per place, or None without picture or embedder;
    `similarity_again` is the similarity of the picture at hand to the nearest window, nan without.
    """

    frame_id: int
    t_ns: int
    fcc: float
    parts: tuple[float, float]
    weights: dict[str, Any]
    window: Image | None
    neighbours: list[Neighbour]
    occlusion: Floats | None
    similarity_again: float
    emotion: dict[str, float]
    precision: str
    notes: list[str] = field(default_factory=list)


def explain(
    payload: dict[str, Any],
    t_ns: int,
    cache: EnvironmentCache,
    *,
    picture: Image | None = None,
    embedder: Embedder | None = None,
    k: int = 3,
) -> Explanation:
    """Explain the score of one `score` event.

    Parameters
    ----------
    payload : dict
        The event's payload, as `emogaze run` logs it; a session may lack what its consent left out.
    t_ns : int
        The event's time.
    cache : EnvironmentCache
        The one that the score was made with (its artefact's).
    picture : uint8 (h, w, 3) BGR, optional
        The redacted picture of that frame.
    embedder : Embedder, optional
        The artefact that made the features, for the occlusion map.
    k : int
        Neighbours to return.
    """
    score, emotion = payload["score"], payload.get("emotion") or {}
    features = features_from_plain(payload["frame_id"], t_ns, payload.get("features"))
    known = features is not None and features.model_id == cache.info.embedder_id
    neighbours = _neighbours(cache, features.local, k) if features is not None and known else []
    window = _window(picture, payload)
    occlusion, again = None, float("nan")
    if window is not None and embedder is not None and neighbours:
        occlusion, again = occlusion_map(embedder, cache, window, neighbours[0].entry)
    return Explanation(
        frame_id=payload["frame_id"],
        t_ns=t_ns,
        fcc=_number(score["fcc_now"]),
        parts=(score["alpha"] * _number(score["sim_local"]), score["beta"] * _number(score["sim_global"])),
        weights={key: score[key] for key in ("alpha", "beta", "weights", "weights_emotion")},
        window=window,
        neighbours=neighbours,
        occlusion=occlusion,
        similarity_again=again,
        emotion=dict(emotion.get("probabilities", {})),
        precision=f"{score['model_id']} ({score['precision']})" if score["model_id"] else "",
        notes=_notes(payload, cache, known),
    )


def occlusion_map(embedder: Embedder, cache: EnvironmentCache, window: Image, entry: int) -> tuple[Floats, float]:
    """Return how much of a window's similarity to a cached one each place carries, and that similarity.

    Parameters
    ----------
    window : uint8 (s, s, 3) BGR
    entry : int
        Row of the cached window.

    Returns
    -------
    float64 (8, 8), float
        Loss of cosine, averaged over the patches (a quarter of the side, in the window's mean colour) that cover the
        place; and the cosine of the window as it is.
    """
    side = window.shape[0]
    edges = np.rint(np.linspace(0, side, _CELLS + 1)).astype(int)
    places = [(row, column) for row in range(1 - _PATCH, _CELLS) for column in range(1 - _PATCH, _CELLS)]
    pictures, colour = [window], window.reshape(-1, 3).mean(axis=0)
    for row, column in places:
        (top, bottom), (left, right) = (_span(start, edges) for start in (row, column))
        occluded = window.copy()
        occluded[top:bottom, left:right] = colour
        pictures.append(occluded)
    unit = cache.transforms[0](embedder.local(pictures)).astype(np.float64)
    similarity = unit @ cache.vector(entry).astype(np.float64)
    loss, count = np.zeros((_CELLS, _CELLS)), np.zeros((_CELLS, _CELLS))
    for (row, column), value in zip(places, similarity[0] - similarity[1:], strict=True):
        cells = slice(max(row, 0), row + _PATCH), slice(max(column, 0), column + _PATCH)
        loss[cells] += value
        count[cells] += 1
    return loss / count, float(similarity[0])


def overlay(window: Image, occlusion: Floats) -> Image:
    """Return the window with its occlusion map laid over it: warm speaks for the match, cold against it."""
    strongest = np.abs(occlusion).max()
    scaled = occlusion / strongest if strongest > 0 else occlusion
    smooth = cv2.resize(scaled, (window.shape[1], window.shape[0]), interpolation=cv2.INTER_CUBIC)
    shades = np.clip(127.5 * (smooth + 1), 0, 255).astype(np.uint8)
    return cv2.addWeighted(window, 0.55, cv2.applyColorMap(shades, cv2.COLORMAP_TURBO), 0.45, 0).astype(np.uint8)


def _span(start: int, edges: npt.NDArray[np.int64]) -> tuple[int, int]:
    return int(edges[max(start, 0)]), int(edges[min(start + _PATCH, _CELLS)])


def _neighbours(cache: EnvironmentCache, local: npt.NDArray[np.float32], k: int) -> list[Neighbour]:
    found = []
    for entry, similarity in cache.nearest(local, k):
        row = cache.entries[entry]
        view, x, y, side = (int(row[key]) for key in ("view", "x", "y", "side"))
        jpeg = cache.picture(view)
        picture = cast(Image, cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)) if jpeg else None
        window = None if picture is None else picture[y : y + side, x : x + side]
        name, region = cache.info.views[view], cache.region_of(entry)
        found.append(Neighbour(entry, similarity, name, (x, y, side, side), region, window, picture))
    return found


def _window(picture: Image | None, payload: dict[str, Any]) -> Image | None:
    fixation = payload.get("fixation")
    if picture is None or not fixation or fixation["x_px"] is None:
        return None
    return crop_window(picture, fixation["x_px"], fixation["y_px"], payload["score"]["window_px"])


def _notes(payload: dict[str, Any], cache: EnvironmentCache, known: bool) -> list[str]:
    """Return what limits this score, in plain words."""
    score, emotion, gaze = payload["score"], payload.get("emotion"), payload.get("gaze", [])
    notes = [f"There is no score: {score['reason']}."] if score["reason"] else []
    absent = [key for key in ("gaze", "fixation", "features") if key not in payload]
    if absent:
        notes.append(f"The recording's consent left out: {', '.join(absent)}.")
    if payload.get("features") is not None and not known:
        notes.append(f"The cache belongs to {cache.info.embedder_id}, the features to {score['model_id']}.")
    if score["weights"] == "fixed":
        why = emotion["reason"] if emotion and emotion["reason"] else "no emotion of the wearer is known"
        notes.append(f"The weights are the fixed ones: {why}.")
    invalid = sum(not row[5] for row in gaze)
    if invalid:
        notes.append(f"{invalid} of {len(gaze)} gaze samples of this frame were invalid.")
    auc = cache.info.separation.get("auc")
    if auc is not None and auc < 0.9:
        notes.append(f"This environment tells its parts apart poorly (AUC {auc:.2f}).")
    return notes


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
