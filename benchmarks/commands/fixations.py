"""`python -m benchmarks fixations`: how well do fixations agree with an expert and with a device?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import envelope

VELOCITIES = [30.0, 60.0, 90.0]


def add(app: typer.Typer) -> None:
    app.command("fixations")(fixations)


def fixations(
    expert: Annotated[Path | None, typer.Option(help="Labelled recording: .npy with t, x, y, status, evt.")] = None,
    device: Annotated[Path | None, typer.Option(help="Native recording folder of a Neon.")] = None,
    velocity: Annotated[list[float], typer.Option(help="Thresholds in deg/s for the device; repeat.")] = VELOCITIES,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Compare the fixation detector with labels of the same recording: F1 of samples and events, kappa, onsets."""
    from benchmarks.fixations import with_device, with_expert
    from edge.config import FixationConfig
    from edge.errors import ConfigError
    from edge.files import write_json

    if expert is None and device is None:
        raise ConfigError("fixations", "nothing to compare with", fix="give --expert FILE or --device FOLDER")
    rows: dict[str, list[dict[str, float]]] = {}
    if expert:
        rows["expert"] = [with_expert(expert, FixationConfig(merge=merge)) for merge in (False, True)]
        print("| merging | expert's | found | sample F1 | kappa | event F1 |\n|---|---|---|---|---|---|")
        for row in rows["expert"]:
            agreement = f"{row['sample_f1']:.3f} | {row['kappa']:.3f} | {row['event_f1']:.3f}"
            print(f"| {'yes' if row['merge'] else 'no'} | {row['n_expert']} | {row['n_found']} | {agreement} |")
    if device:
        rows["device"] = [with_device(device, FixationConfig(merge=False, velocity_deg_s=v)) for v in velocity]
        print(
            "\n| deg/s, no merging | device's | found | event F1 | median onset difference, ms |\n|---|---|---|---|---|"
        )
        for row in rows["device"]:
            onset = "-" if math.isnan(row["onset_ms"]) else f"{row['onset_ms']:.0f}"
            counts = f"{row['velocity_deg_s']:g} | {row['n_device']} | {row['n_found']}"
            print(f"| {counts} | {row['event_f1']:.2f} | {onset} |")
    if json:
        options = {"expert": str(expert or ""), "device": str(device or ""), "velocity": velocity}
        write_json(json, envelope("benchmark_fixations", options, rows))
