"""`python -m benchmarks soak`: a device for minutes or hours on loopback sources."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Overrides, envelope


def add(app: typer.Typer) -> None:
    app.command("soak")(soak)


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long, from the first score on.")] = 15.0,
    set_: Overrides = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write all samples here.")] = None,
) -> None:
    """Run a device at 720p30 with 200 Hz gaze; exit 1 if it drops anything, grows, or leaks."""
    from benchmarks.soak import soak as run_soak
    from edge.files import write_json

    with tempfile.TemporaryDirectory() as folder:
        result = run_soak(Path(folder), minutes, list(set_ or []))
    machine, verdict, last = result["machine"], result["verdict"], result["samples"][-1]
    print(f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}")
    if result["overrides"]:
        print("with " + ", ".join(result["overrides"]))
    print(f"first score {result['start_s']:.1f} s after start; {verdict['seconds']:.0f} s watched")
    print(f"{verdict['pictures']} pictures, {verdict['scores']} scores", end="; ")
    print(f"from picture to score {last['p50_ms']:.1f} ms median, {last['p99_ms']:.1f} ms p99")
    for name, count in verdict["drops"].items():
        print(f"{name.replace('_', ' ')}: {count}")
    print(f"memory: {last['resident_mb']:.1f} MB and {last['readers_mb']:.1f} MB in readers; ", end="")
    growth = verdict["growth_mb_per_10_min"]
    short = "too short a run to tell its growth"
    print(short if growth is None else f"{growth:+.2f} MB in ten minutes after the warm-up")
    print(", ".join(f"{name} {'constant' if same else 'NOT constant'}" for name, same in verdict["constant"].items()))
    if json:
        options = {"minutes": minutes, "set": set_ or []}
        write_json(json, envelope("benchmark_soak", options, result))
    if not verdict["passed"]:
        print("not passed: " + ", ".join(name.replace("_", " ") for name in verdict["failed"]))
        raise typer.Exit(1)
