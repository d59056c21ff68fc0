"""`python -m host_tools rerun`: recompute the scores of an event log and compare them bit for bit."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, StudyIdentity, emit_json, progress


def add(app: typer.Typer) -> None:
    app.command("rerun")(rerun)


def rerun(
    events: Annotated[Path, typer.Argument(help="Event log written by `emogaze run`, or a session folder.")],
    cache: Annotated[Path | None, typer.Option(help="Environment cache, if it moved.")] = None,
    identity: StudyIdentity = None,
    json: Json = False,
) -> None:
    """Recompute every score from the log; exit 0 if all are the same bit for bit, 3 if any differs."""
    from edge.session.read import open_log
    from host_tools.rerun import rerun as recompute

    outcome, scores = recompute(progress(open_log(events, identity), "rerun"), str(events), cache=cache)
    if json:
        options = {"events": str(events), "cache": str(cache or "")}
        fields = asdict(outcome)
        emit_json("rerun", options, {**fields, "identical": outcome.identical, "fcc": [s.fcc for s in scores]})
    else:
        print(f"{outcome.scores_equal} of {outcome.scores} scores are the same bit for bit")
        print(f"{outcome.fixations_equal} of {outcome.fixations} fixations are the same bit for bit")
        for line in outcome.notes():
            print(line)
        for line in outcome.differences[:20]:
            print(f"  {line}")
    if not outcome.identical:
        sys.exit(3)
