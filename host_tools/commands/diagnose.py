"""`python -m host_tools diagnose`: why scores are unstable, too close to F1 or slow, measured on an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, emit_json


def add(app: typer.Typer) -> None:
    app.command("diagnose")(diagnose)


def diagnose(
    config: Annotated[Path, typer.Argument(help="TOML of the evaluation")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of its results; what is done there is kept")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes")] = 1,
    as_json: Json = False,
) -> None:
    """Measure the causes of three complaints, and the effect of each remedy."""
    from host_tools.engine import Engine
    from host_tools.evaluate.config import load
    from host_tools.evaluate.diagnose import as_text
    from host_tools.evaluate.diagnose import diagnose as measure
    from host_tools.evaluate.run import Evaluation

    found = measure(Evaluation(load(config), config.parent, out, Engine(n_jobs=jobs)))
    if as_json:
        emit_json("diagnose", {"config": str(config), "out": str(out), "jobs": jobs}, found)
    else:
        print("\n".join(as_text(found)))
