"""One run of the benchmark: archive in, tables and results out."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from edge import __version__
from edge.files import plain, sha256_file, write_atomic
from host_tools.engine import Engine
from host_tools.memo import results
from host_tools.memo.anchors import anchors_table
from host_tools.memo.archive import Archive, read_archive
from host_tools.memo.ask.collect import collect_answers, profiles_of
from host_tools.memo.ask.profiles import Generator
from host_tools.memo.ask.store import read_ledger
from host_tools.memo.classes import CLASSES
from host_tools.memo.generation import Generation, judge_generation
from host_tools.memo.humans import human_row, rater_rows
from host_tools.memo.ratings import Ratings
from host_tools.memo.settings import MemoSettings
from host_tools.memo.understanding import Understanding, agreement_as_rater, judge_understanding
from host_tools.report.tables import ReportTable
from host_tools.tables import write_csv

STEPS = ("generation", "understanding")


@dataclass(frozen=True)
class Run:
    """Everything that a run found."""

    settings: MemoSettings
    archive: Archive
    generation: Generation | None
    understanding: Understanding | None
    raters: list[dict[str, Any]] = field(default_factory=list)
    model_raters: list[dict[str, Any]] = field(default_factory=list)
    provenance: dict[str, str] = field(default_factory=dict)
    generators: dict[str, Generator] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)

    @property
    def human(self) -> dict[str, Any] | None:
        """The human row, or None where the archive has no votes."""
        return human_row(self.raters) if self.raters else None

    def tables(self, group: str) -> list[ReportTable]:
        """Return the tables of a group: generation, understanding, valence or anchors."""
        return self._tables[group]

    @cached_property
    def _tables(self) -> dict[str, list[ReportTable]]:
        correction = self.settings.statistics.correction
        tables: dict[str, list[ReportTable]] = {"generation": [], "understanding": []}
        if self.generation:
            tables["generation"] = results.generation_tables(self.generation, self.generators, correction)
        if self.understanding:
            tables["understanding"] = results.understanding_tables(
                self.understanding, self.human, self.raters, correction
            )
        tables["valence"] = [results.valence_table(self.generation, self.understanding)]
        tables["anchors"] = [anchors_table(self.generation, self.understanding)]
        return tables

    def as_dict(self) -> dict[str, Any]:
        """Return the run as it goes into results.json."""
        body: dict[str, Any] = {
            "integrity": self.archive.integrity,
            "raters": self.archive.truth.summary,
            "human": self.human,
            "model_raters": self.model_raters,
            "tables": {t.name: t.as_dict() for group in self._tables.values() for t in group},
        }
        if self.generation:
            contrasts = {k: {"value": e.value, "ci95": e.ci95} for k, e in self.generation.contrasts.items()}
            body["generation"] = {"quality_accuracy_srcc": self.generation.quality_accuracy, "valence": contrasts}
            body["generation"]["n_without_class"] = self.generation.n_without_class
        if self.understanding:
            pairs = zip(self.understanding.models, self.understanding.degree, self.understanding.common, strict=True)
            body["understanding"] = {
                "n_common": self.understanding.n_common,
                "degree": {m.name: {"own": own.as_dict(), "common": common.as_dict()} for m, own, common in pairs},
                "as_raters": [agreement_as_rater(m, self.archive.truth) for m in self.understanding.models],
            }
        return body


def run_benchmark(
    settings: MemoSettings,
    config: Path,
    *,
    steps: Sequence[str] = STEPS,
    may_ask: bool = True,
    engine: Engine = Engine(),  # noqa: B008 (frozen)
) -> Run:
    """Read the archive, ask the models, and judge.

    Parameters
    ----------
    config : Path
        The configuration file; relative paths in it start at its folder.
    may_ask : bool
        False: judge the answers that are there, ask nobody.
    engine : Engine
        Where the zoo's classifiers run.
    """
    profiles = profiles_of(settings.understanding, config.parent)
    archive = read_archive(settings.archive, config.parent, settings.scores)
    generation = None
    if "generation" in steps:
        generation = judge_generation(archive, settings.statistics, rejected=settings.generation.rejected)
    understanding = None
    raters: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    ledger: list[dict[str, Any]] = []
    if "understanding" in steps:
        asked = settings.understanding
        models = collect_answers(asked, archive, config.parent, may_ask=may_ask, engine=engine)
        ledger = read_ledger(config.parent / asked.store)
        if models:
            understanding = judge_understanding(models, archive.truth, settings.statistics)
        raters, added = _rater_rows(archive.truth.ratings, settings)
    provenance = _provenance(config, settings)
    return Run(settings, archive, generation, understanding, raters, added, provenance, profiles.generators, ledger)


def write_results(run: Run, folder: Path) -> None:
    """Write results.json, the tables as CSV and LaTeX, and the pictures' classes and scores."""
    text = json.dumps(document(run), ensure_ascii=False, allow_nan=False, indent=1)
    write_atomic(folder / "results.json", text + "\n")
    for group in ("generation", "understanding", "valence", "anchors"):
        for table in run.tables(group):
            table.write(folder / "tables")
    if run.ledger:
        results.ledger_table(run.ledger).write(folder / "tables")
    truth = run.archive.truth
    rows = [
        {
            "image": image,
            "category": CLASSES[c] if c >= 0 else "",
            "tie": bool(t),
            "mos_degree": d,
            "mos_quality": q,
        }
        for image, c, t, d, q in zip(truth.images, truth.category, truth.tie, truth.degree, truth.quality, strict=True)
    ]
    write_csv(folder / "tables" / "pictures.csv", rows, ["image", "category", "tie", "mos_degree", "mos_quality"])


def document(run: Run) -> dict[str, Any]:
    """Return a run as one JSON document: schema, version, options, then what was found."""
    options = {"settings": msgspec.to_builtins(run.settings), "provenance": run.provenance}
    whole: dict[str, Any] = plain({"schema": "emogaze.memo", "version": 1, "options": options, **run.as_dict()})
    return whole


def _rater_rows(ratings: Ratings | None, settings: MemoSettings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of the people, and those of the models that were added as raters."""
    if ratings is None or ratings.votes is None:
        return [], []
    options = settings.scores.options
    models = [r for r in ratings.raters if r in settings.scores.model_raters]
    people = ratings.without(models)
    raters = rater_rows(people, options) if len(people.raters) > 1 else []
    return raters, rater_rows(ratings, options, raters=models, truth=people)


def _provenance(config: Path, settings: MemoSettings) -> dict[str, str]:
    root = config.parent / settings.archive.root
    files = {name: root / name for name in (settings.archive.emotion, settings.archive.quality) if name}
    return {
        "command": " ".join(["python -m host_tools", *sys.argv[1:]]),
        "version": __version__,
        "Python": platform.python_version(),
        f"sha256 of {config.name}": sha256_file(config),
        **{f"sha256 of {name}": sha256_file(path) for name, path in files.items()},
    }
