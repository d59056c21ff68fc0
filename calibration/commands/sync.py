"""`python -m calibration sync`: estimate the delay between a scene camera and a gaze stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, Overrides, as_overrides, emit_json


def add(app: typer.Typer) -> None:
    app.command("sync")(sync)


def sync(
    clip: Annotated[Path, typer.Argument(help="Clip of the scene camera.")],
    gaze: Annotated[Path, typer.Argument(help="Gaze recorded with it.")],
    max_lag_ms: Annotated[float, typer.Option(min=10, max=5000, help="Offsets up to this are tried.")] = 500.0,
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Estimate gaze.offset_ms: record 10 s or more of looking at one fixed point while turning the head to and fro."""
    from calibration.sync import CLEAR_CORRELATION, estimate_offset, gaze_motion, image_motion
    from edge.capture import open_capture
    from edge.config import load
    from edge.errors import DataError
    from edge.gaze.mapping import open_mapping
    from edge.gaze.sources import open_gaze

    config = load(overrides=[*as_overrides({"scene.source": str(clip), "gaze.source": str(gaze)}), *(set_ or [])])
    with open_capture(config.scene, "scene") as scene, open_gaze(config.gaze) as source:
        mapping = open_mapping(source, config.gaze, (scene.info.width, scene.info.height))
        found = estimate_offset(image_motion(scene), gaze_motion(map(mapping, source)), max_lag_ms)
    if json:
        body = {"offset_ms": found.offset_ms, "correlation": found.correlation, "overlap_s": found.overlap_s}
        options = {"clip": str(clip), "gaze": str(gaze), "max_lag_ms": max_lag_ms}
        emit_json("gaze_sync", options, {**body, "clear": found.clear})
    elif found.clear:
        print(f"gaze.offset_ms = {config.gaze.offset_ms + found.offset_ms:.1f}")
        print(f"# correlation {found.correlation:.2f} over {found.overlap_s:.1f} s")
    else:
        raise DataError(
            "synchronisation",
            "gaze and picture don't move together clearly enough",
            expected=f"a correlation of at least {CLEAR_CORRELATION:g}",
            got=f"{found.correlation:.2f}",
            fix="look at one fixed point and turn the head to and fro for 10 s",
        )
