"""Recorded fixations of each sample: found in its gaze by the runtime's own detector, or taken as given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from edge.attention import pupil_change_mm
from edge.config import FixationConfig, GazeConfig
from edge.errors import DataError, EmptyError
from edge.files import sha256_file
from edge.gaze.sources.base import GazeInfo
from edge.records import Fixation, GazeSample, RawGaze
from host_tools.datasets import panorama
from host_tools.datasets.layout import Dataset
from host_tools.datasets.maps import read_picture
from host_tools.engine import Engine, Work, run

T = TypeVar("T")
Array = npt.NDArray[np.float64]
PUPIL_BASELINE_MS = 500
BATCH = 16  #: samples a job; fixed, so that results don't depend on how many jobs run at once


@dataclass(frozen=True, slots=True)
class Looks:
    """The recorded fixations of one sample, in scene pixels. `reason` says why there are none.

    `pupil_change_mm` is the blink-cleaned change of pupil diameter after the first `PUPIL_BASELINE_MS`.
    """

    x_px: Array
    y_px: Array
    start_ms: Array
    duration_ms: Array
    size: tuple[int, int]
    n_samples: int = 0
    n_invalid: int = 0
    hz: float = math.nan
    pupil_change_mm: float = math.nan
    reason: str = ""

    def __len__(self) -> int:
        return len(self.x_px)

    @property
    def on_picture(self) -> npt.NDArray[np.bool_]:
        """Which fixations lie on the picture; all where its size isn't known."""
        width, height = self.size
        if not width:
            return np.ones(len(self), dtype=bool)
        return (self.x_px >= 0) & (self.x_px < width) & (self.y_px >= 0) & (self.y_px < height)


def find(
    dataset: Dataset, *, engine: Engine, fixations: FixationConfig | None = None, hz: float = 0.0
) -> Iterator[Looks]:
    """Give the recorded fixations of each sample, in order.

    Parameters
    ----------
    dataset : Dataset
    engine : Engine
        Where jobs run and results are kept.
    fixations : FixationConfig, optional
        Thresholds; default: the data set's.
    hz : float
        Thin the gaze to this rate first; 0 = as recorded.
    """
    context = {
        "_root": str(dataset.folder),
        "gaze": msgspec.to_builtins(inline_geometry(dataset)),
        "fixations": msgspec.to_builtins(fixations or dataset.info.fixations),
        "projection": dataset.info.projection,
        "hz": hz,
        "pupil_baseline_ms": PUPIL_BASELINE_MS,
    }
    given = dataset.given_fixations
    jobs = ({"samples": part} for part in batches(_describe(dataset, fixations_given=given is not None)))
    results = run(jobs, make_finder, context, engine=engine)
    found = (Looks(**{**one, "size": tuple(one["size"])}) for part in results for one in part)
    for sample, looks in zip(dataset.samples, found, strict=True):
        if given is None:
            yield looks
        elif sample.sample_id in given:
            columns = given[sample.sample_id]
            yield Looks(**columns, size=looks.size)  # type: ignore[arg-type]
        else:
            yield replace(looks, reason="no fixations given")


def batches(items: Iterator[T], size: int = BATCH) -> Iterator[list[T]]:
    """Cut a stream of items into lists of `size`, the last one shorter."""
    while part := list(islice(items, size)):
        yield part


def inline_geometry(dataset: Dataset) -> GazeConfig:
    """Return the gaze settings with a geometry *file* replaced by its text, so that results depend on its content."""
    gaze = dataset.info.gaze
    if not gaze.geometry or "=" in gaze.geometry:
        return gaze
    try:
        return msgspec.structs.replace(gaze, geometry=dataset.path(gaze.geometry).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(str(dataset.path(gaze.geometry)), f"can't be read: {error.strerror}") from error


def make_finder(context: dict[str, Any], device: str) -> Work:
    """Return what turns a batch of samples into their fixations (a worker of `host_tools.engine`)."""
    root = Path(context["_root"])
    gaze = msgspec.convert(context["gaze"], GazeConfig)
    settings = msgspec.convert(context["fixations"], FixationConfig)
    sphere = context["projection"] == "panorama"

    def one(sample: dict[str, Any]) -> dict[str, Any]:
        size = (0, 0)
        if sample["media"]:
            height, width = read_picture(root / sample["media"]).shape[:2]
            size = (width, height)
        if not sample["gaze"]:
            return asdict(_none(size, "no gaze"))
        source = msgspec.structs.replace(gaze, source=str(root / sample["gaze"]))
        try:
            return asdict(_detect(source, settings, size, sphere=sphere, hz=context["hz"]))
        except EmptyError:
            return asdict(_none(size, "no sample in the gaze file"))

    return lambda job: [one(sample) for sample in job["samples"]]


def _detect(gaze: GazeConfig, settings: FixationConfig, size: tuple[int, int], *, sphere: bool, hz: float) -> Looks:
    from edge.gaze.fixations import detect
    from edge.gaze.mapping import open_mapping
    from edge.gaze.sources import open_gaze

    with open_gaze(gaze) as source:
        raw = thin(list(source), hz)
        start_ns = raw[0].t_ns if raw else 0
        if sphere:
            samples = [_on_sphere(r, source.info, size, gaze.source) for r in raw]
        else:
            mapping = open_mapping(source, gaze, size if size[0] else None)
            samples = [mapping(r) for r in raw]
        found = detect(samples, settings, 0.0 if hz else source.info.hz_declared)
    return Looks(
        *_places(found.fixations, size, sphere=sphere),
        start_ms=np.array([(f.start_ns - start_ns) / 1e6 for f in found.fixations]),
        duration_ms=np.array([(f.end_ns - f.start_ns) / 1e6 for f in found.fixations]),
        size=size,
        n_samples=found.n_samples,
        n_invalid=found.n_invalid,
        hz=found.hz_measured,
        pupil_change_mm=pupil_change_mm(samples, start_ns + PUPIL_BASELINE_MS * 1_000_000),
        reason="" if found.fixations else "no fixation found in the gaze",
    )


def thin(raw: Sequence[RawGaze], hz: float) -> list[RawGaze]:
    """Keep every k-th sample, so that the rate comes nearest to `hz`; all where that is not below the rate."""
    if not hz or len(raw) < 3:
        return list(raw)
    period = float(np.median(np.diff([r.t_ns for r in raw])))
    step = max(1, round(1e9 / hz / period)) if period > 0 else 1
    return list(raw[::step])


def _places(fixations: Sequence[Fixation], size: tuple[int, int], *, sphere: bool) -> tuple[Array, Array]:
    if sphere:
        azimuth, elevation = (np.array([getattr(f, name) for f in fixations]) for name in ("x_deg", "y_deg"))
        return panorama.to_pixels(azimuth, elevation, *size)
    return np.array([f.x_px for f in fixations], dtype=np.float64), np.array(
        [f.y_px for f in fixations], dtype=np.float64
    )


def _on_sphere(raw: RawGaze, info: GazeInfo, size: tuple[int, int], source: str) -> GazeSample:
    """Map a sample onto a panorama: a direction as it is, a place in the picture as its angles."""
    x, y = raw.x, raw.y
    if info.frame == "direction" and info.units == "deg":
        azimuth, elevation = x, y
    elif info.frame in ("scene_px", "scene_norm"):
        scale = (1.0, 1.0) if info.units == "norm" else size
        up = y / scale[1] if info.origin == "bottom-left" else 1 - y / scale[1]
        azimuth, elevation = (x / scale[0] - 0.5) * 360, (up - 0.5) * 180
    else:
        raise DataError(
            source,
            f"gaze in {info.frame} ({info.units}) says no place in a panorama",
            expected="direction in deg, scene_px or scene_norm",
        )
    x_px, y_px = panorama.to_pixels(azimuth, elevation, *size)
    return GazeSample(
        raw.seq,
        raw.t_ns,
        float(x_px),
        float(y_px),
        azimuth,
        elevation,
        raw.confidence,
        raw.valid,
        raw.pupil_mm,
        raw.openness,
    )


def _none(size: tuple[int, int], reason: str) -> Looks:
    nothing = np.empty(0)
    return Looks(nothing, nothing, nothing, nothing, size, reason=reason)


def _describe(dataset: Dataset, *, fixations_given: bool) -> Iterator[dict[str, Any]]:
    hashes: dict[str, str] = {}

    def content(name: str) -> str:
        if name and name not in hashes:
            hashes[name] = sha256_file(dataset.path(name))
        return hashes.get(name, "")

    for sample in dataset.samples:
        gaze = "" if fixations_given else sample.gaze
        yield {"media": sample.media, "media_sha": content(sample.media), "gaze": gaze, "gaze_sha": content(gaze)}
