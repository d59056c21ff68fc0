"""`python -m host_tools cawf1`: all readings of cawF1 from a table of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.commands.base import Json, emit_json

if TYPE_CHECKING:
    from host_tools.metrics.checks import Check


def add(app: typer.Typer) -> None:
    app.command("cawf1")(cawf1)


def cawf1(
    samples: Annotated[Path, typer.Argument(help="CSV or Parquet: sample_id, participant, true, pred, fcc, ...")],
    labels: Annotated[str, typer.Option(help="Label set, or labels with commas; default: told by the labels")] = "",
    map_: Annotated[list[str], typer.Option("--map", help="Map that changes a meaning, e.g. worry-to-fear")] = [],
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap")] = 0,
    kappa: Annotated[str, typer.Option(help="Agreement of the annotators of fixation labels, e.g. cohen=0.81")] = "",
    sync_ms: Annotated[float | None, typer.Option(min=0, help="Largest synchronisation error, ms")] = None,
    att_weights: Annotated[str, typer.Option(help="maF1 weights, e.g. gaze=0.7,voice=0.3; default: equal")] = "",
    as_json: Json = False,
) -> None:
    """Score a table of samples: every reading of cawF1 with its base, intervals, per-class F1 and checks."""
    from edge.errors import DataError
    from host_tools.evaluate import cawf1 as ev
    from host_tools.metrics import checks as ck
    from host_tools.samples import read_samples

    table = read_samples(samples, labels=labels, maps=map_)
    body = ev.evaluate(
        table,
        n_resamples=resamples,
        seed=seed,
        kappa=_kappa(kappa),
        sync=ck.synchronisation(sync_ms),
    )
    if att_weights and not table.attention:
        raise DataError("--att-weights", "there is no att_ column to weigh", fix="add att_gaze, ... to the table")
    if table.attention:
        body["maf1"] = ev.joint(table, _weights(att_weights, list(table.attention)), resamples, seed)
    options = {
        "samples": str(samples),
        "labels": table.samples.labels.name,
        "maps": map_,
        "resamples": resamples,
        "seed": seed,
        "kappa": kappa,
        "sync_ms": sync_ms,
        "att_weights": att_weights,
    }
    if as_json:
        emit_json("cawf1", options, body)
    else:
        print("\n".join(_text(body)))


def _kappa(text: str) -> Check:
    from edge.errors import DataError
    from host_tools.metrics.checks import kappa

    if not text:
        return kappa(None, "")
    kind, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not -1 <= number <= 1:
        expected = "cohen=0.81 or fleiss=0.81, from -1 to 1"
        raise DataError("--kappa", f"{text!r} is no agreement", expected=expected)
    return kappa(number, kind.strip())


def _weights(text: str, modalities: list[str]) -> list[float]:
    from edge.errors import DataError

    if not text:
        return [1.0] * len(modalities)
    given = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            given[name.strip()] = float(value)
        except ValueError:
            raise DataError("--att-weights", f"{part!r} can't be read", expected="gaze=0.7,voice=0.3") from None
    if set(given) != set(modalities) or min(given.values()) < 0 or sum(given.values()) <= 0:
        expected = "a weight of at least 0 for each of " + ", ".join(modalities)
        raise DataError("--att-weights", "don't fit the att_ columns", expected=expected, got=text)
    return [given[name] for name in modalities]


def _text(body: dict[str, Any]) -> list[str]:
    scope = f"{body['n']} samples, {body['n_without_fcc']} without FCC"
    lines = [f"{scope}; cawF1 applies: {body['applies']} ({body['applies_reason']})", ""]
    lines.append(f"{'reading':<18}{'value':>8}  {'95 % interval':<18}{'base':>8}{'p':>8}")
    for name, row in body["scores"].items():
        low, high = row["ci95"]
        lines.append(f"{name:<18}{row['value']:>8.4f}  [{low:.4f}, {high:.4f}]  {row['base']:>8.4f}{row['p']:>8.3f}")
    lines += ["", f"{'class':<18}{'true':>8}{'pred':>8}{'F1':>8}{'mean FCC':>10}"]
    for label, row in body["per_class"].items():
        lines.append(f"{label:<18}{row['n_true']:>8}{row['n_pred']:>8}{row['f1']:>8.4f}{row['mean_fcc']:>10.4f}")
    lines += ["", *(f"{check['status']:<8}{check['name']}: {check['text']}" for check in body["checks"])]
    return [*lines, *(f"note: {note}" for note in body["notes"])]
