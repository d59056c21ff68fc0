"""`emogaze`: the command line. Commands live in `edge/commands`, one file each."""

from __future__ import annotations

import os
import platform
from typing import Annotated

import typer

from edge import __version__
from edge.commands.base import add_commands, emit_json, new_app, run

app = new_app("emogaze", "EmoGaze Edge: scores how what a person looks at fits the scene, and covers every other face.")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --version: as JSON.")] = False,
) -> None:
    if version:
        if json:
            machine = {"python": platform.python_version(), "machine": platform.machine()}
            emit_json("version", {}, {"emogaze": __version__, **machine})
        else:
            print(f"emogaze {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise typer.BadParameter("a command is missing; `emogaze --help` lists them")


add_commands(app, "edge.commands")


def main() -> None:
    """Run `emogaze`."""
    # Before NumPy is imported: it starts a thread a core, which cost 0.3 s of CPU, and its matrices here are small.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(app, "emogaze")


if __name__ == "__main__":
    main()
