"""`python -m calibration gaze`: fit a gaze calibration from a recording of a look at nine points."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, Overrides, as_overrides, emit_json


def add(app: typer.Typer) -> None:
    app.command("gaze")(gaze)


def gaze(
    recording: Annotated[Path, typer.Argument(help="A gaze recording that any gaze plug-in reads.")],
    targets: Annotated[Path, typer.Option(help="CSV start_s,end_s,x,y,use; use is fit or validate.")],
    output: Annotated[Path, typer.Option("--output", "-o")] = Path("gaze_calibration.json"),
    model: Annotated[str, typer.Option(help="offset, affine or quadratic")] = "quadratic",
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Fit a correction of gaze directions on nine points and validate it on others."""
    from calibration.gaze import calibrate, read_targets
    from edge.config import load
    from edge.files import refuse_source
    from edge.gaze.calibration import TERMS, write_calibration
    from edge.gaze.mapping import open_mapping
    from edge.gaze.sources import open_gaze
    from edge.records import RawGaze

    if model not in TERMS:
        raise typer.BadParameter(f"--model {model}: expected one of {', '.join(TERMS)}")
    refuse_source(output, recording, targets)
    config = load(overrides=[*as_overrides({"gaze.source": str(recording)}), *(set_ or [])]).gaze
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        samples = [mapping(raw) for raw in source]

    def to_degrees(x: float, y: float) -> tuple[float, float]:
        place = mapping.without_calibration(RawGaze(0, 0, x, y))
        return place.x_deg, place.y_deg

    report = calibrate(samples, read_targets(targets, to_degrees), model, device=source.info.device)  # type: ignore[arg-type]
    write_calibration(output, report.calibration)
    before, after = report.before, report.after
    if json:
        body = {
            "file": str(output),
            "fit_error_deg": report.calibration.fit_error_deg,
            "before": asdict(before),
            "after": asdict(after),
            "passed": after.passed,
        }
        options = {"recording": str(recording), "targets": str(targets), "model": model, "set": set_ or []}
        emit_json("gaze_calibration_report", options, body)
        return
    fitted = report.calibration
    print(f"{output}: {model}, {fitted.n_points} points, fit error {fitted.fit_error_deg:.3f} deg")
    if not after.n_targets:
        print("accuracy unknown: mark separate targets with use=validate")
        return
    print(f"validation on {after.n_targets} targets ({after.n_lost} without gaze):")
    print(f"  accuracy  {before.accuracy_deg:.3f} -> {after.accuracy_deg:.3f} deg (goal < 0.5)")
    print(f"  worst     {before.worst_deg:.3f} -> {after.worst_deg:.3f} deg (goal < 1.0)")
    print(f"  precision {after.rms_s2s_deg:.3f} deg RMS-S2S, {after.std_deg:.3f} deg std")
