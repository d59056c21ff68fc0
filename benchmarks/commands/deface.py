"""`python -m benchmarks deface`: redaction against the `deface` package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import envelope


def add(app: typer.Typer) -> None:
    app.command("deface")(deface)


def deface(
    sources: Annotated[list[Path], typer.Argument(help="Clips, and stills that are shown for five seconds.")],
    program: Annotated[Path, typer.Option(help="The deface program, in an environment of its own.")],
    boxes: Annotated[
        Path | None, typer.Option(help="Faces that must be covered: a CSV with image, x, y, w, h[, use].")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Pairs of runs on each clip, besides the first.")] = 3,
    json: Annotated[Path | None, typer.Option("--json", help="Write all samples here.")] = None,
) -> None:
    """Print the CPU time per frame of both programs at their defaults, and the required faces that each missed."""
    import tempfile

    from benchmarks.deface import clip, compare, still_as_clip
    from benchmarks.machine import describe
    from edge.audit import read_boxes
    from edge.capture.images import matches as is_still
    from edge.files import write_json

    required = read_boxes(boxes) if boxes else {}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clips = [still_as_clip(p, folder, required.get(p.name, ())) if is_still(str(p)) else clip(p) for p in sources]
        for row in compare(clips, program, folder, repeats):
            rows.append(row)
            ours, theirs = row["emogaze"], row["deface"]
            ratios = row["ratios"]
            print(
                f"{row['clip']}: {ours['median_ms']:.1f} against {theirs['median_ms']:.1f} ms of CPU a frame, "
                f"{row['ratio']:.1f} times ({min(ratios):.1f} to {max(ratios):.1f} in {len(ratios)} pairs); "
                f"required faces missed: {ours['missed']} against {theirs['missed']} of {ours['required']}"
            )
    if json:
        options = {"program": str(program), "boxes": str(boxes or ""), "repeats": repeats}
        write_json(json, envelope("benchmark_deface", options, {"machine": describe(), "clips": rows}))
