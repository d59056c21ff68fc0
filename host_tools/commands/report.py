"""`python -m host_tools report`: the page of one run, or of one evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge.commands.base import StudyIdentity

if TYPE_CHECKING:
    from host_tools.report.page import Page


def add(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    folder: Annotated[
        Path, typer.Argument(help="A run (summary.json, events.ndjson, redacted.mp4), a session, or an evaluation.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; default: report.html in it; of a session, here.")
    ] = None,
    identity: StudyIdentity = None,
    scores: Annotated[int, typer.Option(min=0, help="Scores whose evidence is shown with pictures; 0 = all.")] = 4,
    keys: Annotated[str, typer.Option(help="Key folder, whose audit log notes a session's page.")] = "",
) -> None:
    """Write one self-contained page: of a run of the runtime, of a recorded session, or of a finished evaluation."""
    import matplotlib

    from edge.files import private_files

    matplotlib.use("Agg")
    if any(folder.glob("*.chain")):
        path = output or Path(f"{folder.resolve().name}.report.html")
        page = _session_page(folder, identity, scores)
        with private_files():
            page.write(path)
        _note_export(folder, path, keys)
        print(f"{path}: not encrypted, keep it safe")
        return
    path, page = output or folder / "report.html", _page(folder, scores)
    with private_files():  # as what it is made of
        page.write(path)
    print(path)


def _page(folder: Path, scores: int) -> Page:
    from host_tools.evaluate import page as evaluation
    from host_tools.report.run_page import build_page

    if (folder / "summary.json").is_file() or not (folder / "results.json").is_file():
        return build_page(folder, shown=scores)
    return evaluation.build(evaluation.read_results(folder), folder)


def _session_page(session: Path, identity: Path | None, scores: int) -> Page:
    from host_tools.report.session_page import build_page

    return build_page(session, identity, shown=scores)


def _note_export(session: Path, path: Path, keys: str) -> None:
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(keys))
    append_audit(ring, "export", how="report", session=session.resolve().name, to=str(path.resolve()))
