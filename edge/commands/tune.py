"""`emogaze tune`: measure the artefacts on this device and write the ladder that the governor moves along."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edge.commands.base import Json, Overrides, SettingsFile, emit_json


def add(app: typer.Typer) -> None:
    app.command("tune")(tune)


def tune(
    output: Annotated[Path, typer.Option("--output", "-o", help="The ladder to write.")] = Path("ladder.json"),
    threads: Annotated[str, typer.Option(help="Numbers of threads to try, e.g. 1,2.")] = "1",
    samples: Annotated[int, typer.Option(min=5, help="Inferences back to back, and as many at the pace.")] = 50,
    pace: Annotated[float, typer.Option(min=0, help="Milliseconds from one paced inference to the next.")] = 33.0,
    config: SettingsFile = None,
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Measure the embedder's artefacts on every runtime here; keep those that no other beats in latency and drift."""
    import sys

    from edge import tune as room
    from edge.config import load
    from edge.errors import ConfigError
    from edge.ladder import write_ladder
    from edge.manifest import list_artefacts, models_dir

    if not all(part.strip().isdigit() and int(part) > 0 for part in threads.split(",")):
        raise ConfigError("--threads", "can't be read", expected="numbers such as 1,2", got=threads)
    models = load(config, set_ or []).models
    manifests = room.family(list_artefacts(models_dir(models.dir)), models.embedder)
    plan = room.Plan(samples, pace)
    counts = [int(part) for part in threads.split(",")]
    found = list(room.measure(manifests, models, counts, plan, lambda line: print(line, file=sys.stderr)))
    made = room.ladder(found, manifests)
    write_ladder(output, made)
    if json:
        options = {"output": str(output), "threads": threads, "samples": samples, "pace_ms": pace}
        emit_json("tune", options, {"measurements": [_row(m) for m in found], "rungs": _rungs(made)})
        return
    print(f"{output}: {len(made.rungs)} of {len(found)} measured, from least drift to least latency")
    for rung in made.rungs:
        print(f"  {rung.artefact:28} {rung.backend:12} {rung.latency_ms:8.2f} ms  median |dFCC| {rung.drift:.4f}")


def _row(measurement: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(measurement)


def _rungs(ladder: Any) -> list[dict[str, Any]]:
    import msgspec

    rungs: list[dict[str, Any]] = msgspec.to_builtins(ladder)["rungs"]
    return rungs
