"""An evaluation from settings to scored samples: the order of its steps, and what each needs of the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from edge.commands.base import progress
from edge.config import ModelsConfig, ScoreConfig
from edge.errors import DataError
from edge.features import window_px
from edge.files import sha256_file
from edge.manifest import load_manifest, models_dir
from host_tools.datasets.layout import Dataset, load
from host_tools.engine import Engine
from host_tools.evaluate import attended
from host_tools.evaluate.attention import (
    Pairs,
    Rules,
    add_observed,
    add_predicted,
    build_environment,
    load_environment,
)
from host_tools.evaluate.config import EvaluateConfig, SystemConfig
from host_tools.evaluate.embed import HUMAN, Embedded, Points, Request, embed
from host_tools.evaluate.faces import classify_faces
from host_tools.evaluate.looks import Looks, batches, find
from host_tools.evaluate.probe import probe
from host_tools.evaluate.systems import Answers, map_path, predicted_points, read_answers
from host_tools.samples import SampleTable, read_samples
from host_tools.tables import write_csv

OBSERVED, RETRIEVED = "observed", "retrieved"


@dataclass(frozen=True)
class SystemRun:
    """A system's answers and attention: `points` and `coarse` maps are None where it has none."""

    config: SystemConfig
    answers: Answers
    points: list[Points] | None = None
    coarse: list[npt.NDArray[np.float32]] | None = None


@dataclass(frozen=True)
class Scored:
    """One system's samples under one attention source."""

    system: str
    source: str
    table: SampleTable
    pairs: Pairs

    @property
    def name(self) -> str:
        return f"{self.system} ({self.source})"


@dataclass
class Evaluation:
    """The state of an evaluation. Each property is worked out once, from those above it."""

    config: EvaluateConfig
    base: Path
    out: Path
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        self.engine = replace(self.engine, done_dir=self.out / "done")

    @cached_property
    def everything(self) -> Dataset:
        return load(self.base / self.config.dataset, labels=self.config.labels)

    @cached_property
    def dataset(self) -> Dataset:
        return self.everything.only(self.config.split)

    @property
    def sphere(self) -> bool:
        return self.dataset.info.projection == "panorama"

    @property
    def reach(self) -> float:
        """How far a region reaches: pixels, or degrees on a panorama."""
        return self.config.cluster_deg if self.sphere else self.config.cluster_px

    @cached_property
    def looks(self) -> list[Looks]:
        found = find(self.dataset, engine=self.engine)
        return list(progress(found, "fixations", len(self.dataset)))

    @cached_property
    def media_sha(self) -> dict[str, str]:
        names = {sample.media for sample in self.everything.samples} - {""}
        return {name: sha256_file(self.everything.path(name)) for name in progress(sorted(names), "pictures")}

    @cached_property
    def runs(self) -> list[SystemRun]:
        return [self._run(system) for system in self.config.systems]

    @cached_property
    def pairs(self) -> dict[tuple[str, str], Pairs]:
        """(system, source) -> pairs; every system is also scored by what people look at."""
        return self.compare(self.looks, self.config.score, self.config.models)

    @cached_property
    def scored(self) -> list[Scored]:
        return [self._score(run, source) for run in self.runs for source in self._sources(run)]

    @cached_property
    def saliency(self) -> dict[str, list[dict[str, float]]]:
        """System -> saliency scores of each sample, for the systems that attend to something."""
        return {
            run.config.name: list(progress(self._attended(run), f"saliency of {run.config.name}", len(self.dataset)))
            for run in self.runs
            if run.points is not None
        }

    def _attended(self, run: SystemRun) -> Iterator[dict[str, float]]:
        return attended.scores(self._attention(run), self.looks, sigma_px=self.config.sigma_px, engine=self.engine)

    def emotions(self, system: str) -> Sequence[str]:
        """Return the emotions that select a system's weights."""
        if self.config.weights_by == "predicted":
            return next(run.answers.pred for run in self.runs if run.config.name == system)
        return [sample.label for sample in self.dataset.samples]

    def compare(self, looks: Sequence[Looks], score: ScoreConfig, models: ModelsConfig) -> dict[tuple[str, str], Pairs]:
        """Return the pairs of every system and source with other fixations, settings or another artefact."""
        usable = [i for i, (s, k) in enumerate(zip(self.dataset.samples, looks, strict=True)) if s.media and len(k)]
        manifest = load_manifest(models_dir(models.dir) / models.embedder)
        code = {name: k for k, name in enumerate(self.media_sha)}
        media = [code[self.dataset.samples[i].media] for i in usable]
        attending = {run.config.name: run.points for run in self.runs if run.points is not None}

        def embedded() -> Iterator[Embedded]:
            requests = (self._request(i, looks[i], attending, score.window) for i in usable)
            return embed(
                requests, self.dataset.folder, models, projection=self.dataset.info.projection, engine=self.engine
            )

        if not usable:
            return {(r.config.name, s): self._no_pairs(looks) for r in self.runs for s in self._sources(r)}
        total = sum(len(looks[i]) for i in usable)
        vectors = progress(embedded(), "embeddings", len(usable))
        environment = build_environment(vectors, media, total, manifest, score.embedding)
        around = environment
        if self.config.environment.cache:
            around = load_environment(self.base / self.config.environment.cache, manifest, score.embedding)
        found: dict[tuple[str, str], Pairs] = {
            (run.config.name, run.config.attention_source): Pairs() for run in self.runs if run.points is not None
        }
        observed = Pairs()
        vectors = progress(embedded(), "context", len(usable))
        for samples, of_media in zip(batches(iter(usable)), batches(iter(media)), strict=True):
            block = list(islice(vectors, len(samples)))
            add_observed(observed, samples, block, of_media, around)
            for i, one in zip(samples, block, strict=True):
                sets = self._sets(i, looks[i], attending)
                for (name, _), pairs in found.items():
                    add_predicted(pairs, i, one, sets, environment, Rules(name, self.config.match, self.sphere))
        found |= {(run.config.name, OBSERVED): observed for run in self.runs}
        nothing = self._no_pairs(looks).reasons
        return {key: replace(pairs, reasons={**nothing, **pairs.reasons}) for key, pairs in found.items()}

    def _request(self, i: int, looks: Looks, attending: Mapping[str, list[Points]], window: str) -> Request:
        media = self.dataset.samples[i].media
        sets = self._sets(i, looks, attending)
        return Request(media, self.media_sha[media], sets, window_px(*looks.size, window))

    def _sets(self, i: int, looks: Looks, attending: Mapping[str, list[Points]]) -> dict[str, Points]:
        return {HUMAN: places(looks), **{name: points[i] for name, points in attending.items()}}

    def _no_pairs(self, looks: Sequence[Looks]) -> Pairs:
        pairs = Pairs()
        for sample, look in zip(self.dataset.samples, looks, strict=True):
            if not sample.media or not len(look):
                pairs.lack("no picture" if not sample.media else look.reason)
        return pairs

    def _run(self, system: SystemConfig) -> SystemRun:
        counts = [int(k.on_picture.sum()) for k in self.looks]
        if system.kind == "probe":
            found = probe(
                system,
                self.everything,
                self.dataset,
                self.config.models,
                counts,
                media_sha=self.media_sha,
                engine=self.engine,
            )
            return SystemRun(system, found.answers, found.points, found.maps)
        if system.kind == "emotion":
            artefact = system.artefact or self.config.models.emotion
            return SystemRun(system, classify_faces(self.dataset, self.config.models, artefact, engine=self.engine))
        answers = read_answers(self.base / system.predictions, self.dataset)
        if not system.fixations and not system.maps:
            return SystemRun(system, answers)
        return SystemRun(system, answers, list(predicted_points(system, self.base, self.dataset, counts)))

    def _sources(self, run: SystemRun) -> list[str]:
        return list(dict.fromkeys([run.config.attention_source, OBSERVED]))

    def _attention(self, run: SystemRun) -> Iterator[attended.Attention]:
        for i, sample in enumerate(self.dataset.samples):
            if run.coarse is not None:
                yield attended.Attention(coarse=run.coarse[i])
            elif run.config.maps:
                yield attended.Attention(map_file=map_path(self.base / run.config.maps, sample.sample_id))
            else:
                yield attended.Attention(points=run.points[i] if run.points is not None else None)

    def _score(self, run: SystemRun, source: str) -> Scored:
        if source == RETRIEVED:
            pairs, fcc = Pairs(), given_fcc(run.answers, run.config.name)
        else:
            pairs = self.pairs[run.config.name, source]
            fcc = pairs.fcc(len(self.dataset), self.emotions(run.config.name), self.config.score.weights)
        path = self.out / "samples" / f"{run.config.name}.{source}.csv"
        write_samples(path, self.dataset, run.answers, fcc)
        table = read_samples(path, labels=",".join(self.dataset.label_set.labels))
        return Scored(run.config.name, source, replace(table, notes=(*run.answers.notes, *table.notes)), pairs)


def places(looks: Looks) -> Points:
    """Return the recorded fixations (n, 2) of a sample."""
    return np.stack([looks.x_px, looks.y_px], axis=1)


def given_fcc(answers: Answers, system: str) -> npt.NDArray[np.float64]:
    """Return the FCC that a system's own table gives. Raises DataError if it gives none."""
    if "fcc" not in answers.extra:
        raise DataError(f"system {system!r}", "its predictions have no column 'fcc'", fix='drop fcc = "given"')
    return answers.extra["fcc"]


def write_samples(path: Path, dataset: Dataset, answers: Answers, fcc: npt.NDArray[np.float64]) -> None:
    """Write a system's table of samples, as `python -m host_tools cawf1` reads it."""
    labels = dataset.label_set.labels
    rows = []
    for i, sample in enumerate(dataset.samples):
        row = {
            "sample_id": sample.sample_id,
            "participant": sample.participant,
            "true": sample.label,
            "pred": answers.pred[i],
            "fcc": fcc[i],
            "scene_type": sample.scene_type,
        }
        if answers.p is not None:
            row |= {f"p_{label}": answers.p[i, k] for k, label in enumerate(labels)}
        rows.append(row | {name: values[i] for name, values in answers.extra.items() if name != "fcc"})
    write_csv(path, rows, list(rows[0]))


def with_score(config: EvaluateConfig, **changes: str) -> ScoreConfig:
    """Return the score settings with some changed."""
    return msgspec.structs.replace(config.score, **changes)
