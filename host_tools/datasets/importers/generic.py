"""A folder of pictures with labels, and gaze beside them.

Labels come from a table (``labels.csv``: file, label, optional participant, scene_type, split, sample_id), or else from
the names of the folders that the pictures lie in. Gaze is ``gaze/<sample id>.csv``, or ``gaze/<picture's name>.csv``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from edge.config import GazeConfig
from host_tools.datasets.importers.base import Imported, check_options, column, left_out, link, need, pictures
from host_tools.datasets.layout import DatasetInfo, Sample, table_path
from host_tools.tables import read_table

ABOUT = "pictures, gaze and labels in a folder"
OPTIONS = {
    "pictures": "folder of the pictures (default: pictures)",
    "gaze": "folder of the gaze files (default: gaze)",
    "labels": "label set",
    "projection": "picture, panorama or face",
    "units": "unit of gaze: px, norm or deg",
    "frame": "frame of gaze: scene_px, scene_norm, screen_px, screen_norm, direction",
    "time_unit": "unit of gaze times: s, ms, us, ns",
    "t": "gaze's column of times",
    "geometry": "TOML that declares the screen or camera",
    **{name: f"column of labels.csv for {name}" for name in ("file", "label", "participant", "scene_type", "split")},
}


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set; a picture without a label or a label without its picture is counted."""
    check_options(options, OPTIONS, "generic")
    folder = need(source / options.get("pictures", "pictures"), "the folder of pictures (--set pictures=NAME)")
    gaze = source / options.get("gaze", "gaze")
    media = link(folder, out, "media")
    if gaze.is_dir():
        link(gaze, out, "gaze")
    found = {str(p.relative_to(folder)): p for p in pictures(folder)}
    rows, findings = _labelled(source, found, options)
    samples = []
    for row in rows:
        stems = (row["id"], Path(row["file"]).stem)
        name = next((f"gaze/{stem}.csv" for stem in stems if (gaze / f"{stem}.csv").is_file()), "")
        samples.append(
            Sample(
                sample_id=row["id"],
                participant=row["participant"],
                label=row["label"],
                label_source=row["source"],
                scene_type=row["scene_type"],
                split=row["split"],
                media=f"{media}/{row['file']}",
                gaze=name,
            )
        )
    without = sum(not s.gaze for s in samples)
    if without:
        findings.append(f"{without} of {len(samples)} samples have no gaze: their FCC is undefined")
    lacks = ("gaze",) if without == len(samples) else ()
    return Imported(_info(source, options, lacks), samples, findings)


def _labelled(
    source: Path, found: Mapping[str, Path], options: Mapping[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    path = table_path(source, "labels")
    if path is None:
        return _by_folder(found)
    table = read_table(path)
    files, labels = column(table, "file", options), column(table, "label", options)
    optional = ("participant", "scene_type", "split", "sample_id")
    rest = {name: column(table, name, options, required=False) for name in optional}
    rows = []
    for i, file in enumerate(files):
        if file in found:
            row = {name: values[i] for name, values in rest.items()}
            stem = _stem(file)
            name = row.pop("sample_id") or (f"{stem}-{row['participant']}" if row["participant"] else stem)
            rows.append({**row, "file": file, "label": labels[i], "id": name, "source": path.name})
    counts = Counter({"labels without their picture": len(files) - len(rows)})
    counts["pictures without a label"] = len(set(found) - set(files))
    return rows, left_out(counts)


def _by_folder(found: Mapping[str, Path]) -> tuple[list[dict[str, str]], list[str]]:
    nothing = {"participant": "", "scene_type": "", "split": ""}
    labelled = {name: Path(name).parts[0] for name in found if len(Path(name).parts) > 1}
    rows = [
        {**nothing, "file": name, "id": _stem(name), "label": label, "source": "folder"}
        for name, label in labelled.items()
    ]
    return rows, left_out(Counter({"pictures in no labelled folder": len(found) - len(rows)}))


def _stem(file: str) -> str:
    return file.rsplit(".", 1)[0].replace("/", "-")


def _info(source: Path, options: Mapping[str, str], lacks: tuple[str, ...]) -> DatasetInfo:
    given = {k: options[k] for k in ("units", "frame", "time_unit", "geometry") if k in options}
    gaze = GazeConfig(format="csv", columns={"t": options["t"]} if "t" in options else {}, **given)  # type: ignore[arg-type]
    return DatasetInfo(
        name=source.resolve().name,
        source=f"imported from {source.name}",
        projection=options.get("projection", "picture"),  # type: ignore[arg-type]
        labels=options.get("labels", ""),
        gaze=gaze,
        lacks=lacks,
    )
