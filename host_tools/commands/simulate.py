"""`python -m host_tools simulate`: a gaze recording as an LSL stream, a clip as an MJPEG camera."""

from __future__ import annotations

import shlex
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Overrides, as_overrides


def add(app: typer.Typer) -> None:
    app.command("simulate")(simulate)


def simulate(
    gaze: Annotated[Path | None, typer.Option(help="Gaze recording to offer over LSL.")] = None,
    clip: Annotated[Path | None, typer.Option(help="Clip to serve as an MJPEG camera.")] = None,
    name: Annotated[str, typer.Option(help="Name of the gaze stream.")] = "SimulatedGaze",
    source_id: Annotated[str, typer.Option(help="Its source id.")] = "emogaze-simulate",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the camera; 0 = any free one.")] = 8090,
    clip_seconds: Annotated[float, typer.Option(min=0.1, help="Serve the clip's first seconds.")] = 20.0,
    eeg: Annotated[bool, typer.Option("--eeg", help="Also a simulated EEG, 14 channels at 128 Hz.")] = False,
    markers: Annotated[bool, typer.Option("--markers", help="Also a text marker each second.")] = False,
    environment: Annotated[Path | None, typer.Option(help="Environment cache, for the line that is printed.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="End after so long; 0 = when stopped.")] = 0.0,
    set_: Overrides = None,
) -> None:
    """Offer a gaze recording over LSL and a clip as an MJPEG camera, in step; print the line that runs on them."""
    from edge.config import load
    from edge.gaze.inlet import load_lsl
    from host_tools.serve_mjpeg import MjpegServer, clip_pictures
    from host_tools.simulate import GazeOutlet, SideStreams

    if gaze is None and clip is None and not (eeg or markers):
        raise typer.BadParameter("name something to offer: --gaze, --clip, --eeg or --markers")
    pictures, rate_hz = clip_pictures(clip, clip_seconds) if clip else ([], 0.0)
    players: list[GazeOutlet | SideStreams] = []
    camera = ""
    if gaze is not None:
        config = load(overrides=[*as_overrides({"gaze.source": str(gaze)}), *(set_ or [])]).gaze
        players.append(GazeOutlet(config, name, source_id, loop_s=len(pictures) / rate_hz if pictures else 0.0))
    if eeg or markers:
        players.append(SideStreams(eeg=eeg, markers=markers))
    stop = threading.Event()
    start_s = load_lsl("machine").local_clock() if players else 0.0
    if pictures:
        server = MjpegServer(pictures, rate_hz, port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        camera = server.url
    threads = [threading.Thread(target=player.play, args=(stop, start_s), daemon=True) for player in players]
    for thread in threads:
        thread.start()
    print("run on it from another terminal, until Ctrl-C ends it here:", file=sys.stderr)
    print(run_line(camera, name if gaze is not None else "", environment), flush=True)
    try:
        stop.wait(seconds or None)
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        for thread in threads:
            thread.join(2.0)


def run_line(camera: str, stream: str, environment: Path | None) -> str:
    """Return the command that runs on what is offered: a camera's URL, the name of a gaze stream."""
    words = ["emogaze", "run"]
    if camera:
        words += ["--camera", camera, "--set", "scene.frozen_ms=0"]  # a clip may hold still
    if stream:
        words += ["--gaze", f"lsl:{stream}"]
    if environment is not None:
        words += ["--set", f"environment.cache={environment}"]
    return shlex.join(words)
