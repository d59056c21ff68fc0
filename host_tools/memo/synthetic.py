"""A made-up archive in the shape and size of the public one, for tests and trial runs; nothing in it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.commands.base import progress
from edge.files import write_atomic
from host_tools.memo.classes import CLASSES
from host_tools.tables import write_csv

#: The codes that are known, then numbers.
GENERATORS = ("SD1", "SD2", "DL3", "FCS", "SGA", "M06", "M07", "M08", "M09", "M10", "M11", "M12")


@dataclass(frozen=True)
class Shape:
    """How large an archive to make; the defaults are those of the public one."""

    n_models: int = 12
    n_prompts: int = 100
    n_raters: int = 29
    n_missing: int = 55
    picture_px: int = 48
    seed: int = 0


def make_archive(folder: Path, shape: Shape = Shape()) -> None:
    """Write pictures, both CSVs, an index of what was asked, and a configuration that runs them.

    Generators differ in how often a picture shows what was asked for, and raters in bias, spread and attention; one
    rater answers at random, so that screening has something to find.
    """
    rng = np.random.default_rng(shape.seed)
    rows = _asked(rng, shape)
    kept = [row for row in rows if row["status"] == "kept"]
    (folder / "images").mkdir(parents=True, exist_ok=True)
    _draw_all(folder / "images", kept, shape.picture_px)
    _vote(folder, kept, rng, shape.n_raters)
    write_csv(folder / "pictures.csv", rows, ["image", "model", "emotion", "prompt", "style", "status"])
    write_csv(folder / "answers.csv", _answer(kept, rng), ["image", "category", "degree"])
    asked = len(rows)
    write_atomic(
        folder / "memo.toml",
        f'title = "Synthetic archive (made up)"\n\n[archive]\nroot = "."\nindex = "pictures.csv"\nasked = {asked}\n'
        f"expected = {len(kept)}\nasked_per_cell = {shape.n_prompts}\n\n"
        '[[understanding.models]]\nname = "made-up"\nanswers = "answers.csv"\n',
    )


def _asked(rng: np.random.Generator, shape: Shape) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for m in range(shape.n_models):
        model = GENERATORS[m] if m < len(GENERATORS) else f"M{m + 1:02d}"
        for k, emotion in enumerate(CLASSES):
            for p in range(shape.n_prompts):
                fidelity = 0.95 - 0.05 * m - (0.2 if emotion == "WOR" else 0)
                shown = k if rng.random() < fidelity else int(rng.choice([1, 5] if emotion == "WOR" else len(CLASSES)))
                style = "direct" if p % 2 else "contextual"
                image = f"{model}_{emotion}_{p:03d}.jpg"
                rows.append(
                    {"image": image, "model": model, "emotion": emotion, "prompt": f"{emotion}-{p:03d}", "style": style}
                    | {"status": "kept", "shown": shown, "degree": rng.uniform(1, 5), "quality": rng.uniform(1, 5)}
                )
    for i, missing in enumerate(rng.choice(len(rows), shape.n_missing, replace=False)):
        rows[int(missing)]["status"] = "refused" if i % 2 else "rejected"
    return rows


def _draw_all(folder: Path, rows: list[dict[str, object]], size: int) -> None:
    import cv2

    for i, row in enumerate(progress(rows, "drawing pictures")):
        cv2.imwrite(str(folder / str(row["image"])), draw_face(int(str(row["shown"])), size, tint=i))


def draw_face(emotion: int, size: int, *, tint: int = 0) -> npt.NDArray[np.uint8]:
    """Draw a crude face, uint8 (size, size, 3), with the mouth and brows of a class of `CLASSES`."""
    import cv2

    image = np.full((size, size, 3), [20 + tint * step % 200 for step in (53, 97, 29)], np.uint8)
    scale = size / 48
    at = lambda x, y: (round(x * scale), round(y * scale))  # noqa: E731
    cv2.circle(image, at(24, 24), round(18 * scale), (150, 190, 230), -1)
    for x in (17, 31):
        cv2.circle(image, at(x, 19), max(1, round(2.5 * scale)), (20, 20, 20), -1)
    slant = {"ANG": 2, "SAD": -2, "WOR": -2}.get(CLASSES[emotion], 0)
    cv2.line(image, at(13, 14 - slant), at(20, 14 + slant), (20, 20, 20), 1)
    cv2.line(image, at(28, 14 + slant), at(35, 14 - slant), (20, 20, 20), 1)
    if CLASSES[emotion] == "SUR":
        cv2.circle(image, at(24, 32), max(1, round(4 * scale)), (20, 20, 120), -1)
    else:
        bend = {"HAP": 5, "SAD": -5, "WOR": -3, "ANG": -2}.get(CLASSES[emotion], 0)
        mouth = np.array([at(x, 32 + bend * (1 - ((x - 24) / 8) ** 2)) for x in range(16, 33, 2)], np.int32)
        cv2.polylines(image, [mouth], False, (20, 20, 120), max(1, round(scale)))
    return image


def _vote(folder: Path, rows: list[dict[str, object]], rng: np.random.Generator, n_raters: int) -> None:
    shown = np.array([row["shown"] for row in rows], np.int64)
    n = len(rows)
    emotions: list[dict[str, object]] = []
    qualities: list[dict[str, object]] = []
    for r in range(n_raters):
        careless = r == n_raters - 1 and n_raters > 3
        attentive = 0.0 if careless else rng.uniform(0.75, 0.95)
        named = np.where(rng.random(n) < attentive, shown, rng.integers(len(CLASSES), size=n))
        scores = {}
        for name in ("degree", "quality"):
            true = rng.uniform(0, 5, n) if careless else np.array([row[name] for row in rows], float)
            scores[name] = np.clip(np.rint(true + rng.normal(0.3 * (r % 3 - 1), 0.7, n)), 0, 5).astype(int)
        for i, row in enumerate(rows):
            who = {"image": row["image"], "rater": f"r{r + 1:02d}"}
            emotions.append(who | {"type": CLASSES[named[i]], "degree": scores["degree"][i]})
            qualities.append(who | {"quality": scores["quality"][i]})
    write_csv(folder / "annotation_emo.csv", emotions, ["image", "rater", "type", "degree"])
    write_csv(folder / "annotation_quality.csv", qualities, ["image", "rater", "quality"])


def _answer(rows: list[dict[str, object]], rng: np.random.Generator) -> list[dict[str, object]]:
    """Make up a multimodal model's answers: right about two times in three, as text."""
    words = ("Happy.", "sad", "The person looks angry", "Surprise!", "worried", "neutral")
    answers: list[dict[str, object]] = []
    for row in rows:
        k = int(str(row["shown"])) if rng.random() < 0.65 else int(rng.integers(len(CLASSES)))
        text = words[k] if rng.random() < 0.98 else "I'm sorry, I can't help with identifying emotions."
        degree = min(5.0, max(0.0, float(str(row["degree"])) + rng.normal(0, 1)))
        answers.append({"image": row["image"], "category": text, "degree": f"{degree:.1f}"})
    return answers
