"""SEED-V: EEG and eye features of sixteen people who watched film clips, five emotions (Liu et al. 2021).

``EEG_DE_features/<subject>_123.npz`` and ``Eye_movement_features/<subject>_123.npz`` each hold `data` and `label`: two
pickled dictionaries, trial number (0 to 44, fifteen a session) -> array. A sample is a trial. The stimuli are not
handed out, so that there is nothing to compare what was looked at with: FCC is undefined.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edge.errors import DataError
from host_tools.datasets.importers.base import Imported, check_options, count_findings
from host_tools.datasets.layout import DatasetInfo, Sample

ABOUT = "SEED-V: EEG and eye features, five emotions, no stimulus pictures"
OPTIONS: dict[str, str] = {}
CODES = ("disgust", "fear", "sad", "neutral", "happy")
PEOPLE, TRIALS, PER_SESSION = 16, 45, 15
FOLDERS = ("EEG_DE_features", "Eye_movement_features")


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set: trials with their labels, and what is there of each person."""
    check_options(options, OPTIONS, "seedv")
    found = {folder: sorted((source / folder).glob("*.npz")) for folder in FOLDERS}
    if not any(found.values()):
        raise DataError(str(source), "holds no SEED-V", expected=" and ".join(f"{f}/*.npz" for f in FOLDERS))
    samples: dict[str, Sample] = {}
    findings = [f"no {folder}" for folder, paths in found.items() if not paths]
    for folder, paths in found.items():
        for path in paths:
            person = path.stem.split("_")[0]
            for trial, label in read_labels(path).items():
                sample = Sample(
                    sample_id=f"{person}-{trial:02d}",
                    participant=f"P{int(person):02d}",
                    label=label,
                    label_source="film clip",
                    scene_type=f"session {trial // PER_SESSION + 1}",
                )
                if samples.setdefault(sample.sample_id, sample) != sample:
                    findings.append(f"{sample.sample_id} has another label in {folder}")
    findings += count_findings((s.participant for s in samples.values()), PEOPLE, "people")
    per_person = {s.participant: 0 for s in samples.values()}
    for s in samples.values():
        per_person[s.participant] += 1
    findings += [f"{p}: {n} trials; its description says {TRIALS}" for p, n in per_person.items() if n != TRIALS]
    info = DatasetInfo(
        name="SEED-V",
        description="Sixteen people, three sessions of fifteen film clips each; features of EEG and eye movements.",
        licence="by agreement with its authors; not for redistribution",
        source="Liu et al. (2021), BCMI laboratory",
        labels="seedv5",
        lacks=("stimulus pictures (FCC is undefined)", "raw gaze (there are features of eye movements)", "faces"),
    )
    return Imported(info, list(samples.values()), findings)


def read_labels(path: Path) -> dict[int, str]:
    """Return the label of each trial of a feature file.

    Raises
    ------
    DataError
        If the file holds anything but arrays, an unknown code, or different labels within a trial.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            labels = load_arrays(archive["label"].tobytes())
    except (OSError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
        raise DataError(str(path), f"can't be read as SEED-V features: {error}") from error
    found = {}
    for trial, codes in labels.items():
        different = sorted(set(np.asarray(codes).astype(int).ravel().tolist()))
        if len(different) != 1 or not 0 <= different[0] < len(CODES):
            thing, got = f"{path}, trial {trial}", str(different)
            raise DataError(thing, "has no one label", expected="one code of 0 to 4", got=got)
        found[int(trial)] = CODES[different[0]]
    return found


class _ArraysOnly(pickle.Unpickler):
    """Builds numpy arrays and nothing else: a pickle from elsewhere may ask for any function to be called."""

    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no array")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def load_arrays(content: bytes) -> dict[Any, Any]:
    """Return a pickled dictionary of arrays, refusing everything else. Raises pickle.UnpicklingError."""
    value = _ArraysOnly(io.BytesIO(content)).load()
    if not isinstance(value, dict):
        raise pickle.UnpicklingError(f"it holds a {type(value).__name__}, not a dictionary")
    return value
