"""`python -m benchmarks start`: how long a device takes until all its networks are open and warm."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Overrides, envelope


def add(app: typer.Typer) -> None:
    app.command("start")(start)


def start(
    times: Annotated[int, typer.Option(min=1, help="How often to start after the first time.")] = 5,
    set_: Overrides = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write all samples here.")] = None,
) -> None:
    """Print the seconds of a first start, with empty caches, and the median of those after it."""
    from benchmarks.start import PARTS, measure
    from edge.files import write_json

    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), set_ or [], times)
    machine = result["machine"]
    print(f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}")
    print(", ".join(result["models"]))
    for label in ("first", "again"):
        parts = ", ".join(f"{part} {result[label][part]:.3f}" for part in PARTS)
        print(f"{label}: {result[label]['total']:.3f} s ({parts})")
    if json:
        options = {"times": times, "set": set_ or []}
        write_json(json, envelope("benchmark_start", options, result))
