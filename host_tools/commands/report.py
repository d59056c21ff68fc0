"""`python -m host_tools report`: the page of one run, or of one evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from host_tools.report.page import Page


def add(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    folder: Annotated[Path, typer.Argument(help="a run (summary.json, events.ndjson, redacted.mp4), or an evaluation")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the page; default: report.html in it")] = None,
) -> None:
    """Write one self-contained page: of a run of the runtime, or of an evaluation that is finished."""
    import matplotlib

    matplotlib.use("Agg")
    path = output or folder / "report.html"
    _page(folder).write(path)
    print(path)


def _page(folder: Path) -> Page:
    from host_tools.evaluate import page as evaluation
    from host_tools.report.run_page import build_page

    if (folder / "summary.json").is_file() or not (folder / "results.json").is_file():
        return build_page(folder)
    return evaluation.build(evaluation.read_results(folder), folder)
