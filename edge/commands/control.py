"""`emogaze control`: ask a running device for its status, stop it, mark a moment, start and stop recording."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

Socket = Annotated[Path | None, typer.Option(help="The device's control socket; default: where it lies by default.")]


class Action(str, Enum):
    start = "start"
    stop = "stop"


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Ask a running device, or give it a command.", no_args_is_help=True)
    for command in (status, stop, mark, record):
        group.command()(command)
    app.add_typer(group, name="control")


def status(
    socket: Socket = None, json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Print the device's state, its streams and its counts."""
    from edge.commands.base import emit_json
    from edge.watch import status_lines

    found = _ask(socket, cmd="status")["status"]
    if json:
        emit_json("status", {"socket": str(socket or "")}, found)
    else:
        print("\n".join(status_lines(found)))


def stop(socket: Socket = None) -> None:
    """Stop the device: what is under way is finished, what was taken is kept."""
    _ask(socket, cmd="stop")


def mark(text: Annotated[str, typer.Argument(help="What happens now.")], socket: Socket = None) -> None:
    """Write a mark with the present time into the event log."""
    print(f"marked at {_ask(socket, cmd='mark', text=text)['t_ns'] / 1e9:.3f} s of the device's clock")


def record(action: Annotated[Action, typer.Argument(help="start or stop")], socket: Socket = None) -> None:
    """Start a recording session, or end the one that is on."""
    _ask(socket, cmd="record", action=action.value)


def _ask(socket: Path | None, **request: Any) -> dict[str, Any]:
    from edge.control import ask, running_path
    from edge.errors import SinkError

    path = socket or running_path()
    answer = ask(path, **request)
    if not answer["ok"]:
        raise SinkError(str(path), f"{request['cmd']} was refused: {answer['error']}")
    return answer
