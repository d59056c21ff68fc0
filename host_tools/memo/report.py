"""The page of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from host_tools.memo import figures
from host_tools.memo.archive import Archive, Picture
from host_tools.memo.classes import CLASSES
from host_tools.memo.disagreements import missed_pictures, split_pictures
from host_tools.memo.run import Run
from host_tools.report.page import Page, Section
from host_tools.report.tables import ReportTable

#: Tables that are long: they are files beside the page, not part of it.
FILES_ONLY = frozenset(
    f"{half}_{kind}" for half in ("generation", "understanding") for kind in ("confusion", "pairs", "intervals")
) | {"generation_styles_confusion", "generation_models_styles"}
GALLERY_COLUMNS = 12


def write_report(run: Run, folder: Path) -> None:
    """Write the page of a run, report.html."""
    page = Page(run.settings.title, subtitle="Emotional portraits: generation and understanding, judged by raters")
    _add_sections(page, run)
    page.write(folder / "report.html")


def _add_sections(page: Page, run: Run) -> None:
    _archive(page.section("Archive and raters"), run)
    if run.generation:
        section = page.section("Generation")
        _tables(section, run.tables("generation"))
        section.figure(figures.quality_accuracy(run.generation), _quality_caption(run))
        section.figure(figures.mos_bars(run.generation), "Mean opinion scores per model and per emotion of the prompt.")
        section.figure(figures.confusions(run.generation.by_model), "Asked for (rows) and seen by raters (columns).")
        section.picture(gallery(run.archive), "One prompt per emotion (rows), by generator (columns).", width=1080)
    if run.understanding:
        section = page.section("Understanding")
        _tables(section, run.tables("understanding"))
        section.figure(figures.confusions(run.understanding.shares), "Raters' class (rows) and answer (columns).")
    _tables(page.section("Valence"), run.tables("valence"))
    _tables(page.section("Beside the published findings"), run.tables("anchors"))
    _disagreements(page.section("Worst disagreements"), run)
    section = page.section("How this was made")
    section.table(["what", "value"], [[k, v] for k, v in run.provenance.items()])


def gallery(archive: Archive, tile_px: int = 80) -> npt.NDArray[np.uint8]:
    """Return figure 3, uint8 (h, w, 3): a row per emotion with one prompt, a column per generator."""
    import cv2

    models = sorted({p.model for p in archive.kept})[:GALLERY_COLUMNS]
    margin, head = 40, 20
    sheet = np.full((head + tile_px * len(CLASSES), margin + tile_px * len(models), 3), 255, np.uint8)

    def write(text: str, x: int, y: int) -> None:
        cv2.putText(sheet, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (60, 60, 60), 1, cv2.LINE_AA)

    for column, model in enumerate(models):
        write(model[:10], margin + column * tile_px + 2, 14)
    for k, code in enumerate(CLASSES):
        write(code, 2, head + k * tile_px + tile_px // 2)
        chosen = _one_prompt([p for p in archive.kept if p.emotion == k and p.model in models])
        for image, model in _loaded([(picture, model) for model, picture in chosen.items()]):
            y, x = head + k * tile_px, margin + models.index(model) * tile_px
            sheet[y : y + tile_px, x : x + tile_px] = cv2.resize(
                image, (tile_px, tile_px), interpolation=cv2.INTER_AREA
            )
    return sheet


def _one_prompt(pictures: Sequence[Picture]) -> dict[str, Picture]:
    """Return model -> picture of the prompt that most models kept."""
    prompts: dict[str, dict[str, Picture]] = {}
    for picture in pictures:
        prompts.setdefault(picture.prompt, {}).setdefault(picture.model, picture)
    return max(prompts.values(), key=len, default={})


def _archive(section: Section, run: Run) -> None:
    integrity, truth = run.archive.integrity, run.archive.truth
    section.facts(
        {
            "pictures kept": integrity["kept"],
            "asked": integrity["asked"],
            "raters": truth.summary.get("n_raters"),
            "votes": truth.summary.get("n_votes"),
            "ties": truth.summary.get("n_ties"),
            "Fleiss' kappa": truth.summary.get("agreement", {}).get("fleiss"),
        }
    )
    for line in [*integrity["lines"], *truth.summary.get("notes", [])]:
        section.text(line)
    cells = [[row["model"], *(row[c] for c in CLASSES), row["kept"]] for row in integrity["cells"]]
    asked = f"Pictures kept per model and emotion; {integrity['asked_per_cell']} were asked for in each cell."
    section.table(["model", *CLASSES, "kept"], cells, caption=asked)
    if agreement := truth.summary.get("agreement"):
        section.table(["agreement", "value"], [[k, v] for k, v in agreement.items()])
    rejected = [
        [r["rater"], r["dimension"], r["P"], r["Q"], r["n"], r["reason"]] for r in truth.summary.get("rejected", [])
    ]
    section.table(["rater left out", "of", "P", "Q", "n", "reason"], rejected, caption="Screening by ITU-R BT.500-13.")
    section.figure(figures.histograms(truth), "Distribution of the mean opinion scores.")


def _tables(section: Section, tables: Iterable[ReportTable]) -> None:
    for table in tables:
        if table.name in FILES_ONLY:
            section.text(f"{table.caption} See tables/{table.name}.csv.")
        else:
            table.add_to(section)


def _quality_caption(run: Run) -> str:
    value = run.generation.quality_accuracy if run.generation else float("nan")
    said = f"{value:.3f}" if np.isfinite(value) else "undefined"
    return f"Quality is not emotion: rank correlation of mean quality with G_acc over the models is {said}."


def _disagreements(section: Section, run: Run) -> None:
    paths = {p.image: p for p in run.archive.kept}
    section.heading("Raters split most")
    rows = split_pictures(run.archive)
    section.pictures(_loaded([(paths[r["image"]], f"{r['image']}: {r['votes']}") for r in rows if r["image"] in paths]))
    if run.understanding:
        section.heading("Raters agree, models miss it")
        missed = missed_pictures(run.archive, run.understanding)
        section.pictures(
            _loaded(
                [
                    (paths[r["image"]], f"{r['class']}, missed by {r['wrong']} of {r['asked']} ({r['said']})")
                    for r in missed
                ]
            )
        )


def _loaded(pictures: Sequence[tuple[Picture, str]]) -> list[tuple[npt.NDArray[np.uint8], str]]:
    """Read the pictures that can be read; the rest stays out of the page (the integrity report counts them)."""
    import cv2

    tiles: list[tuple[Any, str]] = []
    for picture, caption in pictures:
        image = cv2.imread(str(picture.path), cv2.IMREAD_COLOR) if picture.path else None
        if image is not None:
            tiles.append((image, caption))
    return tiles
