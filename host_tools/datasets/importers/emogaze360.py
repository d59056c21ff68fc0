"""EmoGaze360-1K: a thousand equirectangular pictures, gaze at 600 Hz, face video, 14-channel EEG.

The data set is known by its description alone, which names no files. Read is

``images/*.jpg``
    The panoramas.
``labels.csv``
    stimulus, label, split, scene_type; the option of a name says which column it is.
``xdf/<participant>.xdf``, or ``gaze/<participant>/<stimulus>.csv``
    LSL recordings (gaze, EEG, markers), or gaze already cut: t (s), x, y.

What differs from the description (numbers of pictures and of either split, proportions, rates, channels) is listed, not
mended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2

from edge.config import GazeConfig
from edge.errors import DataError
from edge.gaze.sources.xdf import XdfStream, read_streams
from host_tools.datasets.importers import xdf
from host_tools.datasets.importers.base import Imported, check_options, count_findings, link, need, pictures
from host_tools.datasets.layout import DatasetInfo, Sample

ABOUT = "EmoGaze360-1K: panoramas, 600 Hz gaze, EEG and face video"
OPTIONS = {
    "units": "unit of gaze in CSV files: deg (azimuth, elevation; default), norm or px",
    "gaze": "name of the gaze stream in XDF files",
    "markers": "name of the marker stream in XDF files",
    **{name: f"column of labels.csv for {name}" for name in ("stimulus", "label", "scene_type", "split")},
}
PICTURES, SPLITS, GAZE_HZ, EEG_CHANNELS = 1000, {"train": 700, "test": 300}, 600.0, 14
_FRAMES = {"deg": "direction", "norm": "scene_norm", "px": "scene_px"}


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set, and list what differs from its description."""
    check_options(options, OPTIONS, "emogaze360")
    images = need(source / "images", "the panoramas")
    stimuli = xdf.read_stimuli(source, options)
    findings = _findings(images, stimuli)
    if any((source / "xdf").glob("*.xdf")):
        done = _from_xdf(source, out, options)
        samples, gaze = done.samples, done.info.gaze
        findings += [*done.findings, *_streams(sorted((source / "xdf").glob("*.xdf"))[0])]
    else:
        samples = _from_csv(source, out, stimuli)
        units = options.get("units", "deg")
        if units not in _FRAMES:
            raise DataError("--set units", f"can't be {units!r}", expected=", ".join(_FRAMES))
        gaze = GazeConfig(format="csv", time_unit="s", units=units, frame=_FRAMES[units])  # type: ignore[arg-type]
    lacks = [] if any((source / "face").glob("*")) else ["face video"]
    if not any((source / "xdf").glob("*.xdf")):
        lacks.append("EEG")
    info = DatasetInfo(
        name="EmoGaze360-1K",
        description="Equirectangular scenes with gaze, face video and EEG.",
        source=f"imported from {source.resolve().name}",
        projection="panorama",
        labels="ekman6",
        gaze=gaze,
        lacks=tuple(lacks),
    )
    return Imported(info, samples, findings)


def _from_xdf(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    # The XDF importer looks for everything in one folder; here the pieces lie apart.
    staging = out / ".xdf"
    staging.mkdir(parents=True, exist_ok=True)
    for path in (*(source / "xdf").glob("*.xdf"), source / "labels.csv"):
        target = staging / path.name
        target.unlink(missing_ok=True)
        target.symlink_to(path.resolve())
    link(source / "images", staging, "pictures")
    return xdf.convert(staging, out, {k: v for k, v in options.items() if k != "units"})


def _from_csv(source: Path, out: Path, stimuli: Mapping[str, Mapping[str, str]]) -> list[Sample]:
    gaze = need(source / "gaze", "gaze/<participant>/<stimulus>.csv, or xdf/<participant>.xdf")
    media = {p.stem: f"media/{p.relative_to(source / 'images')}" for p in pictures(source / "images")}
    link(source / "images", out, "media")
    link(gaze, out, "gaze")
    samples = []
    for path in sorted(gaze.glob("*/*.csv")):
        if path.stem in stimuli:
            about = stimuli[path.stem]
            samples.append(
                Sample(
                    sample_id=f"{path.stem}-{path.parent.name}",
                    participant=path.parent.name,
                    label=about["label"],
                    label_source="labels.csv",
                    scene_type=about["scene_type"],
                    split=about["split"],
                    media=media.get(path.stem, ""),
                    gaze=f"gaze/{path.parent.name}/{path.name}",
                )
            )
    return samples


def _findings(images: Path, stimuli: Mapping[str, Mapping[str, str]]) -> list[str]:
    files = pictures(images)
    findings = count_findings((p.stem for p in files), PICTURES, "pictures")
    splits = Counter(about["split"] for about in stimuli.values())
    findings += [
        f"{splits[name]} stimuli of split {name}; its description says {n}"
        for name, n in SPLITS.items()
        if splits[name] != n
    ]
    shapes = Counter(_shape(path) for path in files)
    findings += [f"{n} pictures are {w}x{h}, not two to one" for (w, h), n in shapes.items() if w != 2 * h]
    unlabelled = {p.stem for p in files} - set(stimuli)
    if unlabelled:
        findings.append(f"{len(unlabelled)} pictures have no label")
    return findings


def _shape(path: Path) -> tuple[int, int]:
    picture = cv2.imread(str(path), cv2.IMREAD_REDUCED_GRAYSCALE_8)
    if picture is None:
        raise DataError(str(path), "is no picture that OpenCV can decode")
    return picture.shape[1], picture.shape[0]


def _streams(path: Path) -> list[str]:
    """Compare the streams of one recording with the description."""
    found = {s.type.lower(): s for s in read_streams(path)}
    return [*_rate(found.get("gaze")), *_channels(found.get("eeg"))]


def _rate(gaze: XdfStream | None) -> list[str]:
    if gaze is None or abs(gaze.hz - GAZE_HZ) <= 1:
        return []
    return [f"gaze is declared at {gaze.hz:g} Hz; its description says {GAZE_HZ:g}"]


def _channels(eeg: XdfStream | None) -> Sequence[str]:
    if eeg is None:
        return ["no EEG stream"]
    if eeg.n_channels != EEG_CHANNELS:
        return [f"EEG has {eeg.n_channels} channels; its description says {EEG_CHANNELS}"]
    return []
