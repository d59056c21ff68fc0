"""`python -m benchmarks hard-faces`: are faces covered that are turned, small, on a screen or hidden in part?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Overrides, envelope


def add(app: typer.Typer) -> None:
    app.command("hard-faces")(hard_faces)


def hard_faces(
    pictures: Annotated[Path, typer.Argument(help="Folder of stills.")],
    boxes: Annotated[Path, typer.Option(help="Faces in them: a CSV with image, x, y, w, h[, use].")],
    set_: Overrides = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Redact harder variants of pictures with drawn faces and count the faces that were covered."""
    from benchmarks.hard_faces import measure
    from edge.config import load
    from edge.files import write_json

    config = load(overrides=set_ or [])
    rows = []
    for row in measure(pictures, boxes, config.models, config.redact):
        rows.append(row)
        print(f"{row['variant']:<20} {row['covered']:>4} of {row['n']} covered", flush=True)
    if json:
        options = {"pictures": str(pictures), "boxes": str(boxes), "set": set_ or []}
        write_json(json, envelope("benchmark_hard_faces", options, {"variants": rows}))
