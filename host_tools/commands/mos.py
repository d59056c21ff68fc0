"""`python -m host_tools mos`: scores from raters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edge.commands.base import Json, emit_json, named_columns
from edge.errors import ConfigError


def add(app: typer.Typer) -> None:
    app.command("mos")(mos)


def mos(
    ratings: Annotated[Path, typer.Argument(help="CSV: a matrix pictures x raters, or long votes with a header.")],
    screen_on: Annotated[
        Literal["z", "raw"], typer.Option(help="Screen standardised scores, or raw ones (BT.500).")
    ] = "z",
    std: Annotated[
        Literal["population", "sample"], typer.Option(help="Standard deviation used in screening.")
    ] = "population",
    rescale: Annotated[Literal["bt500", "minmax"], typer.Option(help="How z becomes 0..5.")] = "bt500",
    ties: Annotated[Literal["prompt", "degree"], typer.Option(help="Who wins a tied vote.")] = "prompt",
    columns: Annotated[str, typer.Option(help="Column names: image=...,rater=...,category=...,degree=...")] = "",
    scale: Annotated[str, typer.Option(help="LOW:HIGH; scores outside are left out and counted.")] = "",
    model_rater: Annotated[
        list[str] | None, typer.Option(help="Rater that is a model: compared with people, never in the scores.")
    ] = None,
    labels: Annotated[str, typer.Option(help="Label set of the categories, or any; default memo6 if it fits.")] = "",
    as_json: Json = False,
) -> None:
    """Screen the raters, average their scores, name each picture's class, and say how far the raters agree."""
    from host_tools.memo import scores
    from host_tools.memo.mos import Options
    from host_tools.memo.ratings import read_ratings

    named = named_columns(columns, "image=NAME,rater=NAME,...")
    votes = read_ratings(ratings, columns=named, scale=_scale(scale), labels=labels)
    options = Options(screen_on=screen_on, std=std, rescale=rescale)
    body = scores.summarise_with_models(votes, options, model_rater or [], ties=ties)
    for line in (*votes.remarks.lines(), *body["notes"]):
        print(f"mos: {line}", file=sys.stderr)
    if as_json:
        settings = {"screen_on": screen_on, "std": std, "rescale": rescale, "ties": ties}
        reading = {"scale": scale, "labels": labels, "columns": columns, "model_rater": model_rater or []}
        emit_json("mos", {"ratings": str(ratings), **settings, **reading}, body)
    else:
        _print(body)


def _print(body: dict[str, Any]) -> None:
    print(f"{body['n_images']} pictures, {body['n_raters']} raters, {body['n_votes']} votes, {body['n_ties']} ties")
    for row in body["rejected"]:
        print(f"rejected rater {row['rater']} ({row['dimension']}): {row['reason']}")
    for row in body["model_raters"]:
        print(f"{row['rater']} against people: accuracy {row['accuracy']:.4f}, kappa {row['kappa']:.4f}, n {row['n']}")
    for name, value in body["agreement"].items():
        print(f"{name} {value:.4f}")
    for row in body["images"]:
        values = "  ".join(f"{k} {v:.4f}" for k, v in row.items() if k.startswith("mos"))
        print("  ".join(filter(None, (str(row["id"]), row.get("category") or "", values, f"n {row['n']}"))))


def _scale(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--scale {text}", "can't be read", expected="LOW:HIGH, such as 0:5") from None
    if low >= high:
        raise ConfigError(f"--scale {text}", "is empty", expected="LOW below HIGH")
    return low, high
