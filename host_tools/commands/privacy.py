"""`python -m host_tools privacy`: differentially private exports, the ledger, and what privacy costs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edge.commands.base import Json, StudyIdentity, emit_json

if TYPE_CHECKING:
    from edge.dp.ledger import Ledger

UnitName = Literal["fixation", "session", "person"]
Recordings = Annotated[list[Path], typer.Argument(help="Session folders, or event logs (.ndjson).")]
UnitOption = Annotated[UnitName, typer.Option(help="What is hidden: one fixation, a session, or a person.")]
LedgerOption = Annotated[Path, typer.Option(help="The ledger of what was spent.")]
BudgetEpsilon = Annotated[float, typer.Option(help="Epsilon that each session or person may spend in all.")]
BudgetDelta = Annotated[float, typer.Option(help="Delta that each may spend in all.")]
GridOption = Annotated[str, typer.Option(help="Fixation map, COLUMNSxROWS; empty = none.")]


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Differential privacy for gaze features (OpenDP).", no_args_is_help=True)
    for command in (export, balance, utility):
        group.command(command.__name__)(command)
    app.add_typer(group, name="privacy")


def export(
    recordings: Recordings,
    epsilon: Annotated[float, typer.Option(help="What this release costs.")],
    output: Annotated[Path, typer.Option("-o", help="The release, as JSON.")],
    delta: Annotated[float, typer.Option(help="Chance that the guarantee fails; needed by maps and series.")] = 0.0,
    unit: UnitOption = "session",
    grid: GridOption = "",
    series_s: Annotated[float, typer.Option(help="FCC series in steps of so many seconds; 0 = none.")] = 0.0,
    ledger: LedgerOption = Path("privacy_ledger.jsonl"),
    budget_epsilon: BudgetEpsilon = 8.0,
    budget_delta: BudgetDelta = 1e-5,
    identity: StudyIdentity = None,
) -> None:
    """Release statistics of fixations and FCC with noise. The budget is spent before anything is written."""
    from edge.files import refuse_source, write_json
    from host_tools.privacy.export import Release, read_recording, release

    try:
        what = Release(epsilon, delta, unit, _grid(grid), series_s)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    refuse_source(output, *recordings, ledger, identity)
    read = [read_recording(path, identity) for path in recordings]
    book = _ledger(ledger, budget_epsilon, budget_delta)
    body = release(read, what, book)
    write_json(output, {"schema": "emogaze.private_gaze", "version": 1, **body})
    for name, value in body["statistics"].items():
        print(f"{name:24} {value:.4g}")
    print(f"{output}: epsilon {epsilon:g}, delta {delta:g}, unit {unit}; kept in {ledger}")
    if "temporal_correlation" in body:
        print(f"temporal correlation: {body['temporal_correlation']}")


def balance(
    key: Annotated[str, typer.Argument(help="A session's name or a person's pseudonym.")],
    ledger: LedgerOption = Path("privacy_ledger.jsonl"),
    budget_epsilon: BudgetEpsilon = 8.0,
    budget_delta: BudgetDelta = 1e-5,
    json: Json = False,
) -> None:
    """Print what a session or person has spent of its budget."""
    from dataclasses import asdict

    found = _ledger(ledger, budget_epsilon, budget_delta).balance(key)
    if json:
        emit_json("privacy_balance", {"ledger": str(ledger)}, asdict(found))
        return
    print(
        f"{key}: epsilon {found.epsilon:g} of {found.budget_epsilon:g}, delta {found.delta:g} of {found.budget_delta:g}"
    )


def utility(
    recordings: Recordings,
    unit: UnitOption = "fixation",
    grid: GridOption = "8x6",
    draws: Annotated[int, typer.Option(min=10, help="Releases per epsilon.")] = 200,
    series_s: Annotated[float, typer.Option(help="Step of the FCC series, s.")] = 1.0,
    identity: StudyIdentity = None,
    json: Json = False,
) -> None:
    """Report what FCC and fixation statistics lose at epsilon 0.5, 1, 3 and 8. The report itself is not private."""
    from host_tools.privacy.export import fcc_series, read_recording
    from host_tools.privacy.utility import utility

    read = [read_recording(path, identity) for path in recordings]
    cells = _grid(grid) or (8, 6)
    body = utility([data for data, _ in read], fcc_series(read[0][1], series_s), unit, cells, draws)
    if json:
        options = {"unit": unit, "grid": grid, "draws": draws, "series_s": series_s}
        emit_json("privacy_utility", {"recordings": [str(p) for p in recordings], **options}, body)
        return
    _print_utility(body)


def _print_utility(body: dict[str, Any]) -> None:
    print(f"unit {body['unit']}, {body['draws']} draws; median error (95th percentile) of what is released")
    head = ["true", *(f"epsilon {row['epsilon']:g}" for row in body["rows"])]
    print(f"{'':22}" + "".join(f"{text:>22}" for text in head))
    for name, true in body["truth"].items():
        cells = [row["statistics"][name] for row in body["rows"]]
        _print_row(name, f"{true:.4g}", [f"{c['median']:.3g} ({c['p95']:.3g})" for c in cells])
    if "heatmap_correlation" in body["rows"][0]:
        cells = [row["heatmap_correlation"] for row in body["rows"]]
        _print_row("map correlation", "1", [f"{c['median']:.2f} (5 %: {c['p5']:.2f})" for c in cells])
    if "series_fcc_error" in body["rows"][0]:
        for name, label in (("every_value", "FCC series, plain"), ("low_frequencies", "FCC series, Fourier")):
            cells = [row["series_fcc_error"][name] for row in body["rows"]]
            _print_row(label, "0", [f"{c['median']:.3g} ({c['p95']:.3g})" for c in cells])


def _print_row(name: str, true: str, cells: list[str]) -> None:
    print(f"{name:22}{true:>22}" + "".join(f"{cell:>22}" for cell in cells))


def _ledger(path: Path, epsilon: float, delta: float) -> Ledger:
    from edge.dp.ledger import Ledger

    try:
        return Ledger(path, (epsilon, delta))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _grid(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,3})x(\d{1,3})", text)
    if not match or "0" in match.groups():
        raise typer.BadParameter(f"--grid {text}: expected COLUMNSxROWS, such as 8x6")
    return int(match[1]), int(match[2])
