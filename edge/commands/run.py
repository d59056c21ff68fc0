"""`emogaze run`: the whole pipeline on a scene camera and an eye tracker, or on their recordings."""

from __future__ import annotations

from typing import Annotated

import typer

from edge.commands.base import Json, Overrides, SettingsFile, as_overrides, emit_json, progress

OUTPUT_FAILED = 3  #: exit code of a run that did what it was asked for, but for an output that failed
NOTHING_SCORED = 4  #: of one that was stopped while it still waited for a source


def add(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    config: SettingsFile = None,
    camera: Annotated[str, typer.Option(help="Scene camera or clip; wins over the file.")] = "",
    gaze: Annotated[str, typer.Option(help="Gaze recording or stream; wins over the file.")] = "",
    preset: Annotated[str, typer.Option(help="clinical, in-car or bench")] = "",
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Score what is looked at, cover every other face, write what the settings ask for."""
    from edge.capture import is_live
    from edge.config import load
    from edge.errors import ConfigError
    from edge.files import private_files
    from edge.keys import harden_process
    from edge.outputs import public_settings, refuse_overwriting
    from edge.stopping import stop_on_signals

    given = {key: text for key, text in (("scene.source", camera), ("gaze.source", gaze)) if text}
    settings = load(config, [*(set_ or []), *as_overrides(given)], preset=preset)
    needed = {"--camera": ("scene.source", settings.scene.source), "--gaze": ("gaze.source", settings.gaze.source)}
    unset = {option: key for option, (key, value) in needed.items() if not value}
    if unset:
        fix = f"set it in a file (-c) or with {' and '.join(unset)}"
        raise ConfigError(" and ".join(unset.values()), "not set", fix=fix)
    refuse_overwriting(settings, config)
    harden_process()
    with private_files(), stop_on_signals() as stop:
        if is_live(settings.scene):
            from edge.live.run import run_live

            summary = run_live(settings, stop)
        else:
            from edge.app import run as run_files

            summary = run_files(settings, stop=stop, watch=lambda frames, total: progress(frames, "run", total))
    if json:
        emit_json("run", public_settings(settings), summary.as_dict())
    else:
        for line in summary.lines():
            print(line)
    if summary.missing:
        raise typer.Exit(NOTHING_SCORED)
    if summary.sink_errors:
        raise typer.Exit(OUTPUT_FAILED)
    if summary.stopped:
        raise typer.Exit(stop.exit_code)
