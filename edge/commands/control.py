"""`emogaze control`: ask a running device for its status, stop it, mark a moment, start and stop recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edge.commands.base import Json, emit_json

Socket = Annotated[
    str,
    typer.Option(help="The device's control socket (default: where it lies by default), or its live.control_address."),
]
Key = Annotated[Path | None, typer.Option(help="Your client key file, for a device that isn't this one.")]
Device = Annotated[str, typer.Option(help="The device's public wire key, with --key.")]


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Ask a running device, or give it a command.", no_args_is_help=True)
    for command in (status, stop, mark, record):
        group.command()(command)
    app.add_typer(group, name="control")


def status(
    socket: Socket = "",
    key: Key = None,
    device: Device = "",
    json: Json = False,
) -> None:
    """Print the device's state, its streams and its counts."""
    from edge.live.watch import status_lines

    found = _ask(socket, key, device, cmd="status")["status"]
    if json:
        emit_json("status", {"socket": socket}, found)
    else:
        print("\n".join(status_lines(found)))


def stop(socket: Socket = "", key: Key = None, device: Device = "") -> None:
    """Stop the device: what is under way is finished, what was taken is kept."""
    answer = _ask(socket, key, device, cmd="stop")
    print(f"the device ends its run after {answer['pictures']} pictures and {answer['scores']} scores")


def mark(
    text: Annotated[str, typer.Argument(help="What happens now.")],
    socket: Socket = "",
    key: Key = None,
    device: Device = "",
) -> None:
    """Write a mark with the present time into the event log."""
    t_ns = _ask(socket, key, device, cmd="mark", text=text)["t_ns"]
    print(f"marked at {t_ns / 1e9:.3f} s of the device's clock")


def record(
    action: Annotated[Literal["start", "stop"], typer.Argument(help="start or stop")],
    socket: Socket = "",
    key: Key = None,
    device: Device = "",
) -> None:
    """Start a recording session, or end the one that is on."""
    answer = _ask(socket, key, device, cmd="record", action=action)
    if action == "start":
        print(f"recording into {answer['session']}")
    else:
        print("the recording ends; what was taken is brought to the disk")


def _ask(socket: str, key: Path | None, device: str, **request: Any) -> dict[str, Any]:
    from edge.errors import SinkError
    from edge.live.control import ask, running_path

    if key is None:
        path = Path(socket) if socket else running_path()
        thing, answer = str(path), ask(path, **request)
    else:
        thing, answer = socket, _ask_remote(socket, key, device, request)
    if not answer["ok"]:
        raise SinkError(thing, f"{request['cmd']} was refused: {answer['error']}")
    return answer


def _ask_remote(address: str, key: Path, device: str, request: dict[str, Any]) -> dict[str, Any]:
    from edge.keys import read_wire_pair
    from edge.live.remote import RemoteClient

    if "://" not in address:
        raise typer.BadParameter("--key needs --socket tcp://HOST:PORT, the device's live.control_address")
    client = RemoteClient(address, read_wire_pair(key), device)
    try:
        return client.ask(**request)
    finally:
        client.close()
