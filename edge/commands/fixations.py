"""`emogaze fixations`: find the fixations of a gaze recording."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from edge.commands.base import Json, as_overrides, emit_json, named_columns, progress


def add(app: typer.Typer) -> None:
    app.command("fixations")(fixations)


def fixations(
    file: Annotated[Path, typer.Argument(help="A gaze table (CSV, .npy) or a recording that a gaze plug-in reads.")],
    columns: Annotated[str, typer.Option(help="Columns of a table: t=..,x=..,y=..,valid=..")] = "",
    time_unit: Annotated[str, typer.Option(help="Unit of a table's times: s, ms, us or ns.")] = "",
    units: Annotated[str, typer.Option(help="Unit of x and y: px, norm, deg or vector.")] = "",
    frame: Annotated[
        str, typer.Option(help="Frame of x and y: scene_px, scene_norm, screen_px, screen_norm, direction.")
    ] = "",
    origin: Annotated[str, typer.Option(help="Where (0, 0) lies: top-left or bottom-left.")] = "top-left",
    geometry: Annotated[str, typer.Option(help="TOML file with [camera] or [screen].")] = "",
    format: Annotated[str, typer.Option(help="Gaze plug-in; default: told by the file.")] = "",
    no_merge: Annotated[bool, typer.Option("--no-merge", help="Don't join fixations close in time and place.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A threshold, as in fixations.velocity_deg_s=50; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Find fixations, blinks and gaps in a gaze recording, with the detector that runs live."""
    from edge.config import load, to_dict
    from edge.errors import SourceError
    from edge.gaze.fixations import detect
    from edge.gaze.mapping import open_mapping
    from edge.gaze.sources import open_gaze

    said = {"source": str(file), "time_unit": time_unit, "units": units, "frame": frame, "origin": origin}
    said |= {"geometry": geometry, "format": format}
    said |= {f"columns.{meaning}": name for meaning, name in named_columns(columns, "t=NAME,x=NAME,y=NAME").items()}
    overrides = as_overrides({f"gaze.{key}": value for key, value in said.items()})
    config = load(overrides=[*overrides, f"fixations.merge={str(not no_merge).lower()}", *(set_ or [])])
    with open_gaze(config.gaze) as source:
        if source.info.live:
            raise SourceError(str(file), "is a live stream", fix="record it first")
        mapping = open_mapping(source, config.gaze)
        if source.doubt:
            print(f"emogaze fixations: {file} {source.doubt}", file=sys.stderr)
        result = detect(map(mapping, progress(source, "fixations")), config.fixations, source.info.hz_declared)
    options = {
        **{key: getattr(config.gaze, key) for key in ("columns", "time_unit", "origin", "geometry")},
        "frame": source.info.frame,
        "units": source.info.units,
        "geometry_nominal": mapping.nominal,
        "simulated": source.info.simulated,
        "note": "; ".join(filter(None, (source.info.note, source.doubt))),
        "fixations": to_dict(config)["fixations"],
    }
    if json:
        emit_json("fixations", options, body(result))
        return
    simulated = "simulated " if source.info.simulated else ""
    print(f"{file}: {result.n_samples} {simulated}samples ({result.n_invalid} invalid) at {result.hz_measured:.1f} Hz")
    print(f"{len(result.fixations)} fixations, {len(result.blinks)} blinks, {len(result.gaps)} gaps")
    for f in result.fixations:
        start_s, length_ms = f.start_ns / 1e9, (f.end_ns - f.start_ns) / 1e6
        print(f"{start_s:10.3f} s {length_ms:6.0f} ms  ({f.x_deg:7.2f}, {f.y_deg:7.2f}) deg +- {f.dispersion_deg:.2f}")


def body(result: Any) -> dict[str, Any]:
    """Return the fields of `emogaze fixations --json`."""
    keys = ("start_ns", "end_ns", "x_px", "y_px", "x_deg", "y_deg", "dispersion_deg", "n_samples")
    intervals = {
        name: [{"start_ns": i.start_ns, "end_ns": i.end_ns} for i in getattr(result, name)]
        for name in ("blinks", "gaps", "clock_jumps")
    }
    return {
        "n_samples": result.n_samples,
        "n_invalid": result.n_invalid,
        "n_late": result.n_late,
        "hz_declared": result.hz_declared,
        "hz_measured": result.hz_measured,
        "fixations": [{key: getattr(f, key) for key in keys} for f in result.fixations],
        **intervals,
    }
