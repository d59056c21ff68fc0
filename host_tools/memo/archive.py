"""The public archive: a folder of portraits, votes on class and degree, votes on quality, and what is amiss in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools.memo.classes import CLASSES, find_class
from host_tools.memo.ratings import Key, VoteTable, assemble, find_columns, votes_of
from host_tools.memo.remarks import Remarks
from host_tools.memo.settings import ArchiveSettings, ScoreSettings
from host_tools.memo.truth import Truth, class_codes, truth_from_votes
from host_tools.tables import Table, read_table

PICTURE_TYPES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})
Status = Literal["kept", "refused", "rejected"]
ONE_FOR_ALL = "(average)"  #: the rater of a table that gives averages instead of votes


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture that was asked for. `emotion` is the prompt's class in `CLASSES`; refused ones have no file."""

    image: str
    model: str
    emotion: int
    prompt: str = ""
    style: str = ""
    status: Status = "kept"
    path: Path | None = None


@dataclass(frozen=True)
class Archive:
    """Pictures and what raters say about them. The arrays of `truth` follow the kept `pictures`, in their order."""

    pictures: list[Picture]
    truth: Truth
    integrity: dict[str, Any]

    @property
    def kept(self) -> list[Picture]:
        return [p for p in self.pictures if p.status == "kept"]


def read_archive(settings: ArchiveSettings, base: Path, scores: ScoreSettings) -> Archive:
    """Read an archive and report what is missing in it.

    Parameters
    ----------
    base : Path
        Folder that `settings.root` is relative to.

    Raises
    ------
    DataError
        If the pictures or the emotion votes can't be found, or no picture has both.
    """
    root = base / settings.root
    remarks = Remarks()
    pictures = _read_pictures(root, settings, remarks)
    kept = [p for p in pictures if p.status == "kept"]
    names = {p.image: p.image for p in kept} | {Path(p.image).stem: p.image for p in kept}
    votes = _read_votes(root, settings, names, remarks)
    prompts: dict[Key, str] = {p.image: CLASSES[p.emotion] for p in kept}
    truth = _truth(votes, prompts, scores, (settings.scale_low, settings.scale_high))
    voted = set(truth.images)
    unrated = [p.image for p in kept if p.image not in voted]
    remarks.add("pictures without any vote", len(unrated), next(iter(unrated), ""))
    if truth.ratings is not None:
        remarks.extend(truth.ratings.remarks)
    if not voted & {p.image for p in kept}:
        raise DataError(str(root), "no picture has a vote", fix="map the columns, or give the index of pictures")
    integrity = _integrity(pictures, truth, settings, remarks)
    return Archive(pictures, align(truth, [p.image for p in kept]), integrity)


def align(truth: Truth, images: Sequence[str]) -> Truth:
    """Return the class and scores of `images`, in their order; one without votes has none. The votes stay as given."""
    where = {image: i for i, image in enumerate(truth.images)}
    index = np.array([where.get(image, -1) for image in images], np.int64)

    def take(values: npt.NDArray, missing: Any) -> npt.NDArray:
        return np.append(values, missing)[index]

    return replace(
        truth,
        images=list(images),
        category=take(truth.category, -1),
        tie=take(truth.tie, False),
        degree=take(truth.degree, np.nan),
        quality=take(truth.quality, np.nan),
    )


def _read_pictures(root: Path, settings: ArchiveSettings, remarks: Remarks) -> list[Picture]:
    folder = root / settings.pictures
    if not folder.is_dir():
        raise DataError(str(folder), "no such folder of pictures", fix="set archive.root and archive.pictures")
    files = {p.name: p for p in sorted(folder.rglob("*")) if p.suffix.lower() in PICTURE_TYPES}
    if settings.index:
        return _from_index(read_table(root / settings.index), files, remarks)
    pattern = re.compile(settings.file_names)
    pictures, odd = [], []
    for name, path in files.items():
        match = pattern.search(path.relative_to(folder).with_suffix("").as_posix())
        emotion = find_class(match["emotion"]) if match else ""
        if not match or not emotion:
            odd.append(name)
            continue
        prompt = match.groupdict().get("prompt", "")
        pictures.append(Picture(name, match["model"], CLASSES.index(emotion), f"{emotion}-{prompt}", path=path))
    remarks.add("extra pictures whose name tells no model and class, left out", len(odd), next(iter(odd), ""))
    return pictures


def _from_index(table: Table, files: Mapping[str, Path], remarks: Remarks) -> list[Picture]:
    pictures: list[Picture] = []
    optional = {
        name: table.text(name) if name in table else [""] * len(table) for name in ("prompt", "style", "status")
    }
    for i, (image, model, emotion) in enumerate(
        zip(table.text("image"), table.text("model"), table.text("emotion"), strict=True)
    ):
        name, code = Path(image).name, find_class(emotion)
        status = optional["status"][i] or "kept"
        if not code:
            remarks.add("pictures with an unknown emotion code, left out", example=emotion)
            continue
        if status not in ("kept", "refused", "rejected"):
            raise DataError(
                f"{table.path}, row {i + 1}", f"no such status {status!r}", expected="kept, refused, rejected"
            )
        if status == "kept" and name not in files:
            remarks.add("missing pictures: in the index, no file", example=name)
        pictures.append(
            Picture(
                name,
                model,
                CLASSES.index(code),
                optional["prompt"][i],
                optional["style"][i],
                status,  # type: ignore[arg-type]
                files.get(name),
            )
        )
    extra = sorted(set(files) - {p.image for p in pictures})
    remarks.add("extra pictures: a file, not in the index, left out", len(extra), next(iter(extra), ""))
    return pictures


def _read_votes(root: Path, settings: ArchiveSettings, names: Mapping[str, str], remarks: Remarks) -> list[VoteTable]:
    tables = []
    for file, mapping, roles in (
        (settings.emotion, settings.emotion_columns, ("category", "degree")),
        (settings.quality, settings.quality_columns, ("quality",)),
    ):
        if not file:
            continue
        table = read_table(root / file)
        where = find_columns(list(table.columns), mapping)
        if len(roles) == 1 and roles[0] not in where and "score" in where:
            where[roles[0]] = where["score"]
        absent = [role for role in ("image", *roles) if role not in where]
        if "image" in absent or len(absent) > len(roles):
            raise DataError(
                table.path,
                "no column for " + ", ".join(absent),
                got=", ".join(table.columns),
                fix=f"map it: archive.{'quality' if roles == ('quality',) else 'emotion'}_columns = {{image = '...'}}",
            )
        for role in absent:
            remarks.add(f"column not found: {role} in {file}")
        tables.append(_select(table, where, [r for r in roles if r in where], names, remarks))
    return tables


def _select(
    table: Table, where: Mapping[str, str], roles: Sequence[str], names: Mapping[str, str], remarks: Remarks
) -> VoteTable:
    """Take the lines about pictures of the archive, under the pictures' own names."""
    texts = table.text(where["image"])
    name_of = {text: names.get(Path(text).name) or names.get(Path(text).stem) for text in set(texts)}
    images = [name_of[text] for text in texts]
    raters = table.text(where["rater"]) if "rater" in where else [ONE_FOR_ALL] * len(table)
    lines = [i for i, image in enumerate(images) if image]
    unknown = sorted(text for text, image in name_of.items() if not image)
    remarks.add(f"missing pictures: votes in {Path(table.path).name}, no file", len(unknown), next(iter(unknown), ""))
    columns = {role: votes_of(table, where[role]) for role in roles}
    return VoteTable(
        [images[i] or "" for i in lines],
        [raters[i] for i in lines],
        {role: [texts[i] for i in lines] for role, texts in columns.items()},
    )


def _truth(
    tables: Sequence[VoteTable], prompts: Mapping[Key, str], scores: ScoreSettings, scale: tuple[float, float]
) -> Truth:
    ratings = assemble(tables, scale=scale, labels="memo6", prompts=prompts)
    if ratings.raters != [ONE_FOR_ALL]:
        people = ratings.without(scores.model_raters)
        truth = truth_from_votes(people, scores.options, ties=scores.ties)
        return replace(truth, ratings=ratings)
    n = len(ratings.images)
    codes = np.append(class_codes(ratings.labels), -1)
    category = np.full(n, -1) if ratings.votes is None else codes[ratings.votes[:, 0]]
    degree, quality = (
        ratings.scores[name][:, 0] if name in ratings.scores else np.full(n, np.nan) for name in ("degree", "quality")
    )
    summary = {"notes": ["the archive gives averages, not votes: no screening, no agreement, no human row"]}
    return Truth([str(i) for i in ratings.images], category, np.zeros(n, bool), degree, quality, None, summary)


def _integrity(
    pictures: Sequence[Picture], truth: Truth, settings: ArchiveSettings, remarks: Remarks
) -> dict[str, Any]:
    """Count pictures per model and class against what was asked for and what the archive should hold."""
    status = Counter(p.status for p in pictures)
    cells = Counter((p.model, p.emotion) for p in pictures if p.status == "kept")
    models = sorted({p.model for p in pictures})
    complete = not settings.expected or status["kept"] == settings.expected
    return {
        "asked": settings.asked,
        "kept": status["kept"],
        "refused": status["refused"],
        "rejected": status["rejected"],
        "unexplained": settings.asked - sum(status.values()),
        "expected": settings.expected,
        "as_expected": complete,
        "files": sum(p.path is not None for p in pictures),
        "rated": int(np.isin([p.image for p in pictures if p.status == "kept"], truth.images).sum()),
        "cells": [
            {"model": m, **{c: cells[m, k] for k, c in enumerate(CLASSES)}, "kept": sum(cells[m, k] for k in range(6))}
            for m in models
        ],
        "asked_per_cell": settings.asked_per_cell,
        "remarks": remarks.as_rows(),
        "lines": [
            f"{status['kept']} pictures kept of {settings.asked} asked"
            + ("" if complete else f"; {settings.expected} expected"),
            *remarks.lines(),
        ],
    }
