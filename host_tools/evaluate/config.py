"""The settings of an evaluation: a TOML file, every key known and in bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edge.config import EnvironmentConfig, ModelsConfig, ScoreConfig, Section
from edge.errors import ConfigError
from host_tools.settings import read_settings

AttentionSource = Literal["predicted", "gradcam", "observed", "retrieved"]
Match = Literal["optimal", "nearest", "order"]


class SystemConfig(Section, frozen=True):
    """One system under test.

    `csv` reads `predictions`; with `fixations` or `maps` the system predicts attention, with `fcc = "given"` the table
    has a column `fcc` (`retrieved`, as the runtime scores live), else FCC is that of the human fixations (`observed`).
    `probe` is a linear probe on the scene embedding, fitted on `train_split`; it attends by its class activation maps.
    `emotion` runs a classifier artefact on the data set's face pictures.
    """

    name: str
    kind: Literal["csv", "probe", "emotion"] = "csv"
    predictions: str = ""
    fixations: str = ""
    maps: str = ""
    fcc: Literal["", "given"] = ""
    artefact: str = ""
    train_split: str = "train"

    @property
    def attention_source(self) -> AttentionSource:
        """Where the system's attention comes from; systems are compared only within one source."""
        if self.kind == "probe":
            return "gradcam"
        if self.fcc:
            return "retrieved"
        return "predicted" if self.fixations or self.maps else "observed"


class SweepConfig(Section, frozen=True):
    """Values to try, one setting at a time, the others as they are."""

    window: tuple[str, ...] = ()
    embedding: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    embedder: tuple[str, ...] = ()
    hz: tuple[float, ...] = ()
    gamma: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0)


class PatternConfig(Section, frozen=True):
    """What annotators call the regions that emotion patterns speak of."""

    threat: tuple[str, ...] = ("threat",)
    exit: tuple[str, ...] = ("exit", "door")
    face: tuple[str, ...] = ("face",)
    repellent: tuple[str, ...] = ("repellent",)


class EvaluateConfig(Section, frozen=True):
    """One evaluation; paths are relative to its file. `weights_by = "predicted"` leaks a prediction into its weight."""

    dataset: str
    systems: tuple[SystemConfig, ...]
    split: str = ""
    labels: str = ""
    baseline: str = ""
    match: Match = "optimal"
    weights_by: Literal["true", "predicted"] = "true"
    correction: Literal["holm", "benjamini-hochberg", "bonferroni"] = "holm"
    resamples: Annotated[int, msgspec.Meta(ge=100, le=100_000)] = 1000
    seed: int = 0
    sigma_px: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    cluster_px: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    cluster_deg: Annotated[float, msgspec.Meta(gt=0)] = 3.0
    temporal_window_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    score: ScoreConfig = ScoreConfig()
    models: ModelsConfig = ModelsConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    sweeps: SweepConfig = SweepConfig()
    patterns: PatternConfig = PatternConfig()


def load(path: Path) -> EvaluateConfig:
    """Read and check the settings.

    Raises
    ------
    ConfigError
        An unknown key, a value out of bounds, no system, two of one name, or a baseline that is none of them.
    """
    config = read_settings(path, EvaluateConfig)
    names = [system.name for system in config.systems]
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"{path} systems", "need different names", expected="at least one", got=", ".join(names))
    if config.baseline and config.baseline not in names:
        raise ConfigError(f"{path} baseline", f"there is no system {config.baseline!r}", expected=", ".join(names))
    for system in config.systems:
        _check(system, path)
    return config


def _check(system: SystemConfig, path: Path) -> None:
    thing = f"{path} system {system.name!r}"
    if not system.name or "/" in system.name:
        raise ConfigError(thing, "has a name that can't be a file's")
    if system.kind == "csv" and not system.predictions:
        raise ConfigError(thing, "has no predictions", fix='add predictions = "FILE.csv"')
    if sum(map(bool, (system.fixations, system.maps, system.fcc))) > 1:
        raise ConfigError(thing, "gives more than one of fixations, maps and fcc", fix="give one of them")
    if system.kind != "csv" and (system.predictions or system.fixations or system.maps):
        raise ConfigError(thing, f"is of kind {system.kind} and takes no files")
