"""The page of one encrypted session: what was scored, and what each score rests on.

The session is opened with an identity of the study, in memory; pictures are the redacted ones that it holds. The page
itself isn't encrypted: it is an export.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge.errors import DataError
from edge.records import Event, Image
from edge.session.read import open_log, read_items
from edge.session.segment import Picture
from host_tools.report.evidence import N_SCORES, add_evidence
from host_tools.report.page import Page, Section
from host_tools.report.run_page import (
    KEY_FRAMES,
    add_fixation_map,
    add_options,
    add_timelines,
    caption_of,
    marked,
)


def build_page(session: Path, identity: Path | None, *, shown: int = N_SCORES) -> Page:
    """Return the page of a session, with pictures of what `shown` of its scores rest on (0 = all).

    Raises
    ------
    DataError, RecordingError
        It can't be opened, or holds no score.
    """
    log = list(open_log(session, identity))
    header, scores = log[0].payload, [event for event in log if event.kind == "score"]
    if not scores or identity is None:
        raise DataError(str(session), "holds no score", fix="`emogaze session info` lists what it holds")
    page = Page(
        "EmoGaze Edge: one session",
        subtitle=f"{session.resolve().name}: {len(scores)} pictures. "
        + ("Gaze is simulated." if header["gaze"]["simulated"] else ""),
        footer=f"emogaze {header['emogaze']}, Python {header['python']}. The scores are advisory: "
        "no decision about a person should rest on them alone.",
    )
    find = _finder(session, identity, scores)
    _facts(page.section("In figures"), log, scores)
    places = [round(i) for i in np.linspace(0, len(scores) - 1, KEY_FRAMES + 2)[1:-1]]
    pictures = find(places)
    frames = [(marked(pictures[i].copy(), scores[i]), caption_of(scores[i])) for i in places if i in pictures]
    if frames:
        page.section("Key frames").pictures(frames)
    add_timelines(page.section("FCC and emotion over time"), scores)
    add_fixation_map(page.section("Fixations"), log, header, frames[0][0] if frames else None)
    add_evidence(page.section("What a score rests on"), scores, header, find, shown=shown)
    add_options(page.section("Exact options"), header)
    return page


def _finder(session: Path, identity: Path, scores: list[Event]) -> Callable[[list[int]], dict[int, Image]]:
    """Return what reads the redacted pictures of the scores at some places; each call reads the session once."""

    def find(places: list[int]) -> dict[int, Image]:
        wanted = {scores[place].payload["frame_id"]: place for place in places}
        found = {}
        for item in read_items(session, identity):
            if isinstance(item, Picture) and item.role == "scene" and item.frame_id in wanted and not item.withheld:
                image = cv2.imdecode(np.frombuffer(item.jpeg, np.uint8), cv2.IMREAD_COLOR)
                found[wanted[item.frame_id]] = np.asarray(image, np.uint8)
        return found

    return find


def _facts(section: Section, log: list[Event], scores: list[Event]) -> None:
    defined = [e.payload["score"]["fcc_now"] for e in scores if not e.payload["score"]["reason"]]
    faces = [face for e in log if e.kind == "picture" for face in e.payload["faces"]]
    figures: dict[str, Any] = {
        "mean FCC": float(np.mean(defined)) if defined else None,
        "scores": len(defined),
        "fixations": sum(e.kind == "fixation" for e in log),
        "faces covered": f"{sum(face['covered'] for face in faces)} of {len(faces)}",
        "pictures withheld": sum(e.kind == "picture" and e.payload["withheld"] for e in log),
    }
    section.facts(figures)
    undefined = Counter(e.payload["score"]["reason"] for e in scores if e.payload["score"]["reason"])
    if undefined:
        section.table(["FCC undefined because", "frames"], sorted(undefined.items()))
