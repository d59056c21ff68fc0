"""`python -m benchmarks precision`: latency, energy proxy and change of FCC at several battery levels."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import envelope


def add(app: typer.Typer) -> None:
    app.command("precision")(precision)


def precision(
    ladder: Annotated[Path, typer.Argument(help="ladder.json written by `emogaze tune`")],
    battery: Annotated[list[float], typer.Option(min=0, max=100, help="Battery level in percent; repeat.")] = [
        100,
        25,
        10,
    ],
    seconds: Annotated[float, typer.Option(min=1, max=16, help="How much of the clip.")] = 10.0,
    json: Annotated[Path | None, typer.Option("--json", help="Write the table here.")] = None,
) -> None:
    """Run one clip and gaze recording at each battery level and print what the precision costs and changes."""
    from benchmarks.precision import measure
    from edge.files import write_json

    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), ladder, battery, seconds)
    machine = result["machine"]
    print(
        f"{machine['processor']}, {machine['cores']} cores; dFCC against the first level; cpu: processor time per frame"
    )
    print(f"{'battery':>7}  {'embed p50':>9}  {'p99':>7}  {'cpu':>7}  {'|dFCC|':>7}  {'p95':>7}  {'n':>5}  artefact")
    for row in result["levels"]:
        embed = row["embed_ms"]
        numbers = (
            f"{row['cpu_ms_per_frame']:7.1f}  {row['dfcc_median']:7.4f}  {row['dfcc_p95']:7.4f}  {row['n_scores']:5}"
        )
        latency = f"{embed['p50']:9.2f}  {embed['p99']:7.2f}"
        print(f"{row['battery_percent']:6.0f}%  {latency}  {numbers}  {', '.join(row['artefacts'])}")
    if json:
        options = {"ladder": str(ladder), "battery": battery, "seconds": seconds}
        write_json(json, envelope("benchmark_precision", options, result))
