"""`python -m host_tools annotate`: raters judge pictures in their browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Option("--study", "-s", help="SQLite file that keeps the study.")]


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Raters judge pictures in their browser; every vote is kept at once.", no_args_is_help=True
    )
    group.command("serve")(serve)
    group.command("export")(export)
    app.add_typer(group, name="annotate")


def serve(
    pictures: Annotated[Path, typer.Argument(help="Folder of pictures.")],
    study: File,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 7860,
    per_stage: Annotated[int, typer.Option(min=1, help="Pictures per stage.")] = 500,
    break_min: Annotated[float, typer.Option(min=0, help="Minutes between stages.")] = 15,
    stages_per_day: Annotated[int, typer.Option(min=1)] = 4,
    training_min: Annotated[float, typer.Option(min=0, help="Minutes of training before the first stage.")] = 30,
    practice: Annotated[Path | None, typer.Option(help="Folder of pictures to practise on, with practice.csv.")] = None,
    seed: Annotated[int, typer.Option(help="Of the order of pictures; each rater has another.")] = 0,
) -> None:
    """Serve a study; stop with Ctrl-C, go on with the same command."""
    from host_tools.memo.annotation import app
    from host_tools.memo.annotation.rules import Rules
    from host_tools.memo.annotation.study import Study, list_pictures, read_practice

    rules = Rules(per_stage, break_min, stages_per_day, training_min)
    known = read_practice(practice) if practice else {}
    app.import_gradio()
    opened = Study(study, list_pictures(pictures), rules, practice=known, seed=seed)
    built = app.build(opened, pictures, practice)
    print(f"{len(opened.pictures)} pictures, study in {study}: http://{host}:{port}", flush=True)
    app.serve(built, host, port)


def export(study: File, out: Annotated[Path, typer.Option("--out", "-o", help="CSV to write.")]) -> None:
    """Write all votes as a CSV that `mos` and `memo` read."""
    from edge.errors import DataError
    from host_tools.memo.annotation.study import export_votes

    if not study.is_file():
        raise DataError(str(study), "no such study")
    print(f"{export_votes(study, out)} votes in {out}")
