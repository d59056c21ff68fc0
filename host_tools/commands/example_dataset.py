"""`python -m host_tools example-dataset`: write the small complete example data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("example-dataset")(example_dataset)


def example_dataset(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write")],
    pictures: Annotated[int, typer.Option(min=3, help="Pictures per emotion")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the drawing and of the simulation")] = 0,
) -> None:
    """Draw scenes and simulate gaze, annotations and three systems; then: evaluate OUT/evaluate.toml -o RESULTS."""
    from host_tools.datasets.example import generate

    n = generate(out, pictures_per_emotion=pictures, seed=seed)
    print(f"{out}: {n} simulated samples; now: python -m host_tools evaluate {out / 'evaluate.toml'} -o RESULTS")
