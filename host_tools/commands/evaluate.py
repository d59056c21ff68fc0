"""`python -m host_tools evaluate`: the whole evaluation of a data set, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, emit_json


def add(app: typer.Typer) -> None:
    app.command("evaluate")(evaluate)


def evaluate(
    config: Annotated[Path, typer.Argument(help="TOML: data set, systems, sweeps")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for results; a run that was killed goes on there")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes, or actors on a cluster")] = 1,
    devices: Annotated[str, typer.Option(help="Devices to deal the processes to, e.g. cuda:0,cuda:1")] = "cpu",
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster")] = "local",
    as_json: Json = False,
) -> None:
    """Score every system of a data set: tables with intervals, comparisons, ablations, sweeps, checks, a report."""
    from host_tools.engine import Engine
    from host_tools.evaluate.config import load
    from host_tools.evaluate.output import run

    where = Engine.of(engine, jobs, devices)
    results = run(load(config), config.parent, out, where)
    if as_json:
        options = {"config": str(config), "out": str(out), "jobs": jobs, "devices": where.devices, "engine": engine}
        emit_json("evaluate", options, results)
    else:
        print(f"{out}: report.html, results.json, tables/, samples/")
