"""`python -m host_tools gaze-simulate`: write a simulated gaze recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("gaze-simulate")(gaze_simulate)


def gaze_simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV to write.")],
    duration: Annotated[float, typer.Option(help="Seconds, without --targets.")] = 20.0,
    hz: Annotated[float, typer.Option(min=10, max=4000, help="Sample rate.")] = 200.0,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal files.")] = 1,
    targets: Annotated[
        Path | None, typer.Option(help="CSV start_s,end_s,x,y of what is looked at (pixels with --size, else degrees)")
    ] = None,
    size: Annotated[str, typer.Option(help="WxH of the scene picture: write its pixels instead of degrees")] = "",
    hfov: Annotated[float, typer.Option(min=10, max=170, help="Horizontal field of view of the scene camera.")] = 60.0,
    blinks: Annotated[float, typer.Option(min=0, max=60, help="Per minute.")] = 12.0,
    noise: Annotated[float, typer.Option(min=0, max=5, help="Standard deviation, degrees.")] = 0.05,
) -> None:
    """Write a gaze recording of a simulated eye (fixations, saccades, blinks, noise), marked as simulated."""
    from edge.files import refuse_source
    from edge.gaze.geometry import Camera
    from edge.gaze.simulator import EyeModel, free_looks, read_looks, simulate, write_csv

    refuse_source(output, targets)
    camera = None
    if size:
        try:
            width, height = (int(part) for part in size.lower().split("x"))
        except ValueError:
            raise typer.BadParameter(f"--size {size}: expected WIDTHxHEIGHT, as in 640x360") from None
        camera = Camera(width_px=width, height_px=height, hfov_deg=hfov).complete()
    eye = EyeModel(noise_deg=noise, blinks_per_min=blinks)
    looks = read_looks(targets, camera) if targets else free_looks(duration, seed, eye)
    gaze = simulate(looks, hz, seed, eye)
    write_csv(output, gaze, seed=seed, hz=hz, camera=camera)
    print(f"{output}: {len(gaze.t_s)} simulated samples, {len(gaze.fixations)} fixations, {len(gaze.blinks)} blinks")
