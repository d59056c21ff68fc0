"""The tables of an evaluation, from its plain results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from host_tools.metrics import classification as cl
from host_tools.report.tables import ReportTable, best_rows

Results = dict[str, Any]
PUBLISHED_MARK = "published"


def all_tables(results: Results) -> list[ReportTable]:
    """Return every table that has a row."""
    tables = [
        headline(results),
        readings(results),
        published(results),
        per_emotion(results),
        per_scene_type(results),
        saliency(results),
        comparison("comparisons", "Systems in pairs, on the same resamples.", results["comparisons"]),
        comparison("leads", "Lead of each system over the baseline.", results["leads"]),
        against_bases(results),
        ablations(results),
        *sweeps(results),
        gamma(results),
        gamma_learned(results),
        regions(results),
        transitions(results),
        dynamics(results),
        patterns(results),
        over_time(results),
        same_label_two_scenes(results),
        checks(results),
    ]
    return [table for table in tables if table.rows]


def headline(results: Results) -> ReportTable:
    """Each system and attention source with accuracy, F1, AUC-Judd, NSS, mean FCC and cawF1."""
    columns = (
        *("system", "attention", "n", "without FCC", "accuracy", "macro-F1", "AUC-Judd", "NSS"),
        *("mean FCC", "cawF1 (macro)", "95 % interval", "its base"),
    )
    rows = []
    for name, source, body in _bodies(results):
        saliency = _saliency(results, name, source)
        score = body["scores"][cl.HEADLINE]
        rows.append(
            [
                *(name, source, body["n"], body["n_without_fcc"]),
                *(body["classification"][m]["value"] for m in ("accuracy", "f1_macro")),
                *(saliency["overall"][m]["value"] if saliency else None for m in ("auc_judd", "nss")),
                *(body["mean_fcc"]["value"], score["value"], interval(score["ci95"]), score["base"]),
            ]
        )
    highest = {columns.index(name): True for name in ("accuracy", "macro-F1", "AUC-Judd", "NSS")}
    caption = "Scores. cawF1 is compared within one attention source only; its base is the same reading at FCC = 1."
    return ReportTable("headline", caption, columns, rows, best_rows(rows, highest))


def readings(results: Results) -> ReportTable:
    """Every reading of cawF1 beside its own base."""
    columns = ("system", "attention", "reading", "value", "95 % interval", "base", "difference", "p")
    rows = [
        [name, source, reading, s["value"], interval(s["ci95"]), s["base"], s["difference"], s["p"]]
        for name, source, body in _bodies(results)
        for reading, s in body["scores"].items()
    ]
    return ReportTable("readings", "All readings of cawF1, each beside its own value at FCC = 1.", columns, rows)


def published(results: Results) -> ReportTable:
    """The figures that the source of cawF1 claims, marked as such."""
    columns = ("system", "origin", "accuracy", "F1", "AUC-Judd", "cawF1")
    rows = [
        [r["system"], PUBLISHED_MARK, *(r[m] / 100 for m in ("accuracy", "f1", "auc_judd", "cawf1"))]
        for r in results["published"]["systems"]
    ]
    for name, source, body in _bodies(results):
        saliency = _saliency(results, name, source)
        auc = saliency["overall"]["auc_judd"]["value"] if saliency else None
        scores = [body["classification"][m]["value"] for m in ("accuracy", "f1_macro")]
        rows.append([f"{name} ({source})", "this run", *scores, auc, body["scores"][cl.HEADLINE]["value"]])
    caption = "Beside the published figures. Those are claims of their authors on other data, not results of this run."
    return ReportTable("published", caption, columns, rows)


def per_emotion(results: Results) -> ReportTable:
    """Counts, F1, FCC and saliency of each emotion."""
    columns = (
        *("system", "attention", "emotion", "true", "predicted", "precision", "recall", "F1", "95 % interval"),
        *("mean FCC", "FCC-weighted F1", "AUC-Judd", "NSS"),
    )
    rows = []
    for name, source, body in _bodies(results):
        saliency = _saliency(results, name, source)
        for label, c in body["per_class"].items():
            attention = (saliency or {"per_emotion": {}})["per_emotion"].get(label)
            rows.append(
                [
                    *(name, source, label, c["n_true"], c["n_pred"], c["precision"], c["recall"], c["f1"]),
                    *(interval(c["f1_ci95"]), c["mean_fcc"], c["f1_weighted_by_fcc"]),
                    *(attention[m]["value"] if attention else None for m in ("auc_judd", "nss")),
                ]
            )
    return ReportTable("per_emotion", "Per emotion.", columns, rows)


def per_scene_type(results: Results) -> ReportTable:
    """Headline, base, FCC and saliency of each scene type."""
    columns = ("system", "attention", "scene", "n", "mean FCC", "cawF1 (macro)", "95 % interval", "base", "AUC-Judd")
    rows = []
    for name, source, body in _bodies(results):
        saliency = _saliency(results, name, source)
        for scene, part in body["per_scene_type"].items():
            attention = (saliency or {"per_scene_type": {}})["per_scene_type"].get(scene)
            score = part[cl.HEADLINE]
            figures = [part["mean_fcc"]["value"], score["value"], interval(score["ci95"]), part["base"]["value"]]
            auc = attention["auc_judd"]["value"] if attention else None
            rows.append([name, source, scene or "not said", part["n"], *figures, auc])
    return ReportTable("per_scene_type", "Per scene type; below ten samples there is no score.", columns, rows)


def saliency(results: Results) -> ReportTable:
    """Saliency scores of the systems that attend to something."""
    columns = ("system", "metric", "value", "95 % interval", "samples", "samples without", "fixations off the picture")
    rows = [
        [name, metric, e["value"], interval(e["ci95"]), s["n_samples"], s["n_without"], s["n_off_image"]]
        for name, s in ((name, system["saliency"]) for name, system in results["systems"].items())
        if s
        for metric, e in s["overall"].items()
    ]
    return ReportTable("saliency", "Attention against the recorded fixations; means over samples.", columns, rows)


def comparison(name: str, caption: str, found: Sequence[dict[str, Any]]) -> ReportTable:
    """Differences of pairs of systems with p values, effect sizes and the correction."""
    columns = (
        *("first", "second", "attention", "metric", "difference", "95 % interval", "relative %"),
        *("p", "adjusted p", "d"),
    )
    rows = [
        [
            *(r["first"], r["second"], r["source"], r["metric"], r["difference"], interval(r["ci95"])),
            *(r["relative_percent"], r["p"], r["p_adjusted"], r["dz"]),
        ]
        for r in found
    ]
    correction = f" Correction: {found[0]['correction']}." if found else ""
    text = f"{caption} Second minus first; d is Cohen's over participants.{correction}"
    return ReportTable(name, text, columns, rows)


def against_bases(results: Results) -> ReportTable:
    """Each reading tested against its own base."""
    columns = ("system", "attention", "reading", "difference", "95 % interval", "p", "adjusted p", "d")
    rows = [
        [r["system"], r["source"], r["metric"], r["difference"], interval(r["ci95"]), r["p"], r["p_adjusted"], r["dz"]]
        for r in results["against_bases"]
    ]
    return ReportTable("against_bases", "What weighting by context does to each reading.", columns, rows)


def ablations(results: Results) -> ReportTable:
    """Ablations beside the published drops."""
    columns = ("system", "attention", "ablation", "value", "points", "relative %", "published drop %", "note")
    claims = {r["ablation"]: r["drop_percent"] for r in results["published"]["ablations"]}
    rows = [
        [
            *(r["system"], r["source"], r["ablation"], r["value"], r["points"], r["relative_percent"]),
            *(claims.get(r["ablation"]), r["note"]),
        ]
        for r in results["ablations"]
    ]
    return ReportTable("ablations", "cawF1 (macro) with a part taken away.", columns, rows)


def sweeps(results: Results) -> Iterator[ReportTable]:
    """One table per swept setting."""
    columns = (
        *("value", "system", "attention", "mean FCC", "std FCC", "cawF1 (macro)", "points", "relative %"),
        *("median |dFCC|", "p95 |dFCC|", "rank correlation", "without FCC", "reason"),
    )
    keys = ("mean_fcc", "std_fcc", cl.HEADLINE, "points", "relative_percent", "median_abs_dfcc", "p95_abs_dfcc")
    for setting in dict.fromkeys(r["setting"] for r in results["sweeps"]):
        rows = [
            [
                *(r["value"], r["system"], r["source"], *(r.get(key) for key in keys)),
                *(r.get("spearman"), r.get("n_without_fcc"), r["reason"]),
            ]
            for r in results["sweeps"]
            if r["setting"] == setting
        ]
        caption = f"Other values of {setting}, against the settings of this run."
        yield ReportTable(f"sweep_{setting}", caption, columns, rows)


def gamma(results: Results) -> ReportTable:
    """The headline with weights FCC to a power."""
    columns = ("system", "attention", "gamma", "macro-F1 weighted by FCC^gamma")
    rows = [[r["system"], r["source"], r["gamma"], r[cl.HEADLINE]] for r in results["gamma"]]
    caption = "Balance of classification and attention: gamma 0 is macro-F1, gamma 1 is cawF1."
    return ReportTable("gamma", caption, columns, rows)


def gamma_learned(results: Results) -> ReportTable:
    """Gamma learned on all scene types but one, and what it is worth on that one."""
    columns = ("attention", "scene left out", "learned gamma", "separation there", "at gamma 0", "at gamma 1")
    keys = ("source", "left_out", "gamma", "separation", "at_0", "at_1")
    rows = [[r[key] for key in keys] for r in results["gamma_learned"]]
    caption = "Gamma learned to tell systems apart: mean |difference| in standard deviations, on the scene left out."
    return ReportTable("gamma_learned", caption, columns, rows)


def regions(results: Results) -> ReportTable:
    """FCC and cawF1 of each semantic region, with the region's weight."""
    columns = ("system", "attention", "region", "fixations", "weight", "samples", "mean FCC", "cawF1 (macro)", "base")
    rows = [
        [
            *(r["system"], r["source"], r["region"], r["n_fixations"], r["weight"], r["n"]),
            *(r["mean_fcc"]["value"], r[cl.HEADLINE]["value"], r["base"]["value"]),
        ]
        for r in results["regions"]
    ]
    caption = "Per semantic region; its weight is its share of fixations. Below ten samples there is no score."
    return ReportTable("regions", caption, columns, rows)


def transitions(results: Results) -> ReportTable:
    """How far transitions between regions agree with people's."""
    rows = [[r["system"], r["agreement"], r["n"]] for r in results["transitions"]]
    caption = "Agreement (Dice) of transitions between regions with people's."
    return ReportTable("transitions", caption, ("system", "agreement", "samples"), rows)


def dynamics(results: Results) -> ReportTable:
    """What looking is like, per emotion."""
    keys = ("median_fixation_ms", "fixations_per_s", "shifts_per_s", "stickiness", "transition_entropy_bits")
    rows = [[r["emotion"], r["n"], *(r.get(key) for key in keys)] for r in results["dynamics"]]
    columns = ("emotion", "samples", *(key.replace("_", " ") for key in keys))
    return ReportTable("dynamics", "Gaze dynamics per emotion; means over samples.", columns, rows)


def patterns(results: Results) -> ReportTable:
    """How well each emotion's pattern of looking tells it from the rest."""
    columns = ("emotion", "samples", "with the label", "mean with it", "mean without", "AUC", "95 % interval", "remark")
    keys = ("emotion", "n", "n_with_label", "mean_with_label", "mean_without", "auc")
    rows = [[*(r[key] for key in keys), interval(r["ci95"]), r["reason"]] for r in results["patterns"]]
    caption = "Emotion patterns, 0 to 1 each, and their AUC against the label: 0.5 tells nothing."
    return ReportTable("patterns", caption, columns, rows)


def over_time(results: Results) -> ReportTable:
    """cawF1 in sliding windows of time."""
    columns = ("system", "attention", "from s", "window s", "n", "mean FCC", "cawF1 (macro)", "base")
    rows = [
        [
            *(r["system"], r["source"], r["start_s"], r["window_s"], r["n"]),
            *(r["mean_fcc"]["value"], r[cl.HEADLINE]["value"], r["base"]["value"]),
        ]
        for r in results["over_time"]
    ]
    return ReportTable("over_time", "cawF1 in sliding windows of the session's time.", columns, rows)


def same_label_two_scenes(results: Results) -> ReportTable:
    """Emotions whose F1 is the same in two scene types while their FCC differs: what cawF1 adds to F1."""
    columns = ("system", "attention", "scene", "n", "macro-F1", "mean FCC", "(1/n) sum FCC x F1")
    rows = []
    for name, source, body in _bodies(results):
        for scene, part in body["per_scene_type"].items():
            base, fcc = part["base"]["value"], part["mean_fcc"]["value"]
            product = base * fcc if base is not None and fcc is not None else None
            rows.append([name, source, scene or "not said", part["n"], base, fcc, product])
    return ReportTable("scenes_compared", "F1 and FCC by scene: equal F1 doesn't mean equal FCC.", columns, rows)


def checks(results: Results) -> ReportTable:
    """All checks, those of the data set first."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for c in results["checks"]:
        found.setdefault((c["name"], c["status"], c["text"]), []).append("data set")
    for name, source, body in _bodies(results):
        found.setdefault(("cawF1 applies", body["applies"], body["applies_reason"]), []).append(f"{name} ({source})")
        for c in body["checks"]:
            found.setdefault((c["name"], c["status"], c["text"]), []).append(f"{name} ({source})")
    n_all = sum(1 for _ in _bodies(results))
    rows = []
    for (name, status, text), owners in found.items():
        of = "data set" if "data set" in owners else "all systems" if len(owners) == n_all else ", ".join(owners)
        rows.append([name, status, text, of])
    return ReportTable("checks", "Checks.", ("check", "status", "what was found", "of"), rows)


def interval(ci95: Sequence[float | None]) -> str:
    """Return an interval as text; a dash where it is undefined."""
    low, high = ci95
    return "–" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _bodies(results: Results) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, system in results["systems"].items():
        for source, body in system["sources"].items():
            yield name, source, body


def _saliency(results: Results, name: str, source: str) -> dict[str, Any] | None:
    """Return a system's saliency; under what people look at it is not the system's."""
    return results["systems"][name]["saliency"] if source != "observed" else None
