"""`python -m benchmarks pipeline`: what the whole pipeline costs at 1280x720 on one thread."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import envelope


def add(app: typer.Typer) -> None:
    app.command("pipeline")(pipeline)


def pipeline(
    json: Annotated[Path | None, typer.Option("--json", help="Write all samples here.")] = None,
    seconds: Annotated[float, typer.Option(min=1, max=16, help="How much of the clip.")] = 10.0,
) -> None:
    """Print latency per stage, first score, memory and import time."""
    from benchmarks.pipeline import measure
    from edge.files import write_json

    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), seconds)
    machine = result["machine"]
    print(f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}; {result['frames']} frames")
    for stage, v in sorted(result["stages_ms"].items()):
        print(f"{stage:<32} p50 {v['p50']:8.3f}  p90 {v['p90']:8.3f}  p99 {v['p99']:8.3f}  max {v['max']:8.3f} ms")
    print(f"import edge {result['import_edge_s']:.3f} s, first score {result['first_score_s']:.2f} s after start")
    for name, value in result["resident_mb"].items():
        print(f"{name}: {value:.0f} MB resident, {result['peak_resident_mb'][name]:.0f} MB at its peak")
    if json:
        options = {"seconds": seconds}
        write_json(json, envelope("benchmark_pipeline", options, result))
