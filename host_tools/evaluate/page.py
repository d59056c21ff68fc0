"""The report of an evaluation: one self-contained page, from `results.json` and the pictures beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from edge.errors import DataError
from edge.files import decode_document
from host_tools.datasets.maps import read_picture
from host_tools.evaluate import figures
from host_tools.evaluate import tables as tb
from host_tools.report.page import Page, Section

_KINDS = {
    "best": "Right, and looked at what fits",
    "worst": "Wrong, and looked elsewhere",
    "influence": "Move cawF1 away from F1 the most",
}


def read_results(folder: Path) -> dict[str, Any]:
    """Read the results of a finished evaluation. Raises DataError if there are none."""
    path = folder / "results.json"
    try:
        results: dict[str, Any] = decode_document(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            str(path), f"can't be read: {error}", fix="run `python -m host_tools evaluate` first"
        ) from error
    return results


def build(results: dict[str, Any], folder: Path) -> Page:
    """Return the page; pictures of cases are read from `folder`."""
    card, made = results["dataset"], results["made_with"]
    simulated = " All of it is simulated: its figures measure nothing." if card["simulated"] else ""
    page = Page(
        f"cawF1 benchmark: {card['name']}",
        subtitle=f"{card['n_samples']} samples of {card['n_participants']} participants.{simulated}",
        footer=f"emogaze {made['emogaze_edge']}, {made['embedder']['model_id']}. Scores are advisory: "
        "no decision about a person should rest on them alone.",
    )
    _scores(page.section("Scores"), results)
    _data(page.section("Data and checks"), results)
    _details(page.section("Emotions and scenes"), results)
    _attention(page.section("Where people look"), results, folder)
    _comparisons(page.section("Comparisons"), results)
    _ablations(page.section("Ablations and sensitivity"), results)
    _cases(page.section("Cases"), results, folder)
    _made_with(page.section("How this was made"), results)
    return page


def _scores(section: Section, results: dict[str, Any]) -> None:
    section.text(
        "cawF1 weighs each sample by how well what was looked at fits its context (FCC). Its reading at FCC = 1, the "
        "base, is plain F1: the difference of the two is what attention adds. Systems are compared only within one "
        "attention source."
    )
    tb.headline(results).add_to(section)
    section.figure(figures.scores(results))
    tb.published(results).add_to(section)
    tb.readings(results).add_to(section)
    tb.saliency(results).add_to(section)


def _data(section: Section, results: dict[str, Any]) -> None:
    card = results["dataset"]
    section.facts(
        {
            "samples": card["n_samples"],
            "participants": card["n_participants"],
            "pictures": card["n_pictures"],
            "gaze samples": card["n_gaze_samples"],
            "fixations": card["n_fixations"],
            "gaze rate, Hz": card["gaze_hz"],
        }
    )
    keys = (
        *("description", "source", "licence", "projection", "split", "label_set", "labels", "label_sources"),
        *("scene_types", "n_gaze_invalid", "n_fixations_off_picture", "samples_without_fixations", "n_regions"),
        *("annotators", "lacks"),
    )
    section.table(["data card", ""], [[key.replace("_", " "), _plain(card[key])] for key in keys])
    tb.checks(results).add_to(section)
    notes = [
        [name, source, note]
        for name, system in results["systems"].items()
        for source, body in system["sources"].items()
        for note in [*body["notes"], *(f"{n} without FCC: {why}" for why, n in body["reasons_without_fcc"].items())]
    ]
    if notes:
        section.table(["system", "attention", "counted"], notes, caption="What was left out, and how often.")


def _details(section: Section, results: dict[str, Any]) -> None:
    section.figure(figures.confusions(results), "Confusions; rows are true labels, colour is the share of the row.")
    tb.per_emotion(results).add_to(section)
    section.figure(figures.fcc_histograms(results), "FCC of right and of wrong samples.")
    tb.per_scene_type(results).add_to(section)
    section.text(
        "The same answers in two environments have equal F1 and different FCC: the table below sets them side by side."
    )
    tb.same_label_two_scenes(results).add_to(section)


def _attention(section: Section, results: dict[str, Any], folder: Path) -> None:
    shown = [
        (read_picture(folder / row["picture"]), f"{', '.join(row['labels'])}: {row['n_fixations']} fixations")
        for row in results["fixation_maps"]
        if (folder / row["picture"]).is_file()
    ]
    if shown:
        section.pictures(shown)
    tb.dynamics(results).add_to(section)
    tb.patterns(results).add_to(section)
    for table in (tb.regions(results), tb.transitions(results)):
        if table.rows:
            table.add_to(section)
    if results["over_time"]:
        section.figure(figures.over_time(results), "cawF1 in sliding windows of the session's time.")


def _comparisons(section: Section, results: dict[str, Any]) -> None:
    found = [
        tb.comparison("leads", "Lead of each system over the baseline.", results["leads"]),
        tb.comparison("comparisons", "Systems in pairs, on the same resamples.", results["comparisons"]),
        tb.against_bases(results),
    ]
    for table in found:
        if table.rows:
            table.add_to(section)


def _ablations(section: Section, results: dict[str, Any]) -> None:
    tb.ablations(results).add_to(section)
    for table in tb.sweeps(results):
        section.heading(table.name.replace("sweep_", "Sweep: "))
        if figure := figures.sweep(results, table.name.removeprefix("sweep_")):
            section.figure(figure)
        table.add_to(section)
    if results["gamma"]:
        tb.gamma(results).add_to(section)
    if results["gamma_learned"]:
        tb.gamma_learned(results).add_to(section)


def _cases(section: Section, results: dict[str, Any], folder: Path) -> None:
    section.text("Yellow: recorded fixations in order, larger = longer. Blue crosses: what the system looks at.")
    for name in results["systems"]:
        for kind, title in _KINDS.items():
            shown = [
                (read_picture(folder / case["picture"]), _caption(case))
                for case in results["cases"]
                if (case["system"], case["kind"]) == (name, kind) and (folder / case["picture"]).is_file()
            ]
            if shown:
                section.heading(f"{name}: {title}")
                section.pictures(shown)


def _caption(case: dict[str, Any]) -> str:
    text = (
        f"{case['sample_id']}: true {case['true']}, said {case['pred']}; FCC {case['fcc']:.3f} "
        f"(local {case['sim_local']:.2f}, global {case['sim_global']:.2f}, {case['n_fixations']} fixations)"
    )
    if case["influence"] is not None:
        text += f"; moves cawF1 - F1 by {100 * case['influence']:+.2f} points"
    return text


def _made_with(section: Section, results: dict[str, Any]) -> None:
    made = results["made_with"]
    rows = [["command", made["command"]], ["python", made["python"]], ["machine", made["machine"]]]
    rows += [[f"embedder {key}", value] for key, value in made["embedder"].items()]
    rows += [["packages", _plain(made["packages"])]]
    rows += [[f"input {name}", value] for name, value in made["inputs"].items()]
    rows += [["settings", json.dumps(made["settings"], ensure_ascii=False)]]
    section.table(["", ""], rows)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {v}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(str(v) for v in value) or "nothing"
    return "not said" if value in ("", None) or (isinstance(value, float) and np.isnan(value)) else str(value)
