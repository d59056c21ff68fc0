"""`python -m host_tools report`: the page of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    folder: Annotated[Path, typer.Argument(help="folder with summary.json, events.ndjson and redacted.mp4")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the page; default: report.html in it")] = None,
) -> None:
    """Write one self-contained page: video, key frames, FCC and emotion over time, fixations, latencies, options."""
    import matplotlib

    from host_tools.report.run_page import build_page

    matplotlib.use("Agg")
    path = output or folder / "report.html"
    build_page(folder).write(path)
    print(path)
