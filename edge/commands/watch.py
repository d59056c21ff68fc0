"""`emogaze watch`: a running device in the terminal."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from edge.live.watch import Feed, View


def add(app: typer.Typer) -> None:
    app.command("watch")(watch)


def watch(
    address: Annotated[str, typer.Argument(help="The device's sinks.publish; default: this machine's.")] = "",
    key: Annotated[Path | None, typer.Option(help="Your client key file, for a device that isn't this one.")] = None,
    device: Annotated[str, typer.Option(help="The device's public wire key, with --key.")] = "",
    socket: Annotated[Path | None, typer.Option(help="Control socket of the device of this machine.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="End after so long; 0 = when interrupted.")] = 0.0,
    once: Annotated[bool, typer.Option("--once", help="Wait for one report, print it and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --once: as one JSON object.")] = False,
) -> None:
    """Show state, scores and streams of a running device as they come."""
    from edge.commands.base import emit_json
    from edge.keys import read_wire_pair
    from edge.live.control import running_path
    from edge.live.watch import ControlFeed, View, status_lines, wire_feed

    path = socket or running_path()
    with ExitStack() as stack:
        feed: Feed
        if address:
            keys = read_wire_pair(key) if key else None
            feed = stack.enter_context(closing(wire_feed(address, keys, device)))
        else:
            feed = ControlFeed(path)
        if not once:
            _follow(feed, View(address or str(path)), seconds)
            return
        report = feed.report(seconds or 10.0)
        if json:
            emit_json("status", {"address": address or str(path)}, report)
        else:
            print("\n".join(status_lines(report)))


def _follow(feed: Feed, view: View, seconds: float) -> None:
    end = time.monotonic() + seconds if seconds else float("inf")
    with suppress(KeyboardInterrupt):
        (_draw if sys.stdout.isatty() else _print_lines)(feed, view, end)


def _draw(feed: Feed, view: View, end: float) -> None:
    from rich.live import Live

    with Live(view.render(), refresh_per_second=8, screen=False) as live:
        while time.monotonic() < end:
            for message in feed.receive(0.1):
                view.take(message)
            live.update(view.render())


def _print_lines(feed: Feed, view: View, end: float) -> None:
    """Where there is no terminal: what happens as it comes, and a line on the device each second."""
    print(f"{view.address}: waiting for its first report", file=sys.stderr)
    due = 0.0
    while (now := time.monotonic()) < end:
        for message in feed.receive(0.1):
            if line := view.take(message):
                print(line, flush=True)
        if view.health and now >= due:
            due = now + 1.0
            print(view.line(), flush=True)
