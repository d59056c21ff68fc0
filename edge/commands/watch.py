"""`emogaze watch`: a running device in the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from edge.watch import View
    from edge.wire import Subscriber


def add(app: typer.Typer) -> None:
    app.command("watch")(watch)


def watch(
    address: Annotated[str, typer.Argument(help="The device's sinks.publish.")] = "tcp://127.0.0.1:5571",
    key: Annotated[Path | None, typer.Option(help="Your client key file, for a device that isn't this one.")] = None,
    device: Annotated[str, typer.Option(help="The device's public wire key, with --key.")] = "",
    seconds: Annotated[float, typer.Option(min=0, help="End after so long; 0 = when interrupted.")] = 0.0,
    once: Annotated[bool, typer.Option("--once", help="Wait for one report, print it and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --once: as one JSON object.")] = False,
) -> None:
    """Show state, scores and streams of a running device as they come."""
    from edge.commands.base import emit_json
    from edge.errors import SinkError
    from edge.keys import read_wire_pair
    from edge.watch import TOPICS, View, status_lines
    from edge.wire import Subscriber

    keys = read_wire_pair(key) if key else None
    with Subscriber(address, TOPICS, keys=keys, device=device) as subscriber:
        if not once:
            _follow(subscriber, View(address), seconds)
            return
        end = time.monotonic() + (seconds or 10.0)
        while time.monotonic() < end:
            message = subscriber.receive(0.2)
            if message is not None and message.topic == "health":
                if json:
                    emit_json("status", {"address": address}, message.payload)
                else:
                    print("\n".join(status_lines(message.payload)))
                return
        raise SinkError(address, "nothing is published here", fix="is a runtime on, with sinks.publish set to this?")


def _follow(subscriber: Subscriber, view: View, seconds: float) -> None:
    from rich.live import Live

    end = time.monotonic() + seconds if seconds else float("inf")
    with Live(view.render(), refresh_per_second=8, screen=False) as live:
        try:
            while time.monotonic() < end:
                message = subscriber.receive(0.1)
                if message is not None:
                    view.take(message)
                live.update(view.render())
        except KeyboardInterrupt:
            pass
