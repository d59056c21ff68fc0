"""The tables of a run: built once, and then shown on the page and written as JSON, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from host_tools.memo.ask.profiles import Generator
from host_tools.memo.classes import CLASSES
from host_tools.memo.generation import Generation
from host_tools.memo.shares import Shares
from host_tools.memo.understanding import OUTCOMES, Answers, Understanding
from host_tools.metrics.estimates import Estimate
from host_tools.metrics.statistics import mean_of_defined
from host_tools.report.tables import ReportTable, best_rows


def interval(ci95: Sequence[float]) -> str:
    """Return an interval as it is printed; undefined ones are a dash."""
    return f"{ci95[0]:.3f} to {ci95[1]:.3f}" if np.isfinite(ci95[0]) else "–"


def generators_table(generation: Generation, profiles: dict[str, Generator]) -> ReportTable:
    """Table 1: who was asked, for how much, and what became of it."""
    rows = []
    for counts in generation.counts:
        known = profiles.get(counts["model"], Generator())
        facts = [known.name, known.version, known.access, known.resolution]
        numbers = [counts[k] for k in ("asked", "refused", "rejected", "unexplained", "kept", "judged")]
        rows.append([counts["model"], *facts, *numbers])
    total = [sum(row[i] for row in rows) for i in range(5, 11)]
    columns = ["code", "name", "version", "access", "resolution"]
    columns += ["asked", "refused", "rejected", "unexplained", "kept", "judged"]
    caption = (
        "Generators. Unexplained: asked, without a file and without a reason; judged: kept and classified by raters."
    )
    return ReportTable("table1_generators", caption, columns, [*rows, ["all", "", "", "", "", *total]])


def generation_table(generation: Generation) -> ReportTable:
    """Table 2: G_acc per model and emotion."""
    return _accuracy_table(
        "table2_generation",
        "G_acc: share of pictures in which raters saw the emotion that was asked for. Bold: best of a column.",
        generation.by_model,
    )


def styles_table(generation: Generation) -> ReportTable:
    """G_acc per style of prompt, over all models."""
    caption = "G_acc by style of prompt, all models."
    return _accuracy_table("generation_styles", caption, generation.by_style, of="style")


def _accuracy_table(name: str, caption: str, shares: Shares, *, of: str = "model") -> ReportTable:
    rows = []
    for i, group in enumerate(shares.groups):
        micro, macro = shares.micro(i), shares.macro(i)
        rows.append(
            [
                group,
                *(e.value for e in shares.per_class(i)),
                micro.value,
                interval(micro.ci95),
                macro.value,
                int(shares.counts[i].sum()),
            ]
        )
    columns = [of, *CLASSES, "overall", "95 % interval", "macro", "n"]
    return ReportTable(name, caption, columns, rows, best_rows(rows, dict.fromkeys([*range(1, 8), 9], True)))


def accuracy_intervals_table(name: str, caption: str, shares: Shares) -> ReportTable:
    """One long table of all accuracies with their intervals: group, class, value, from, to, n."""
    rows = []
    for g, group in enumerate(shares.groups):
        per_class = list(zip(CLASSES, shares.per_class(g), shares.counts[g].sum(axis=1), strict=True))
        total = shares.counts[g].sum()
        for of, e, n in [*per_class, ("overall", shares.micro(g), total), ("macro", shares.macro(g), total)]:
            rows.append([group, of, e.value, *e.ci95, int(n)])
    return ReportTable(name, caption, ["model", "class", "accuracy", "from", "to", "n"], rows)


def confusion_table(name: str, caption: str, shares: Shares) -> ReportTable:
    """One long table of all error shares: group, class, outcome, n, share."""
    rows = []
    for g, group in enumerate(shares.groups):
        matrix = shares.matrix(g)
        for k, true in enumerate(CLASSES):
            for o, outcome in enumerate(shares.outcomes):
                rows.append([group, true, outcome, int(shares.counts[g, k, o]), float(matrix[k, o])])
    return ReportTable(name, caption, ["model", "class", "outcome", "n", "share"], rows)


def mos_table(generation: Generation, which: str) -> ReportTable:
    """Mean opinion score per model and prompt class."""
    values = {"quality": generation.quality, "degree": generation.degree}[which]
    rows = [[m, *map(float, values[i]), mean_of_defined(values[i])] for i, m in enumerate(generation.models)]
    rows.append(["all", *(mean_of_defined(values[:, k]) for k in range(len(CLASSES))), mean_of_defined(values)])
    best = best_rows(rows, dict.fromkeys(range(1, 8), True), among=range(len(generation.models)))
    return ReportTable(f"mos_{which}", f"Mean {which} by model and prompt.", ["model", *CLASSES, "mean"], rows, best)


def valence_table(generation: Generation | None, understanding: Understanding | None) -> ReportTable:
    """HAP and NEU against SAD, ANG and WOR, for everything that has a value per class."""
    rows: list[list[Any]] = []
    if generation:
        rows += [[f"MOS of {name}", e.value, interval(e.ci95)] for name, e in generation.contrasts.items()]
        rows += [[f"G_acc of {m}", *_pair(generation.by_model.valence(i))] for i, m in enumerate(generation.models)]
    if understanding:
        shares = understanding.shares
        rows += [[f"U_acc of {m.name}", *_pair(shares.valence(i))] for i, m in enumerate(understanding.models)]
    caption = "Valence contrast: mean over HAP and NEU minus mean over SAD, ANG and WOR; SUR stands apart."
    return ReportTable("valence", caption, ["of", "contrast", "95 % interval"], rows)


def quintile_table(name: str, caption: str, rows_of: dict[str, list[dict[str, float]]]) -> ReportTable:
    """P(correct) by fifths of a MOS."""
    rows = [
        [of, i + 1, f["low"], f["high"], f["n"], f["p_correct"]]
        for of, fifths in rows_of.items()
        for i, f in enumerate(fifths)
    ]
    return ReportTable(name, caption, ["by", "fifth", "from", "to", "n", "P(correct)"], rows)


def pairs_table(name: str, caption: str, shares: Shares, correction: str) -> ReportTable:
    """All models in pairs."""
    pairs = shares.compare(correction)
    rows = [
        [p["first"], p["second"], p["difference"], interval(p["ci95"]), p["p"], p[f"p_{correction}"], p["cohens_h"]]  # type: ignore[arg-type]
        for p in pairs
    ]
    columns = ["first", "second", "difference", "95 % interval", "p", f"p ({correction})", "Cohen's h"]
    return ReportTable(name, caption, columns, rows)


def understanding_table(understanding: Understanding, human: dict[str, Any] | None) -> ReportTable:
    """Table 3: U_acc per emotion and overall, and the degree's agreement with the MOS."""
    rows: list[list[Any]] = []
    for i, (model, degree) in enumerate(zip(understanding.models, understanding.degree, strict=True)):
        micro, macro = understanding.shares.micro(i), understanding.shares.macro(i)
        per_class = [e.value for e in understanding.shares.per_class(i)]
        unparsed = int(understanding.shares.counts[i, :, OUTCOMES.index("unparsed")].sum())
        head = [model.name, model.access, *per_class, micro.value, interval(micro.ci95), macro.value]
        rows.append([*head, degree.srcc, degree.krcc, degree.plcc, degree.rmse, degree.n, unparsed])
    n_models = len(rows)
    if human:
        per_class = [human.get(f"accuracy_{code}", np.nan) for code in CLASSES]
        head = ["human", f"{human['n_raters']} raters", *per_class, human["accuracy"]]
        head += [interval(human.get("accuracy_ci95", (np.nan, np.nan))), np.nan]
        rows.append([*head, *(human.get(k, np.nan) for k in ("srcc", "krcc", "plcc", "rmse")), None, None])
    columns = ["model", "access", *CLASSES, "overall", "95 % interval", "macro"]
    columns += ["SRCC", "KRCC", "PLCC", "RMSE", "n degree", "unparsed"]
    directions = dict.fromkeys([*range(2, 9), 10, 11, 12, 13], True) | {14: False}
    caption = (
        "U_acc against the raters' class, and the degree on the pictures that a model classified rightly. Bold: best "
        "of a column. Human: the mean of each rater against the others."
    )
    return ReportTable("table3_understanding", caption, columns, rows, best_rows(rows, directions, range(n_models)))


def degree_table(understanding: Understanding) -> ReportTable:
    """The degree, raw and after the logistic fit, on own and on common pictures."""
    rows = []
    for model, own, common in zip(understanding.models, understanding.degree, understanding.common, strict=True):
        for pictures, d in (("right by itself", own), ("right by all", common)):
            rows.append(
                [
                    model.name,
                    pictures,
                    d.n,
                    d.srcc,
                    "; ".join(f"{k.upper()} {interval(v)}" for k, v in d.ci95.items()),
                    d.krcc,
                    d.plcc,
                    d.rmse,
                    d.plcc_fitted,
                    d.rmse_fitted,
                    d.reason,
                ]
            )
    columns = ["model", "pictures", "n", "SRCC", "95 % intervals", "KRCC", "PLCC", "RMSE"]
    columns += ["PLCC fitted", "RMSE fitted", "undefined because"]
    caption = "Degree, raw (headline) and after the four-parameter logistic, which hides the sign."
    return ReportTable("degree", caption, columns, rows)


def answers_table(models: Sequence[Answers]) -> ReportTable:
    """How the answers could be read."""
    kinds = ("ok", "other", "several", "refused", "unknown", "empty")
    degrees = ("ok", "out-of-range", "several", "refused", "unknown")
    rows = [
        [
            m.name,
            *(m.statuses.get(k, 0) for k in kinds),
            *(m.degree_statuses.get(k, 0) for k in degrees),
            "; ".join([*(f"{w} ({n})" for w, n in m.named.items()), *m.remarks.lines()]),
        ]
        for m in models
    ]
    columns = ["model", *kinds, *(f"degree {k}" for k in degrees), "named, and remarks"]
    return ReportTable("answers", "How the answers could be read.", columns, rows)


def ledger_table(ledger: Sequence[dict[str, Any]]) -> ReportTable:
    """What each model was asked, over all runs, and what it cost."""
    caption = "Questions over all runs: tokens and cost are empty where the server or the profile doesn't tell them."
    return ReportTable("ledger", caption, list(ledger[0]), [list(row.values()) for row in ledger])


def humans_table(rows: Sequence[dict[str, Any]], name: str = "humans") -> ReportTable:
    """Each rater, or model that was added as one, against the others."""
    wanted = ("rater", "n", "accuracy", *(f"accuracy_{c}" for c in CLASSES), "kappa")
    keys = [k for k in (*wanted, "n_degree", "srcc", "krcc", "plcc", "rmse") if k in rows[0]]
    who = "rater" if name == "humans" else "model that was added as a rater"
    caption = f"Each {who} against the majority and the MOS of the other raters."
    return ReportTable(name, caption, keys, [[row[k] for k in keys] for row in rows])


def generation_tables(generation: Generation, profiles: dict[str, Generator], correction: str) -> list[ReportTable]:
    """All tables of the generation benchmark."""
    seen = "What raters saw by what was asked for."
    pairs = "Generators in pairs: difference of overall G_acc."
    by_both = "G_acc by model and style."
    return [
        generators_table(generation, profiles),
        generation_table(generation),
        styles_table(generation),
        _accuracy_table("generation_models_styles", by_both, generation.by_model_and_style, of="style"),
        mos_table(generation, "quality"),
        mos_table(generation, "degree"),
        quintile_table("generation_quintiles", "P(seen as asked) by fifths of a MOS.", generation.quintiles),
        pairs_table("generation_pairs", pairs, generation.by_model, correction),
        accuracy_intervals_table("generation_intervals", "G_acc with 95 % intervals.", generation.by_model),
        confusion_table("generation_confusion", seen, generation.by_model),
        confusion_table("generation_styles_confusion", f"{seen[:-1]}, by style.", generation.by_model_and_style),
    ]


def understanding_tables(
    understanding: Understanding, human: dict[str, Any] | None, raters: Sequence[dict[str, Any]], correction: str
) -> list[ReportTable]:
    """All tables of the understanding benchmark."""
    fifths = {m.name: q for m, q in zip(understanding.models, understanding.quintiles, strict=True)}
    tables = [
        understanding_table(understanding, human),
        degree_table(understanding),
        answers_table(understanding.models),
        quintile_table("understanding_quintiles", "P(correct) by fifths of the degree's MOS.", fifths),
        pairs_table(
            "understanding_pairs", "Models in pairs: difference of overall U_acc.", understanding.shares, correction
        ),
        accuracy_intervals_table("understanding_intervals", "U_acc with 95 % intervals.", understanding.shares),
        confusion_table("understanding_confusion", "Answers by annotated class.", understanding.shares),
    ]
    return [*tables, humans_table(raters)] if raters else tables


def _pair(estimate: Estimate) -> tuple[float, str]:
    return estimate.value, interval(estimate.ci95)
