"""`emogaze calibrate`: gaze on nine points of a live stream, to validate a calibration or to fit one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge.commands.base import Json, Overrides, SettingsFile, as_overrides, emit_json

if TYPE_CHECKING:
    from edge.gaze.validation import Quality


def add(app: typer.Typer) -> None:
    app.command("calibrate")(calibrate)


def calibrate(
    config: SettingsFile = None,
    gaze: Annotated[str, typer.Option(help="Live gaze source, as in lsl:NAME.")] = "",
    targets: Annotated[
        Path | None, typer.Option(help="CSV of places x,y in the source's frame; default: a grid of nine.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.6, max=60, help="How long each target is looked at.")] = 2.0,
    pace: Annotated[float, typer.Option(min=0, help="Seconds to the next target; 0 = when Enter is pressed.")] = 0.0,
    validate: Annotated[
        bool, typer.Option("--validate", help="Print accuracy and precision; end with 1 if they miss their goals.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for gaze.csv and targets.csv, to fit on.")
    ] = None,
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Look at nine points: --validate measures the stream, -o DIR records what `python -m calibration gaze` fits."""
    from edge.config import load
    from edge.errors import ConfigError
    from edge.gaze.collect import collect, nine_places, read_places
    from edge.gaze.mapping import open_mapping
    from edge.gaze.sources import open_gaze
    from edge.gaze.validation import measure, quality

    if not validate and output is None:
        raise typer.BadParameter("say what for: --validate, or -o DIR")
    settings = load(config, [*as_overrides({"gaze.source": gaze} if gaze else {}), *(set_ or [])]).gaze
    with open_gaze(settings) as source:
        if not source.info.live:
            raise ConfigError(settings.source, "is no live stream", fix="`python -m calibration gaze` takes recordings")
        mapping = open_mapping(source, settings)
        places = read_places(targets) if targets else nine_places(source.info, source.geometry)
        session = collect(source, places, _cue(len(places), source.info.units, pace), seconds)
        info, geometry = source.info, source.geometry
    if output is not None:
        session.write(output, info, geometry)
        typer.echo(f"{output}: gaze.csv and targets.csv", err=True)
    if not validate:
        return
    measured = measure(map(mapping, session.gaze), session.targets(mapping))
    found = quality(measured)
    body = {
        **asdict(found),
        "passed": found.passed,
        "targets": [
            {"x": x, "y": y, "offset_deg": m.offset_deg, "std_deg": m.std_deg, "n_samples": m.n_samples}
            for (x, y), m in zip(places, measured, strict=True)
        ],
    }
    if json:
        emit_json("gaze_validation", {"source": settings.source, "calibration": settings.calibration}, body)
    else:
        for (x, y), m in zip(places, measured, strict=True):
            print(f"({x:8.2f}, {y:8.2f})  offset {m.offset_deg:6.3f} deg")
        _print_quality(found)
    if not found.passed:
        raise typer.Exit(1)


def _print_quality(found: Quality) -> None:
    accuracy = f"{found.accuracy_deg:.3f} deg on average (goal < 0.5), {found.worst_deg:.3f} at worst (goal < 1.0)"
    print(f"accuracy  {accuracy}")
    print(f"precision {found.rms_s2s_deg:.3f} deg RMS-S2S, {found.std_deg:.3f} deg standard deviation")
    print(f"{'passed' if found.passed else 'not passed'}; {found.n_lost} of {found.n_targets} targets without gaze")


def _cue(n: int, units: str, pace: float) -> Callable[[int, tuple[float, float]], None]:
    """Return what tells the person where to look, and waits for Enter or for `pace` seconds."""

    def cue(number: int, place: tuple[float, float]) -> None:
        where = f"target {number + 1} of {n}: look at ({place[0]:g}, {place[1]:g}) {units}"
        print(f"{where}{'' if pace else ' and press Enter'}", file=sys.stderr, flush=True)
        if pace:
            time.sleep(pace)
        else:
            sys.stdin.readline()

    return cue
