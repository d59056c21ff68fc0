"""Simple scenes for the example data set: a room, a street, a beach or a wood with things in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
WIDTH, HEIGHT = 640, 480
_PLACES = [(110, 130), (320, 110), (530, 140), (130, 350), (330, 330), (520, 360)]

#: The thing that goes with an emotion.
CUES = {
    "happy": "balloons",
    "sad": "raincloud",
    "angry": "thorns",
    "fear": "spider",
    "surprise": "gift",
    "disgust": "slime",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing in a scene and the centre of it, in pixels."""

    name: str
    x_px: float
    y_px: float


def draw_scene(scene_type: str, cue: str, rng: np.random.Generator) -> tuple[Picture, list[Thing]]:
    """Draw a scene of 640x480 pixels with a cue and three other things; the cue stands first in the list."""
    picture = _background(scene_type, rng)
    others = rng.permutation([name for name in _THINGS if name != cue and name not in CUES.values()])[:3]
    things = []
    for name, place in zip([cue, *others], rng.permutation(len(_PLACES)), strict=False):
        x, y = np.array(_PLACES[place]) + rng.integers(-25, 26, size=2)
        _THINGS[str(name)](picture, int(x), int(y), rng)
        things.append(Thing(str(name), float(x), float(y)))
    noise = rng.normal(0, 4, picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8), things


def _background(scene_type: str, rng: np.random.Generator) -> Picture:
    upper, lower = _COLOURS[scene_type]
    t = np.linspace(0, 1, HEIGHT)[:, None, None]
    sky = np.array(upper) * (1 - 0.4 * t) + 40 * t
    ground = np.array(lower) * (0.7 + 0.3 * t)
    horizon = int(rng.integers(200, 290))
    picture = np.where(np.arange(HEIGHT)[:, None, None] < horizon, sky, ground) * np.ones((1, WIDTH, 1))
    coarse = rng.normal(0, 14, (HEIGHT // 16, WIDTH // 16))
    picture += cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)[..., None]
    return np.clip(picture, 0, 255).astype(np.uint8)


_COLOURS = {
    "street": ((235, 206, 160), (110, 110, 115)),
    "beach": ((250, 220, 170), (150, 205, 235)),
    "wood": ((190, 210, 180), (60, 110, 70)),
    "room": ((205, 225, 235), (90, 130, 170)),
}
SCENE_TYPES = tuple(_COLOURS)


def _colour(rng: np.random.Generator, low: int = 40, high: int = 230) -> tuple[int, int, int]:
    b, g, r = rng.integers(low, high, size=3)
    return int(b), int(g), int(r)


def _balloons(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    for dx, dy in ((-28, -18), (0, -34), (28, -14)):
        cv2.line(p, (x, y + 50), (x + dx, y + dy + 24), (60, 60, 60), 1, cv2.LINE_AA)
        cv2.ellipse(p, (x + dx, y + dy), (19, 25), 0, 0, 360, _colour(rng, 120, 255), -1, cv2.LINE_AA)
        cv2.circle(p, (x + dx - 6, y + dy - 8), 5, (255, 255, 255), -1, cv2.LINE_AA)


def _raincloud(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    for dx, dy, r in ((-26, 0, 20), (0, -10, 27), (26, 0, 20)):
        cv2.circle(p, (x + dx, y + dy), r, (105, 95, 90), -1, cv2.LINE_AA)
    for _ in range(14):
        dx, dy = int(rng.integers(-36, 37)), int(rng.integers(22, 50))
        cv2.line(p, (x + dx, y + dy), (x + dx - 3, y + dy + 9), (190, 120, 60), 2, cv2.LINE_AA)


def _thorns(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    angles = np.linspace(0, 2 * np.pi, 25)[:-1]
    radii = np.where(np.arange(24) % 2, 22, rng.integers(42, 56, size=24))
    points = np.stack([x + radii * np.cos(angles), y + radii * np.sin(angles)], axis=1)
    cv2.fillPoly(p, [points.astype(np.int32)], (25, 20, 190), cv2.LINE_AA)
    cv2.circle(p, (x, y), 12, (10, 10, 60), -1, cv2.LINE_AA)


def _spider(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    for side in (-1, 1):
        for k in range(4):
            knee = (x + side * 30, y - 28 + 16 * k)
            cv2.line(p, (x, y), knee, (15, 15, 15), 3, cv2.LINE_AA)
            cv2.line(p, knee, (x + side * 48, y - 10 + 16 * k), (15, 15, 15), 3, cv2.LINE_AA)
    cv2.circle(p, (x, y), 19, (20, 20, 20), -1, cv2.LINE_AA)
    cv2.circle(p, (x, y - 22), 11, (30, 30, 30), -1, cv2.LINE_AA)


def _gift(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    cv2.rectangle(p, (x - 38, y - 26), (x + 38, y + 40), _colour(rng, 120, 250), -1)
    cv2.rectangle(p, (x - 7, y - 26), (x + 7, y + 40), (40, 215, 250), -1)
    for side in (-1, 1):
        cv2.ellipse(p, (x + side * 15, y - 35), (16, 9), side * 25, 0, 360, (40, 215, 250), 4, cv2.LINE_AA)


def _slime(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    for _ in range(12):
        dx, dy, r = rng.integers(-36, 37), rng.integers(-18, 19), rng.integers(9, 24)
        cv2.circle(p, (int(x + dx), int(y + dy)), int(r), (50, int(rng.integers(120, 200)), 110), -1, cv2.LINE_AA)
    for _ in range(8):
        dx, dy = rng.integers(-30, 31), rng.integers(-16, 17)
        cv2.circle(p, (int(x + dx), int(y + dy)), 3, (20, 60, 50), -1, cv2.LINE_AA)


def _house(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    cv2.rectangle(p, (x - 42, y - 12), (x + 42, y + 50), _colour(rng), -1)
    cv2.fillPoly(p, [np.array([(x - 52, y - 12), (x + 52, y - 12), (x, y - 52)])], (40, 60, 140), cv2.LINE_AA)
    cv2.rectangle(p, (x - 9, y + 16), (x + 9, y + 50), (40, 50, 70), -1)


def _tree(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    cv2.rectangle(p, (x - 7, y + 6), (x + 7, y + 56), (40, 70, 100), -1)
    for _ in range(9):
        dx, dy = rng.integers(-24, 25), rng.integers(-36, 13)
        cv2.circle(p, (int(x + dx), int(y + dy)), 20, (40, int(rng.integers(90, 170)), 50), -1, cv2.LINE_AA)


def _clock(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    cv2.circle(p, (x, y), 42, (240, 240, 240), -1, cv2.LINE_AA)
    cv2.circle(p, (x, y), 42, (40, 40, 40), 4, cv2.LINE_AA)
    for length in (20, 32):
        a = rng.uniform(0, 2 * np.pi)
        cv2.line(p, (x, y), (int(x + length * np.cos(a)), int(y + length * np.sin(a))), (40, 40, 40), 3, cv2.LINE_AA)


def _ball(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    cv2.circle(p, (x, y), 38, (245, 245, 245), -1, cv2.LINE_AA)
    for k in range(6):
        start = 60 * k
        cv2.ellipse(p, (x, y), (38, 38), 0, start, start + 30, _colour(rng), -1, cv2.LINE_AA)


def _books(p: Any, x: int, y: int, rng: np.random.Generator) -> None:
    for k in range(5):
        top = y - 40 + int(rng.integers(0, 14))
        cv2.rectangle(p, (x - 45 + 18 * k, top), (x - 30 + 18 * k, y + 42), _colour(rng), -1)


_THINGS: dict[str, Callable[[Any, int, int, np.random.Generator], None]] = {
    "balloons": _balloons,
    "raincloud": _raincloud,
    "thorns": _thorns,
    "spider": _spider,
    "gift": _gift,
    "slime": _slime,
    "house": _house,
    "tree": _tree,
    "clock": _clock,
    "ball": _ball,
    "books": _books,
}
