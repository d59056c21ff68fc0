"""A folder of pictures played at a declared rate, or one still. EXIF orientation is applied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from edge.capture.base import FrameInfo, FrameSource
from edge.capture.file import matches as is_clip
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.records import Frame, Image, Role

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"}
JPEG = b"\xff\xd8"  #: how a file of that kind begins
MANY_PAGES = {".tif", ".tiff", ".webp", ".png"}  #: kinds that may hold several pictures


def matches(source: str) -> bool:
    """Pictures are told by their suffix; any folder is taken."""
    return "://" not in source and (Path(source).suffix.lower() in SUFFIXES or Path(source).is_dir())


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return PictureSource(Path(scene.source), role, rate_hz=scene.rate_hz, start_s=scene.start_s, end_s=scene.end_s)


@dataclass(frozen=True, slots=True)
class Picture:
    """A still: `image` uint8 (h, w, 3) BGR, upright; `alpha` uint8 (h, w) where the file has an alpha channel.

    `note` says what of the file isn't in it: further pages, more than 8 bits a channel.
    """

    image: Image
    alpha: Image | None = None
    note: str = ""


def read_picture(path: Path) -> Picture:
    """Read a still: gray, 16-bit and palette pictures become BGR, EXIF orientation is applied, alpha is kept apart.

    Raises
    ------
    SourceError
        The file is missing or no picture.
    """
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise SourceError(str(path), f"can't be read: {error.strerror}") from error
    try:
        image = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
        # A JPEG has neither alpha nor 16 bits: there is nothing to see in it unchanged.
        plain = image is None or data[:2].tobytes() == JPEG
        raw = None if plain else cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise SourceError(str(path), f"can't be read as a picture: {error.err}") from error
    if image is None:
        raise SourceError(str(path), "can't be read as a picture", expected=", ".join(sorted(SUFFIXES)))
    note = _left_out(path, raw)
    if raw is None or raw.ndim != 3 or raw.shape[2] != 4:
        return Picture(np.asarray(image, np.uint8), note=note)
    alpha = raw[:, :, 3] if raw.dtype == np.uint8 else (raw[:, :, 3] // 256).astype(np.uint8)
    if alpha.shape != image.shape[:2]:
        raise SourceError(str(path), "has an alpha channel and an orientation tag", fix="turn it upright first")
    return Picture(np.asarray(image, np.uint8), np.ascontiguousarray(alpha), note)


def _left_out(path: Path, raw: npt.NDArray | None) -> str:
    notes = []
    pages = cv2.imcount(str(path)) if path.suffix.lower() in MANY_PAGES else 1
    if pages > 1:
        notes.append(f"the first of {pages} pages alone")
    if raw is not None and raw.dtype != np.uint8:
        notes.append(f"{8 * raw.itemsize} bits a channel became 8")
    return "; ".join(notes)


def list_pictures(path: Path) -> list[Path]:
    """Return the pictures of a folder in natural order (2 before 10), or the one that `path` is.

    Raises
    ------
    SourceError
        There is none.
    """
    if not path.is_dir():
        if not path.is_file():
            raise SourceError(str(path), "no such file or folder")
        return [path]
    found = [p for p in path.iterdir() if not _unfit(p)]
    if not found:
        raise SourceError(str(path), "holds no pictures", expected=", ".join(sorted(SUFFIXES)))
    return sorted(
        found,
        key=lambda p: [
            (not part.isdigit(), int(part or 0) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", p.name)
        ],
    )


def list_others(folder: Path) -> dict[str, str]:
    """Return what a folder holds besides its pictures, by path, with why it is none of them."""
    return {str(p): reason for p in sorted(folder.iterdir()) if (reason := _unfit(p))}


def _unfit(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    if not path.is_file():
        return "no file, or a link to nothing"
    if path.name.startswith("."):
        return "a hidden file"
    if is_clip(str(path)):
        return "a clip (give clips one at a time)"
    if path.suffix.lower() not in SUFFIXES:
        return f"not a known kind of picture ({path.suffix or 'no suffix'})"
    return ""


class PictureSource(FrameSource):
    """Pictures one after the other, `rate_hz` a second from time 0.

    Raises
    ------
    SourceError
        There is no picture, one can't be read or has another size, or several come without a rate.
    """

    def __init__(self, path: Path, role: Role, *, rate_hz: float, start_s: float = 0.0, end_s: float = 0.0) -> None:
        paths = list_pictures(path)
        if len(paths) > 1 and rate_hz <= 0:
            raise SourceError(str(path), f"{len(paths)} pictures without a rate", fix="set scene.rate_hz")
        times = [round(i * 1e9 / rate_hz) if i else 0 for i in range(len(paths))]
        self._queue = [
            (i, t, p)
            for i, (t, p) in enumerate(zip(times, paths, strict=True))
            if t >= start_s * 1e9 and (not end_s or t < end_s * 1e9)
        ]
        if not self._queue:
            raise SourceError(str(path), "no picture lies between start_s and end_s")
        self._path, self._role, self._position = path, role, 0
        first = read_picture(self._queue[0][2]).image
        self.info = FrameInfo(str(path), first.shape[1], first.shape[0], rate_hz, live=False, n_frames=len(paths))

    def read(self, timeout_s: float = 1.0) -> Frame | None:
        if self.ended:
            return None
        index, t_ns, path = self._queue[self._position]
        self._position += 1
        image = read_picture(path).image
        size, expected = (image.shape[1], image.shape[0]), (self.info.width, self.info.height)
        if size != expected:
            raise SourceError(
                str(path), "has another size than the first picture", expected=str(expected), got=str(size)
            )
        return Frame(index, t_ns, image, str(self._path), self._role)

    @property
    def ended(self) -> bool:
        return self._position >= len(self._queue)

    def close(self) -> None:
        self._position = len(self._queue)
