"""Both benchmarks in one run, and the models that take part in both on one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.config import Section
from edge.errors import ConfigError
from edge.files import plain, write_atomic
from host_tools.engine import Engine
from host_tools.evaluate import tables as evaluation_tables
from host_tools.memo.run import Run
from host_tools.metrics import classification as cl
from host_tools.report.page import Page
from host_tools.report.tables import ReportTable, best_rows

MEMO_KEYS = ("overall", "macro", "SRCC", "PLCC", "RMSE")


class SameModel(Section, frozen=True, kw_only=True):
    """One model under its names in the two benchmarks."""

    name: str
    memo: str
    cawf1: str


class CombinedConfig(Section, frozen=True, kw_only=True):
    """Two configurations, relative to this file, and who is who; models of one name are matched by themselves."""

    memo: str
    cawf1: str
    title: str = "MEMO-Bench and cawF1"
    models: list[SameModel] = []


@dataclass(frozen=True)
class Combined:
    """What both benchmarks found: the MEMO run, and the evaluation's results as in its results.json."""

    config: CombinedConfig
    memo: Run
    evaluation: dict[str, Any]

    def table(self) -> ReportTable:
        """Return a row per model and attention source that takes part in a benchmark; empty where it doesn't."""
        answers = {row["model"]: row for row in memo_rows(self.memo)}
        systems = self.evaluation["systems"]
        pairs = match_models(self.config.models, [n for n in answers if n != "human"], list(systems))
        rows = []
        for name, in_memo, in_cawf1 in pairs:
            said = answers.get(in_memo, {})
            left = [said.get(key) for key in MEMO_KEYS]
            for source, body in systems[in_cawf1]["sources"].items() if in_cawf1 else [("", None)]:
                rows.append([name, *left, source, *_scores(body)])
        columns = [
            "model",
            *(f"MEMO {key}" for key in MEMO_KEYS),
            "attention",
            "accuracy",
            "macro-F1",
            "mean FCC",
            "cawF1",
        ]
        best = best_rows(rows, dict.fromkeys([1, 2, 3, 4, 7, 8], True) | {5: False})
        caption = "Each model in both benchmarks. cawF1 is compared within one attention source only."
        return ReportTable("combined", caption, columns, rows, best)

    def page(self) -> Page:
        """Return the combined page; the two reports lie beside it."""
        page = Page(self.config.title, subtitle="Emotional portraits and context-weighted recognition, one run")
        section = page.section("Models")
        self.table().add_to(section)
        section.text("The whole reports: memo/report.html and cawf1/report.html, with all tables beside them.")
        section = page.section("MEMO-Bench")
        for line in self.memo.archive.integrity["lines"]:
            section.text(line)
        for group in ("generation", "understanding", "anchors"):
            for table in self.memo.tables(group):
                if table.name.startswith(("table", "anchors")):
                    table.add_to(section)
        section = page.section("cawF1")
        for table in (evaluation_tables.headline(self.evaluation), evaluation_tables.published(self.evaluation)):
            table.add_to(section)
        evaluation_tables.checks(self.evaluation).add_to(section)
        return page

    def write(self, folder: Path) -> None:
        """Write report.html, results.json and the table of models."""
        table = self.table()
        document = {"schema": "emogaze.all", "version": 1, "options": {"title": self.config.title}, **table.as_dict()}
        write_atomic(folder / "results.json", json.dumps(plain(document), ensure_ascii=False, indent=1) + "\n")
        table.write(folder / "tables")
        self.page().write(folder / "report.html")


def run_all(config: CombinedConfig, base: Path, out: Path, engine: Engine) -> Combined:
    """Run both benchmarks into ``memo/`` and ``cawf1/`` under `out`.

    Parameters
    ----------
    base : Path
        Folder that the two configurations' paths start from.
    """
    from host_tools.evaluate import config as evaluation_config
    from host_tools.evaluate.output import run as evaluate
    from host_tools.memo.report import write_report
    from host_tools.memo.run import run_benchmark, write_results
    from host_tools.memo.settings import MemoSettings
    from host_tools.settings import read_settings

    memo_file, cawf1_file = base / config.memo, base / config.cawf1
    memo_settings, cawf1_settings = read_settings(memo_file, MemoSettings), evaluation_config.load(cawf1_file)
    memo = run_benchmark(memo_settings, memo_file, engine=engine)
    write_results(memo, out / "memo")
    write_report(memo, out / "memo")
    return Combined(config, memo, evaluate(cawf1_settings, cawf1_file.parent, out / "cawf1", engine))


def match_models(
    same: Sequence[SameModel], in_memo: Sequence[str], in_cawf1: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Return (name, name in MEMO, name in cawF1) of every model; an empty name where it takes no part.

    Raises
    ------
    ConfigError
        If a pairing names a model that isn't there.
    """
    for model in same:
        for name, known in ((model.memo, in_memo), (model.cawf1, in_cawf1)):
            if name not in known:
                raise ConfigError(f"model {model.name}", f"there is no {name!r}", expected="one of " + ", ".join(known))
    pairs = [(m.name, m.memo, m.cawf1) for m in same]
    left_memo = [n for n in in_memo if n not in {m.memo for m in same}]
    left_cawf1 = [n for n in in_cawf1 if n not in {m.cawf1 for m in same}]
    pairs += [(n, n, n if n in left_cawf1 else "") for n in left_memo]
    return pairs + [(n, "", n) for n in left_cawf1 if n not in left_memo]


def memo_rows(run: Run) -> list[Mapping[str, Any]]:
    """Return the rows of MEMO's table 3."""
    tables = {table.name: table for table in run.tables("understanding")}
    return tables["table3_understanding"].as_dict()["rows"] if "table3_understanding" in tables else []


def _scores(body: Mapping[str, Any] | None) -> list[Any]:
    if body is None:
        return [None] * 4
    accuracy, f1 = (body["classification"][m]["value"] for m in ("accuracy", "f1_macro"))
    return [accuracy, f1, body["mean_fcc"]["value"], body["scores"][cl.HEADLINE]["value"]]
