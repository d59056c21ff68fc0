"""`python -m host_tools demo`: the whole pipeline on a real clip and a simulated eye."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("runs/demo")) -> None:
    """Fetch a clip, simulate gaze, build the environment cache, run, and write the report."""
    import matplotlib

    from host_tools.demo import run_demo
    from host_tools.report.run_page import build_page

    matplotlib.use("Agg")
    print("a simulated eye on a real clip: gaze, environment, run, report (about a minute)", flush=True)
    summary = run_demo(output)
    for line in summary.lines():
        print(line, flush=True)
    build_page(output).write(output / "report.html")
    print(f"open {output / 'report.html'} in a browser")
