"""XDF sessions (LabRecorder): a gaze stream is cut at the markers that name stimuli.

`SOURCE` is a folder of ``*.xdf``, one per participant. ``labels.csv`` in it (stimulus, label, optional scene_type,
split) says what the stimuli are; a marker that holds a stimulus's name, whole or as one of its words, is its onset, and
the next marker its end. Clock offsets and resets are applied as the runtime's own XDF source does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from edge.config import GazeConfig
from edge.errors import DataError
from edge.gaze.description import channels_of, choose_channels, declared_by
from edge.gaze.sources.xdf import XdfStream, pick, read_streams
from host_tools.datasets.importers.base import Imported, check_options, column, left_out, link, need, pictures
from host_tools.datasets.layout import DatasetInfo, Sample
from host_tools.tables import read_table, write_csv

ABOUT = "XDF sessions: gaze cut at the markers that name stimuli"
OPTIONS = {
    "gaze": "name of the gaze stream (default: the one of type Gaze)",
    "markers": "name of the marker stream (default: the one text stream)",
    "pictures": "folder of the stimuli's pictures (default: pictures)",
    "labels": "label set",
    "projection": "picture, panorama or face",
    "units": "unit of gaze, where the stream declares none",
    "frame": "frame of gaze, where the stream declares none",
    "geometry": "TOML that declares the screen or camera",
    **{name: f"column of labels.csv for {name}" for name in ("stimulus", "label", "scene_type", "split")},
}


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set: one gaze file per participant and stimulus."""
    check_options(options, OPTIONS, "xdf")
    files = sorted(source.glob("*.xdf")) + sorted(source.glob("*.xdfz"))
    if not files:
        raise DataError(str(source), "holds no XDF file", expected="one *.xdf per participant")
    stimuli = read_stimuli(source, options)
    folder = source / options.get("pictures", "pictures")
    media = {p.stem: f"media/{p.relative_to(folder)}" for p in pictures(folder)} if folder.is_dir() else {}
    if media:
        link(folder, out, "media")
    samples: list[Sample] = []
    counts: Counter[str] = Counter()
    declared: GazeConfig | None = None
    for file in files:
        streams = read_streams(file)
        gaze = pick(str(file), streams, options.get("gaze", ""))
        declared = declared or _declared(gaze, options)
        cut = _cut(gaze, _onsets(file, streams, options, stimuli, counts))
        for k, (stimulus, t_s, rows) in enumerate(cut):
            name = f"{file.stem}-{k:04d}"
            if not rows:
                counts["stimuli without a gaze sample"] += 1
            else:
                write_csv(out / "gaze" / f"{name}.csv", rows, list(rows[0]))
            about = stimuli[stimulus]
            samples.append(
                Sample(
                    sample_id=name,
                    participant=file.stem,
                    label=about["label"],
                    label_source="labels.csv",
                    scene_type=about["scene_type"],
                    split=about["split"],
                    media=media.get(stimulus, ""),
                    gaze=f"gaze/{name}.csv" if rows else "",
                    t_s=f"{t_s:.6f}",
                )
            )
    without = sum(not s.media for s in samples)
    info = DatasetInfo(
        name=source.resolve().name,
        source=f"imported from {len(files)} XDF files",
        projection=options.get("projection", "picture"),  # type: ignore[arg-type]
        labels=options.get("labels", ""),
        gaze=declared or GazeConfig(),
        lacks=("stimulus pictures (FCC is undefined)",) if without == len(samples) else (),
    )
    findings = left_out(counts) + ([f"{without} samples have no picture"] if 0 < without < len(samples) else [])
    return Imported(info, samples, findings)


def read_stimuli(source: Path, options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return stimulus (without its suffix) -> label, scene_type and split."""
    table = read_table(need(source / "labels.csv", "a table of the stimuli: stimulus, label"))
    names = [re.sub(r"\.\w{3,4}$", "", name) for name in column(table, "stimulus", options)]
    label = column(table, "label", options)
    rest = {name: column(table, name, options, required=False) for name in ("scene_type", "split")}
    return {
        name: {"label": label[i], **{key: values[i] for key, values in rest.items()}} for i, name in enumerate(names)
    }


def stimulus_of(marker: str, stimuli: Mapping[str, object]) -> str:
    """Return the stimulus that a marker names, or "": the whole text, or one of its words, suffix or not."""
    for word in (marker.strip(), *re.split(r"[\s,;:=|\"'{}]+", marker)):
        name = re.sub(r"\.\w{3,4}$", "", Path(word).name) if word else ""
        if name in stimuli:
            return name
    return ""


def _onsets(
    file: Path,
    streams: Sequence[XdfStream],
    options: Mapping[str, str],
    stimuli: Mapping[str, object],
    counts: Counter[str],
) -> list[tuple[str, int, int]]:
    """Return (stimulus, start, end) in ns, by the markers of a file."""
    wanted = options.get("markers", "")
    found = [s for s in streams if s.is_text and wanted in ("", s.name)]
    if len(found) != 1:
        got = ", ".join(f"{s.name} ({s.type})" for s in streams)
        raise DataError(str(file), f"has {len(found)} such marker streams", got=got, fix="--set markers=NAME")
    texts = [str(row[0]) for row in found[0].samples]
    times = found[0].t_ns.tolist()
    onsets = []
    for k, (text, start) in enumerate(zip(texts, times, strict=True)):
        stimulus = stimulus_of(text, stimuli)
        if stimulus:
            end = times[k + 1] if k + 1 < len(times) else np.iinfo(np.int64).max
            onsets.append((stimulus, start, end))
        else:
            counts["markers that name no stimulus"] += 1
    return onsets


def _cut(
    gaze: XdfStream, onsets: Sequence[tuple[str, int, int]]
) -> Iterator[tuple[str, float, list[dict[str, float]]]]:
    """Give each stimulus with its time in the session (s) and its gaze rows, times in seconds from its onset."""
    chosen = choose_channels(gaze.name, channels_of(gaze.desc), gaze.n_channels, {})
    for stimulus, start, end in onsets:
        inside = np.flatnonzero((gaze.t_ns >= start) & (gaze.t_ns < end))
        rows = [
            {
                "t": round((int(gaze.t_ns[i]) - start) / 1e9, 9),
                **{meaning: float(gaze.samples[i, c]) for meaning, c in chosen.items()},
            }
            for i in inside
        ]
        yield stimulus, (start - int(gaze.t_ns[0])) / 1e9, rows


def _declared(gaze: XdfStream, options: Mapping[str, str]) -> GazeConfig:
    channels = channels_of(gaze.desc)
    said = declared_by(gaze.desc, channels, choose_channels(gaze.name, channels, gaze.n_channels, {}), gaze.hz)
    return GazeConfig(
        format="csv",
        time_unit="s",
        units=options.get("units", said.units),  # type: ignore[arg-type]
        frame=options.get("frame", said.frame),  # type: ignore[arg-type]
        origin="bottom-left" if said.origin == "bottom-left" else "top-left",
        geometry=options.get("geometry", ""),
    )
