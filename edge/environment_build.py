"""Build an environment: reference views -> tiles at several scales -> embeddings -> a cache with its separation."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import msgspec
import numpy as np
import numpy.typing as npt

from edge.capture import open_capture
from edge.capture.images import SUFFIXES, list_pictures, read_picture
from edge.config import SceneConfig, ScoreConfig
from edge.config_files import parse_toml
from edge.embedding import Matrix, fit_transform
from edge.environment import ENTRY, EnvironmentCache, EnvironmentInfo, build_index
from edge.errors import CacheError, ConfigError
from edge.features import Embedder, StillScene, window_px
from edge.manifest import Manifest
from edge.records import Image
from edge.separation import separation

log = logging.getLogger(__name__)

TILE_SCALES = (0.75, 1.0, 1.5)  #: sides of the tiles as multiples of the window
_STRIDE = 0.5  #: between tiles, as a share of their side
_JPEG_QUALITY = 85
_LEAST_CONTRAST = 2.0  #: standard deviation in grey levels; of less, a view shows nothing
_LEAST_SIDE_PX = 64  #: windows of smaller pictures hold a few dozen pixels, enlarged to what the model takes
_SAMPLED_VIEWS = 16  #: views that the separation is measured on


@dataclass(frozen=True, slots=True)
class View:
    """A reference picture of the environment; `name` is its file name, or its time in a clip.

    `covered` is the same picture as JPEG with every face covered, where it is to be kept for reports.
    """

    name: str
    image: Image
    covered: bytes = b""


class Region(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A named part of a view: `box` is x, y, width, height in the file's units; an empty `view` means every view."""

    name: str
    box: tuple[float, float, float, float]
    view: str = ""


class Regions(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A regions file: ``units = "norm" | "px"`` and any number of ``[[region]]`` tables."""

    units: str
    region: tuple[Region, ...]

    def __post_init__(self) -> None:
        if self.units not in ("norm", "px"):
            raise ValueError(f"units: expected norm or px, got {self.units!r}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(region.name for region in self.region))

    def at(self, view: View, x: float, y: float) -> int:
        """Return the number of the smallest region of `view` that holds the point (pixels), or -1."""
        height, width = view.image.shape[:2]
        unit = np.array([width, height, width, height]) if self.units == "norm" else np.ones(4)
        best, smallest = -1, math.inf
        for region in self.region:
            left, top, w, h = np.array(region.box) * unit
            inside = left <= x < left + w and top <= y < top + h
            if inside and region.view in ("", view.name) and w * h < smallest:
                best, smallest = self.names.index(region.name), w * h
        return best


@dataclass(slots=True)
class Build:
    """What has been embedded so far."""

    local: list[Matrix] = field(default_factory=list)
    scenes: list[Matrix] = field(default_factory=list)
    entries: list[npt.NDArray] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)


def read_regions(path: Path) -> Regions:
    """Read a regions file (TOML), or raise ConfigError with its name."""
    try:
        return msgspec.convert(parse_toml(path), Regions)
    except msgspec.ValidationError as error:
        raise ConfigError(str(path), f"is no regions file: {error}") from error


def read_views(source: str, *, start_s: float = 0.0, end_s: float = 0.0, every_s: float = 1.0) -> Iterator[View]:
    """Yield the pictures of a folder or file, or a clip's frame every `every_s` seconds from `start_s` to `end_s`.

    Raises
    ------
    SourceError
        The source can't be read or is empty.
    ConfigError
        It is a live camera.
    """
    path = Path(source)
    if path.is_dir() or path.suffix.lower() in SUFFIXES:
        for file in list_pictures(path):
            yield View(file.name, read_picture(file).image)
        return
    with open_capture(SceneConfig(source=source, start_s=start_s, end_s=end_s), "scene") as capture:
        if capture.info.live:
            raise ConfigError(source, "is a live camera", expected="pictures or a clip", fix="record a clip first")
        due_ns = 0
        while frame := capture.read():
            if frame.t_ns >= due_ns:
                due_ns = frame.t_ns + round(every_s * 1e9)
                yield View(f"{frame.t_ns / 1e9:.3f}s", frame.image)


def keep_covered(views: Iterable[View], cover: Callable[[Image], Image]) -> Iterator[View]:
    """Yield the views, each with its covered picture; `cover` is what covers every face of a picture."""
    for view in views:
        _, jpeg = cv2.imencode(".jpg", cover(view.image), [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
        yield replace(view, covered=jpeg.tobytes())


def canary_view(manifest: Manifest) -> list[View]:
    """Return the artefact's canary picture: a scene that is surely another one, where no other was given."""
    if manifest.canary is None:
        return []
    return [View(f"{manifest.name}/{manifest.canary.file}", read_picture(manifest.folder / manifest.canary.file).image)]


def doubt_of(image: Image) -> str:
    """Say why a reference view is of little use, if it is."""
    height, width = image.shape[:2]
    contrast = float(image.std(axis=(0, 1)).max())
    if contrast < _LEAST_CONTRAST:
        return f"shows nothing: its grey levels vary by {contrast:.1f} of 255"
    if min(width, height) < _LEAST_SIDE_PX:
        return f"is only {width}x{height} px: what its windows hold is enlarged and says little"
    return ""


def tiles(width: int, height: int, window: str) -> list[tuple[int, int, int]]:
    """Return (x, y, side) of squares at each scale that cover a picture edge to edge, half overlapping."""
    base = window_px(width, height, window)
    result = []
    for side in dict.fromkeys(max(1, min(round(base * scale), width, height)) for scale in TILE_SCALES):
        columns, rows = (_starts(length, side) for length in (width, height))
        result += [(x, y, side) for y in rows for x in columns]
    return result


def build(
    embedder: Embedder,
    views: Iterable[View],
    score: ScoreConfig,
    *,
    regions: Regions | None = None,
    others: Iterable[View] = (),
    seed: int = 0,
    measured: bool = True,
) -> EnvironmentCache:
    """Embed reference views and fit the environment, with its separation.

    A view that stands still against the one embedded before it is left out.

    Parameters
    ----------
    embedder : Embedder
    views : iterable of View
        At least one. Not pictures that are to be scored: a best match with itself would make FCC 1.
    score : ScoreConfig
        `embedding`, `window`, `still_tolerance`.
    regions : Regions, optional
    others : iterable of View
        Views of another environment, for the retrieved AUC.
    seed : int
        Of the pairs that the separation is measured on, and of the choice of views they come from.
    measured : bool
        Whether to measure the separation, which takes most of the time of a small environment.

    Raises
    ------
    CacheError
        There is no view, none shows anything, or there are too few vectors for a projection.
    """
    done, sample, still = Build(), _Sample(_SAMPLED_VIEWS, seed), StillScene(score.still_tolerance)
    doubts: dict[str, str] = {}
    for view in views:
        if doubt := doubt_of(view.image):
            doubts[view.name] = doubt
            log.warning("environment: view %s %s", view.name, doubt)
        if not still.check(view.image):
            _embed_view(done, embedder, view, score.window, regions)
            sample.offer(view.image)
    if not done.names:
        raise CacheError("environment", "there is no reference view", fix="give pictures or a clip")
    if all("shows nothing" in doubts.get(name, "") for name in done.names):
        raise CacheError("environment", f"no view shows anything: {done.names[0]} {doubts[done.names[0]]}")
    cache = _fit(done, embedder, score, regions)
    if not measured:
        return cache
    foreign = list(others)
    report = separation(embedder, cache, sample.images, [view.image for view in foreign], seed=seed)
    report["retrieved_against"] = ", ".join(view.name for view in foreign[:3]) + (", ..." if foreign[3:] else "")
    cache.info = msgspec.structs.replace(cache.info, separation=report)
    return cache


def _embed_view(done: Build, embedder: Embedder, view: View, window: str, regions: Regions | None) -> None:
    height, width = view.image.shape[:2]
    places = tiles(width, height, window)
    done.local.append(embedder.local([view.image[y : y + side, x : x + side] for x, y, side in places]))
    done.scenes.append(embedder.scenes([view.image]))
    rows = np.zeros(len(places), dtype=ENTRY)
    rows["view"] = len(done.names)
    rows["x"], rows["y"], rows["side"] = np.array(places).T
    rows["region"] = [regions.at(view, x + s / 2, y + s / 2) if regions else -1 for x, y, s in places]
    done.entries.append(rows)
    done.names.append(view.name)
    done.pictures.append(view.covered)


def _fit(done: Build, embedder: Embedder, score: ScoreConfig, regions: Regions | None) -> EnvironmentCache:
    manifest = embedder.manifest
    local, scenes = np.concatenate(done.local), np.concatenate(done.scenes)
    transforms = (
        fit_transform(local, score.embedding, manifest.mean_local, scale="local"),
        fit_transform(scenes, score.embedding, manifest.mean_global, scale="global"),
    )
    vectors = transforms[0](local), transforms[1](scenes)
    for name, unit in zip(("window", "scene"), vectors, strict=True):
        empty = int((~unit.any(axis=1)).sum())
        if empty:
            problem = f"{empty} of {len(unit)} {name} embeddings have no direction"
            raise CacheError("environment", problem, fix="leave out views that show nothing")
    info = EnvironmentInfo(
        embedder=manifest.name,
        embedder_id=manifest.model_id,
        model_sha256=manifest.sha256,
        precision=manifest.precision,
        embedding=score.embedding,
        window=score.window,
        scales=TILE_SCALES,
        n_views=len(scenes),
        n_entries=len(local),
        dim_local=vectors[0].shape[1],
        dim_global=vectors[1].shape[1],
        regions=regions.names if regions else (),
        views=tuple(done.names),
        separation={},
    )
    indices = build_index(vectors[0]), build_index(vectors[1])
    return EnvironmentCache(info, transforms, indices, np.concatenate(done.entries), done.pictures)


class _Sample:
    """A seeded uniform sample of pictures of a stream of unknown length (reservoir sampling)."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._rng, self._seen = size, np.random.default_rng(seed), 0
        self.images: list[Image] = []

    def offer(self, image: Image) -> None:
        self._seen += 1
        if len(self.images) < self._size:
            self.images.append(image)
            return
        place = int(self._rng.integers(self._seen))
        if place < self._size:
            self.images[place] = image


def _starts(length: int, side: int) -> list[int]:
    """Return evenly spaced starts from 0 to `length - side`, at most half a side apart."""
    n = math.ceil((length - side) / (side * _STRIDE)) + 1
    return np.rint(np.linspace(0, length - side, n)).astype(int).tolist()
