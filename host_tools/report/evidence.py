"""The part of a run's page that shows what single scores rest on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge.backends.base import open_model
from edge.config import Config, from_dict
from edge.environment import EnvironmentCache
from edge.errors import EmoGazeError
from edge.features import Embedder
from edge.records import Event, Image
from host_tools.explain import Explanation, explain, overlay
from host_tools.report.page import Section, cell

Finder = Callable[[list[int]], dict[int, Image]]
N_SCORES = 4  #: shown: the lowest score, the highest, and those at even ranks between
_TILE_PX = 240


def add_evidence(
    section: Section, scores: list[Event], header: dict[str, Any], pictures_of: Finder, *, shown: int = N_SCORES
) -> None:
    """Append what each score of a run rests on as a table, and a few of them with pictures.

    Parameters
    ----------
    section : Section
    scores : list of Event
        The run's `score` events, in order.
    header : dict
        The payload of its `session` event.
    pictures_of : callable
        Gives the redacted pictures of the scores at some places of the list; the windows are cut from them.
    shown : int
        So many scores have pictures; 0 = all.
    """
    chosen = choose(scores, shown or len(scores))
    if not chosen or not header["environment"]:
        section.text("No score is defined in this run." if not chosen else "This run had no environment.")
        return
    caches, embedders = _opened(section, header)
    section.text(
        "The window that was looked at beside the most similar one of the environment. The map covers one patch after "
        "the other: where it is warm the patch spoke for the match. Windows come from redacted pictures, so a covered "
        "face is seen covered; the recorded similarity and that of the redacted picture both stand in the table. "
        "No decision about a person should rest on a score alone."
    )
    pictures = pictures_of(chosen)
    for index in chosen:
        event = scores[index]
        model = event.payload["score"]["model_id"]
        if model in caches:
            picture, embedder = pictures.get(index), embedders.get(model)
            told = explain(event.payload, event.t_ns, caches[model], picture=picture, embedder=embedder)
            _show(section, told, event.payload["score"])
    section.heading("Each score")
    section.table(_COLUMNS, [_row(event, caches.get(event.payload["score"]["model_id"])) for event in scores])


_COLUMNS = (
    *("s", "FCC", "local part", "global part", "weights", "region", "most like", "emotion"),
    *("gaze valid", "picture's age ms", "computed by", "undefined because"),
)


def _row(event: Event, cache: EnvironmentCache | None) -> list[object]:
    """Return one score in a line: its parts, and how good the data were that it was made from."""
    payload, score = event.payload, event.payload["score"]
    emotion, gaze = payload.get("emotion") or {}, payload.get("gaze") or []
    pairs = (("alpha", "sim_local"), ("beta", "sim_global"))
    parts = [None if score[part] is None else score[weight] * score[part] for weight, part in pairs]
    nearest = explain(payload, event.t_ns, cache, k=1).neighbours if cache else []
    likely = emotion.get("probabilities", {}).get(emotion.get("label", ""))
    return [
        event.t_ns / 1e9,
        score["fcc_now"],
        *parts,
        f"{score['weights']} {score['weights_emotion']}".strip(),
        score.get("region", ""),
        nearest[0].view if nearest else "",
        f"{emotion['label']} {likely:.2f}" if likely is not None else emotion.get("reason", ""),
        f"{sum(bool(row[5]) for row in gaze)} of {len(gaze)}" if gaze else "",
        score["frame_age_ns"] / 1e6 if score.get("frame_age_ns") is not None else None,
        f"{score['model_id'].partition('@')[0]} {score['precision']}" if score["model_id"] else "",
        score["reason"],
    ]


def _opened(section: Section, header: dict[str, Any]) -> tuple[dict[str, EnvironmentCache], dict[str, Embedder]]:
    """Open the caches and artefacts that a run names, as far as they are here; say what isn't."""
    config = from_dict(header["config"], thing="the log's settings")
    caches: dict[str, EnvironmentCache] = {}
    embedders: dict[str, Embedder] = {}
    try:
        for name in header["environment"]:
            cache = EnvironmentCache.open(Path(config.environment.cache) / name)
            caches[cache.info.embedder_id] = cache
            embedders[cache.info.embedder_id] = _embedder(config, name)
    except EmoGazeError as error:
        section.note(f"What the scores were made with is no longer here: {error}")
    return caches, embedders


def choose(scores: list[Event], n: int = N_SCORES) -> list[int]:
    """Return the places of `n` defined scores in order of time: the lowest, the highest and even ranks between."""
    defined = [i for i, event in enumerate(scores) if not event.payload["score"]["reason"]]
    ranked = sorted(defined, key=lambda i: scores[i].payload["score"]["fcc_now"])
    places = {round(p) for p in np.linspace(0, len(ranked) - 1, n)} if ranked else set()
    return sorted(ranked[p] for p in places)


def _embedder(config: Config, name: str) -> Embedder:
    return Embedder(open_model(name, config.models), config.score)


def video_pictures(video: Path, wanted: list[int]) -> dict[int, Image]:
    """Return the pictures at the given places of a video."""
    if not video.is_file():
        return {}
    capture, found = cv2.VideoCapture(str(video)), {}
    for index in range(max(wanted) + 1):
        good, image = capture.read()
        if not good:
            break
        if index in wanted:
            found[index] = np.asarray(image, np.uint8)
    capture.release()
    return found


def _show(section: Section, told: Explanation, score: dict[str, Any]) -> None:
    section.heading(f"{told.t_ns / 1e9:.2f} s: FCC {cell(told.fcc)}")
    tiles = [(told.window, "looked at")] if told.window is not None else []
    if told.window is not None and told.occlusion is not None:
        tiles.append((overlay(told.window, told.occlusion), f"loss of similarity, up to {told.occlusion.max():.2f}"))
    best = told.neighbours[0] if told.neighbours else None
    if best is not None and best.window is not None and best.picture is not None:
        tiles += [(best.window, f"most similar, in {best.view}"), (_framed(best.picture, best.box), best.view)]
    section.pictures([(_enlarged(image), caption) for image, caption in tiles], width=_TILE_PX)
    rows: list[list[object]] = [
        ["similarity of the window (recorded)", score["sim_local"], f"weight {score['alpha']:g}"],
        ["the same from the redacted picture", told.similarity_again, ""],
        ["similarity of the scene", score["sim_global"], f"weight {score['beta']:g}"],
        ["weights", f"{score['weights']} {score['weights_emotion']}", ""],
        ["computed by", told.precision, ""],
    ]
    rows += [[f"neighbour in {n.view}", n.similarity, n.region or "no region"] for n in told.neighbours]
    ranked = sorted(told.emotion.items(), key=lambda item: -item[1])[:3]
    rows += [[f"probability of {label}", value, ""] for label, value in ranked]
    section.table(["what", "value", ""], rows)
    for note in told.notes:
        section.text(note)
    if best is not None and best.window is None:
        section.text("The cache holds no pictures; build it with `emogaze env build --keep-views` to see them here.")


def _framed(picture: Image, box: tuple[int, int, int, int]) -> Image:
    marked = picture.copy()
    x, y, width, height = box
    cv2.rectangle(marked, (x, y), (x + width, y + height), (63, 210, 255), max(2, picture.shape[0] // 180))
    return marked


def _enlarged(image: Image) -> Image:
    """Bring a picture to the height of a tile."""
    width = max(1, round(image.shape[1] * _TILE_PX / image.shape[0]))
    return np.asarray(cv2.resize(image, (width, _TILE_PX), interpolation=cv2.INTER_LINEAR), np.uint8)
