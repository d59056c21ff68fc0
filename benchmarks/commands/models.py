"""`python -m benchmarks models`: artefact by runtime, with latency, ratio to FP32, drift and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edge.commands.base import ModelsDir, envelope


def add(app: typer.Typer) -> None:
    app.command("models")(models)


def models(
    names: Annotated[
        list[str] | None, typer.Argument(help="FP32 artefacts, with what was made of them; default: all.")
    ] = None,
    samples: Annotated[int, typer.Option(min=5, help="Inferences of each measurement, at most.")] = 200,
    seconds: Annotated[float, typer.Option(min=0.1, help="Each measurement ends after so long.")] = 4.0,
    pace: Annotated[float, typer.Option(min=0, help="Milliseconds from one paced inference to the next.")] = 33.0,
    directory: ModelsDir = "",
    json: Annotated[Path | None, typer.Option("--json", help="Write the table here.")] = None,
) -> None:
    """Measure embedders one after the other, on one thread, and print a table in Markdown."""
    import sys

    from benchmarks.models import table
    from edge.files import write_json
    from edge.tune import Plan

    result = table(names or [], directory, Plan(samples, pace, seconds), lambda line: print(line, file=sys.stderr))
    machine = result["machine"]
    print(
        f"{machine['processor']}, one thread, one fixation (two pictures of 224 x 224), back to back, "
        f"up to {samples} runs or {seconds:g} s each; ratio to the FP32 artefact on ONNX Runtime\n"
    )
    print("| artefact | runtime | median ms | p99 ms | runs | times FP32 | median dFCC | MB | weights |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in result["rows"]:
        print(_line(row))
    if json:
        options = {"names": names or [], "samples": samples, "seconds": seconds, "pace": pace}
        write_json(json, envelope("benchmark_models", options, result))


def _line(row: dict[str, Any]) -> str:
    head = f"| {row['artefact']} | {row['backend']} |"
    if row["reason"]:
        return f"{head} {row['reason']} ||||||| {row['weights']} |"
    ratio = f"{row['ratio']:.2f}x" if row["ratio"] else "-"
    drift = "-" if row["drift_median_dfcc"] is None else f"{row['drift_median_dfcc']:.4f}"
    failed = " (gate failed)" if row["gate"] == "failed" else ""
    times = f"{row['p50_ms']:.2f} | {row['p99_ms']:.2f} | {row['runs']:.0f}"
    return f"{head} {times} | {ratio} | {drift}{failed} | {row['memory_mb']:.0f} | {row['weights']} |"
