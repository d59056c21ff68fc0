"""`python -m host_tools all`: both benchmarks in one run, and one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("all")(run)


def run(
    config: Annotated[Path, typer.Argument(help="TOML: memo = FILE, cawf1 = FILE, and who is who.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for memo/, cawf1/ and report.html.")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes, or actors on a cluster.")] = 1,
    devices: Annotated[str, typer.Option(help="Devices to deal the processes to, e.g. cuda:0,cuda:1")] = "cpu",
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
) -> None:
    """Rerun MEMO-Bench and the cawF1 benchmark, and show the models of both on one page."""
    from host_tools.combined import CombinedConfig, run_all
    from host_tools.engine import Engine
    from host_tools.settings import read_settings

    where = Engine.of(engine, jobs, devices)
    combined = run_all(read_settings(config, CombinedConfig), config.parent, out, where)
    combined.write(out)
    print(f"{out}: report.html, memo/, cawf1/, tables/")
