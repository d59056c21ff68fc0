"""`python -m host_tools mos`: scores from raters."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from edge.commands.base import emit_json, named_columns
from edge.errors import ConfigError


class ScreenOn(str, Enum):
    z = "z"
    raw = "raw"


class Std(str, Enum):
    population = "population"
    sample = "sample"


class Rescale(str, Enum):
    bt500 = "bt500"
    minmax = "minmax"


class Ties(str, Enum):
    prompt = "prompt"
    degree = "degree"


def add(app: typer.Typer) -> None:
    app.command("mos")(mos)


def mos(
    ratings: Annotated[Path, typer.Argument(help="CSV: a matrix pictures x raters, or long votes with a header.")],
    screen_on: Annotated[ScreenOn, typer.Option(help="Screen standardised scores, or raw ones (BT.500).")] = ScreenOn.z,
    std: Annotated[Std, typer.Option(help="Standard deviation used in screening.")] = Std.population,
    rescale: Annotated[Rescale, typer.Option(help="How z becomes 0..5.")] = Rescale.bt500,
    ties: Annotated[Ties, typer.Option(help="Who wins a tied vote.")] = Ties.prompt,
    columns: Annotated[str, typer.Option(help="Column names: image=...,rater=...,category=...,degree=...")] = "",
    scale: Annotated[str, typer.Option(help="LOW:HIGH; scores outside are left out and counted.")] = "",
    model_rater: Annotated[
        list[str] | None, typer.Option(help="Rater that is a model: compared with people, never in the scores.")
    ] = None,
    labels: Annotated[str, typer.Option(help="Label set of the categories, or any; default memo6 if it fits.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Screen the raters, average their scores, name each picture's class, and say how far the raters agree."""
    from host_tools.memo import scores
    from host_tools.memo.mos import Options
    from host_tools.memo.ratings import read_ratings

    named = named_columns(columns, "image=NAME,rater=NAME,...")
    votes = read_ratings(ratings, columns=named, scale=_scale(scale), labels=labels)
    options = Options(screen_on=screen_on.value, std=std.value, rescale=rescale.value)
    body = scores.summarise_with_models(votes, options, model_rater or [], ties=ties.value)
    for line in (*votes.remarks.lines(), *body["notes"]):
        print(f"mos: {line}", file=sys.stderr)
    if as_json:
        settings = {"screen_on": screen_on.value, "std": std.value, "rescale": rescale.value, "ties": ties.value}
        reading = {"scale": scale, "labels": labels, "columns": columns, "model_rater": model_rater or []}
        emit_json("mos", {"ratings": str(ratings), **settings, **reading}, body)
    else:
        _print(body)


def _print(body: dict[str, Any]) -> None:
    print(f"{body['n_images']} pictures, {body['n_raters']} raters, {body['n_votes']} votes, {body['n_ties']} ties")
    for row in body["rejected"]:
        print(f"rejected {row['rater']} ({row['dimension']}): {row['reason']}")
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
