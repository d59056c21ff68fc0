"""AffectNet: faces with eight expressions, no gaze and no scene (Mollahosseini et al. 2017).

Both forms in which it is handed out are read: ``<set>/images/*.jpg`` with ``<set>/annotations/<id>_exp.npy``, and a
table (``training.csv``, ``validation.csv``) with the columns subDirectory_filePath and expression. The codes 8 to 10
(none, uncertain, no face) are no emotions and are left out, counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from edge.errors import DataError
from host_tools.datasets.importers.base import Imported, check_options, left_out, link
from host_tools.datasets.layout import DatasetInfo, Sample
from host_tools.tables import read_table

ABOUT = "AffectNet: faces, eight expressions, no gaze"
OPTIONS: dict[str, str] = {}
CODES = ("neutral", "happy", "sad", "surprise", "fear", "disgust", "angry", "contempt")
NO_EMOTION = {8: "none", 9: "uncertain", 10: "no face"}
SPLITS = {"train_set": "train", "val_set": "test", "training": "train", "validation": "test"}


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set. FCC is impossible for it, which it says."""
    check_options(options, OPTIONS, "affectnet")
    counts: Counter[str] = Counter()
    faces = link(source, out, "faces")
    samples = []
    for name, code, split in _rows(source):
        if code in NO_EMOTION:
            counts[f"expression {NO_EMOTION[code]}"] += 1
        elif not (source / name).is_file():
            counts["its picture is missing"] += 1
        elif not 0 <= code < len(CODES):
            counts[f"unknown expression code {code}"] += 1
        else:
            sample_id = name.rsplit(".", 1)[0].replace("/", "-")
            samples.append(
                Sample(sample_id, "", CODES[code], "AffectNet annotators", "face", split, face=f"{faces}/{name}")
            )
    info = DatasetInfo(
        name="AffectNet",
        description="Faces from the web with annotated expressions.",
        licence="by agreement with its authors; not for redistribution",
        source="Mollahosseini, Hasani, Mahoor: AffectNet (2017)",
        projection="face",
        labels="affectnet8",
        lacks=("gaze (FCC is undefined)", "scenes", "participants' identities (intervals are resampled by sample)"),
    )
    return Imported(info, samples, left_out(counts))


def _rows(source: Path) -> Iterator[tuple[str, int, str]]:
    """Give relative picture path, expression code and split."""
    found = False
    for folder, split in SPLITS.items():
        for path in sorted((source / folder / "annotations").glob("*_exp.npy")):
            found = True
            name = f"{folder}/images/{path.name.removesuffix('_exp.npy')}.jpg"
            yield name, int(np.load(path, allow_pickle=False)), split
        table_path = source / f"{folder}.csv"
        if table_path.is_file():
            found = True
            table = read_table(table_path)
            for name, code in zip(table.text("subDirectory_filePath"), table.numbers("expression"), strict=True):
                yield _picture(source, name), int(code), split
    if not found:
        raise DataError(str(source), "holds no AffectNet", expected="train_set/annotations/*_exp.npy, or training.csv")


def _picture(source: Path, name: str) -> str:
    for folder in ("", "Manually_Annotated_Images/", "Manually_Annotated/Manually_Annotated_Images/"):
        if (source / folder / name).is_file():
            return f"{folder}{name}"
    return name
