"""`python -m host_tools saliency`: score a saliency map against fixations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge.commands.base import Json, emit_json, named_columns

if TYPE_CHECKING:
    from host_tools.metrics.saliency import SaliencyScores


def add(app: typer.Typer) -> None:
    app.command("saliency")(saliency)


def saliency(
    map_: Annotated[Path, typer.Option("--map", help="Saliency map: .npy (h, w) or a gray picture")],
    fixations: Annotated[
        Path, typer.Option(help="CSV, a row per fixation, x and y in pixels of the map; or a map .npy of counts")
    ],
    columns: Annotated[str, typer.Option(help="The CSV's columns if not called x and y: x=NAME,y=NAME")] = "",
    picture: Annotated[Path | None, typer.Option(help="The picture, to check that the map has its size")] = None,
    others: Annotated[Path | None, typer.Option(help="Fixations on other pictures, for the shuffled AUC")] = None,
    sigma_px: Annotated[float, typer.Option(min=0.1, help="Blur of the fixation density for cc, sim, kl")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Count a pixel that is fixated several times once")] = False,
    jitter: Annotated[str, typer.Option(help="Tie breaker of AUC-Judd: none, or a seed")] = "none",
    as_json: Json = False,
) -> None:
    """Score a saliency map: AUC-Judd, NSS, CC, SIM, KL, and shuffled AUC where other fixations are given."""
    from dataclasses import asdict

    from edge.errors import DataError
    from host_tools.datasets.maps import check_size, read_fixations, read_map
    from host_tools.metrics.saliency import score

    if jitter != "none" and not jitter.isdecimal():
        raise DataError("--jitter", f"{jitter!r} can't be read", expected="none, or a seed (a whole number)")
    values = read_map(map_)
    if picture:
        check_size(picture, values.shape, str(map_))
    named = named_columns(columns, "x=NAME,y=NAME")
    scores = score(
        values,
        *read_fixations(fixations, values.shape, named),
        sigma_px=sigma_px,
        once=once,
        jitter_seed=None if jitter == "none" else int(jitter),
        others=read_fixations(others, values.shape, named) if others else None,
    )
    body = {**asdict(scores), "jitter": jitter, "reason": _why_undefined(scores, fixations)}
    if body["reason"]:
        print(f"saliency: undefined, {body['reason']}", file=sys.stderr)
    files = {"map": map_, "fixations": fixations, "picture": picture, "others": others}
    options = {name: str(path) if path else None for name, path in files.items()}
    if as_json:
        emit_json("saliency", {**options, "columns": named, "sigma_px": sigma_px, "once": once, "jitter": jitter}, body)
    else:
        for name, value in (row for row in body.items() if row[1] != ""):
            print(f"{name:<14}{value:.6f}" if isinstance(value, float) else f"{name:<14}{value}")


def _why_undefined(scores: SaliencyScores, fixations: Path) -> str:
    if scores.n_fixations:
        return ""
    if scores.n_off_image:
        return f"all {scores.n_off_image} fixations of {fixations} lie off the map"
    return f"{fixations} holds no fixation"
