"""Embeddings of what is looked at: windows around fixations, whole scenes, scenes pooled by where they are looked at.

Every vector is raw, as the runtime's own `Embedder` gives it; centring and projection come later, once the environment
is known. A result depends on the picture's content, the fixations, the window and the artefact, and is kept under them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, new_batch
from edge.config import ModelsConfig, ScoreConfig
from edge.errors import ModelError
from edge.features import Embedder, crop_window
from edge.manifest import Manifest, load_manifest, models_dir
from edge.preprocess import fill_input
from edge.records import Image
from host_tools.datasets import panorama
from host_tools.datasets.maps import read_picture
from host_tools.engine import Engine, Work, run
from host_tools.evaluate.devices import open_on
from host_tools.evaluate.looks import batches

Array = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]
Points = npt.NDArray[np.float64]  # (n, 2): x and y in pixels
HUMAN = "recorded"  #: the set of points that are people's


@dataclass(frozen=True, slots=True)
class Embedded:
    """One sample's vectors. `local` of each set of points is (n, d), `nan` rows where a point is off the picture.

    `pooled` of a set is the scene's feature map averaged with the density of its points (None without a point on the
    picture), `scene` the plain whole scene.
    """

    size: tuple[int, int]
    scene: Matrix
    local: dict[str, Matrix]
    pooled: dict[str, Matrix | None]


@dataclass(frozen=True, slots=True)
class Request:
    """What to embed of one sample: a picture (relative path and hash), its sets of points and their windows' side."""

    media: str
    media_sha: str
    points: Mapping[str, Points]
    side_px: int = 0


def embed(
    requests: Iterable[Request],
    root: Path,
    models: ModelsConfig,
    *,
    projection: str,
    engine: Engine,
) -> Iterator[Embedded]:
    """Give the vectors of each request, in order."""
    context = {**model_context(models), "_root": str(root), "projection": projection}
    done = run(_jobs(requests), make_embedder, context, engine=engine)
    for people, systems in zip(done, done, strict=True):
        for one, other in zip(people, systems, strict=True):
            local, pooled = ({**one[key], **other[key]} for key in ("local", "pooled"))
            yield Embedded(tuple(one["size"]), one["scene"], local, pooled)


def _jobs(requests: Iterable[Request]) -> Iterator[dict[str, Any]]:
    """Give two jobs a batch: people's points, and those of systems, which stay finished while people's are swept."""
    for part in batches(iter(requests)):
        # Where people alone look, nothing is compared that was pooled by density: no feature map is needed.
        maps = any(set(r.points) - {HUMAN} for r in part)
        yield {"items": [_item(r, people=True) for r in part], "scenes": True, "maps": maps}
        yield {"items": [_item(r, people=False) for r in part], "scenes": False, "maps": maps}


def _item(request: Request, *, people: bool) -> dict[str, Any]:
    points = {name: p.tolist() for name, p in request.points.items() if (name == HUMAN) == people}
    return {"media": request.media, "sha": request.media_sha, "side_px": request.side_px, "points": points}


def model_context(models: ModelsConfig) -> dict[str, Any]:
    """Return what a result depends on of an artefact (its hash), and privately where to find it."""
    manifest = load_manifest(models_dir(models.dir) / models.embedder)
    return {"model": manifest.model_id, "sha": manifest.sha256, "_models": msgspec.to_builtins(models)}


def open_embedder(context: Mapping[str, Any], device: str) -> Embedder:
    """Load the artefact of `model_context` on a device: ``cpu``, ``cuda:1``, ... ."""
    models = msgspec.convert(context["_models"], ModelsConfig)
    return Embedder(open_on(device, models.embedder, models), ScoreConfig(still_tolerance=0))


def make_embedder(context: dict[str, Any], device: str) -> Work:
    """Return what embeds a batch of samples (a worker of `host_tools.engine`): what they share is embedded once."""
    embedder = open_embedder(context, device)
    root, sphere = Path(context["_root"]), context["projection"] == "panorama"

    def work(job: dict[str, Any]) -> list[dict[str, Any]]:
        items = job["items"]
        if not job["scenes"] and not job["maps"]:  # there are no systems
            return [{"size": (0, 0), "scene": None, "local": {}, "pooled": {}} for _ in items]
        pictures = {sha: read_picture(root / media) for sha, media in {i["sha"]: i["media"] for i in items}.items()}
        shown = list(pictures.values())
        scenes = dict(zip(pictures, embedder.scenes(shown), strict=True)) if job["scenes"] else {}
        maps = dict(zip(pictures, feature_maps(embedder.model, shown), strict=True)) if job["maps"] else {}
        windows = _windows(items, pictures, sphere=sphere)
        local = dict(zip(windows, embedder.local(list(windows.values())), strict=True))
        nothing = np.full(embedder.dims[0], np.nan, dtype=np.float32)
        results = []
        for item in items:
            sha, side, picture = item["sha"], item["side_px"], pictures[item["sha"]]
            size = picture.shape[1], picture.shape[0]
            rows = {name: [local.get((sha, side, x, y), nothing) for x, y in p] for name, p in item["points"].items()}
            pooled = {
                name: pool(maps[sha], _points(p), size, side, sphere=sphere) if maps else None
                for name, p in item["points"].items()
            }
            of_sets = {name: np.array(r, dtype=np.float32).reshape(-1, len(nothing)) for name, r in rows.items()}
            results.append({"size": size, "scene": scenes.get(sha), "local": of_sets, "pooled": pooled})
        return results

    return work


def on_picture(points: Points, size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Which points (n, 2) lie on a picture of `size` (width, height); a point that is no number doesn't."""
    return np.asarray(((points >= 0) & (points < size)).all(axis=1))


def feature_maps(model: Model, pictures: list[Image]) -> Matrix:
    """Return the feature maps (n, d, rows, columns) of whole scenes, before pooling.

    Raises
    ------
    ModelError
        If the artefact has no output `map`.
    """
    if "map" not in _outputs(model.manifest):
        raise ModelError(
            f"model {model.manifest.name}",
            "gives no feature map, which predicted attention needs",
            fix="choose an embedder with an output `map`",
        )
    spec = model.manifest.input()
    found = []
    for picture in pictures:
        batch = new_batch(spec, 1)
        fill_input(picture, spec, batch[0])
        found.append(model.infer({spec.name: batch}, ("map",))["map"][0])
    return np.stack(found)


def pool(feature_map: Matrix, points: Points, size: tuple[int, int], side_px: int, *, sphere: bool) -> Matrix | None:
    """Return the mean (d,) of a feature map (d, rows, columns), weighted with the density of points on the picture.

    The density is a sum of Gaussians of half the window's side around the points, taken at the centre of each cell; on
    a panorama distances run on the sphere. None without a point on the picture.
    """
    inside = points[on_picture(points, size)]
    if not len(inside):
        return None
    weights = cell_density(feature_map.shape[1:], inside, size, side_px, sphere=sphere)
    flat = feature_map.reshape(len(feature_map), -1).astype(np.float64)
    return (flat @ weights.ravel()).astype(np.float32)


def cell_density(cells: tuple[int, ...], points: Points, size: tuple[int, int], side_px: int, *, sphere: bool) -> Array:
    """Return the density (rows, columns) of points over the cells of a feature map; it sums to 1."""
    rows, columns = cells
    x, y = (np.arange(columns) + 0.5) * size[0] / columns, (np.arange(rows) + 0.5) * size[1] / rows
    grid_x, grid_y = (g.ravel() for g in np.meshgrid(x, y))
    if sphere:
        distance = panorama.great_circle_deg(
            panorama.to_angles(grid_x, grid_y, *size), panorama.to_angles(points[:, 0], points[:, 1], *size)
        )
        sigma = panorama.fov_of_window(side_px, size[1]) / 2
    else:
        distance = np.hypot(grid_x[:, None] - points[:, 0], grid_y[:, None] - points[:, 1])
        sigma = side_px / 2
    # Relative to the nearest cell, so that a narrow window never underflows to no weight at all.
    exponent = (distance**2 - distance.min(axis=0) ** 2) / (2 * sigma**2)
    density = np.exp(-exponent)
    density = (density / density.sum(axis=0)).mean(axis=1)
    return density.reshape(rows, columns)


Window = tuple[str, int, float, float]  #: hash of the picture, side in pixels, x, y


def _windows(items: Iterable[Mapping[str, Any]], pictures: Mapping[str, Image], *, sphere: bool) -> dict[Window, Image]:
    """Return the windows of the points that lie on their picture, each once."""
    found: dict[Window, Image] = {}
    for item in items:
        picture, side = pictures[item["sha"]], item["side_px"]
        height, width = picture.shape[:2]
        for points in item["points"].values():
            for (x, y), on in zip(points, on_picture(_points(points), (width, height)), strict=True):
                key = item["sha"], side, x, y
                if on and key not in found:
                    found[key] = _window(picture, x, y, side, sphere=sphere)
    return found


def _window(picture: Image, x: float, y: float, side: int, *, sphere: bool) -> Image:
    height, width = picture.shape[:2]
    if sphere:
        azimuth, elevation = panorama.to_angles(x, y, width, height)
        return panorama.view(picture, float(azimuth), float(elevation), panorama.fov_of_window(side, height))
    return cast(Image, crop_window(picture, x, y, side))


def _points(rows: Sequence[Sequence[float]]) -> Points:
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def _outputs(manifest: Manifest) -> set[str]:
    return {spec.name for spec in manifest.outputs}
