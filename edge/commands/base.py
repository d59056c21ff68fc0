"""What the commands share: JSON output with a stable envelope, and progress on long work."""

from __future__ import annotations

import errno
import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from edge import plugins
from edge.errors import ConfigError, EmoGazeError
from edge.files import plain
from edge.stopping import exit_on_signals

T = TypeVar("T")
PROGRESS_LINE_S = 60.0
NEIGHBOURS = 30  #: characters that are shown on either side of one that can't be written

# Options that many commands have.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SettingsFile = Annotated[Path | None, typer.Option("--config", "-c", help="TOML file with the settings.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, section.key=value; repeatable, wins over the file."),
]
KeysDir = Annotated[str, typer.Option("--keys", help="Key folder; default EMOGAZE_KEYS, else ~/.config/emogaze/keys.")]
StudyIdentity = Annotated[
    Path | None, typer.Option("--identity", "-i", help="File with an identity of the study, which opens sessions.")
]
ModelsDir = Annotated[str, typer.Option("--dir", help="Folder of artefacts [~/.cache/emogaze/models].")]


def run(app: typer.Typer, name: str) -> None:
    """Run a command line. What a user can mend ends in one line on stderr and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # no name of a file is worth losing what is said of it
    try:
        with exit_on_signals(name):
            app(prog_name=name)
    except EmoGazeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(141)
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - NEIGHBOURS) : error.end + NEIGHBOURS]
        print(f"{name}: {around!a}: is no {error.encoding.upper()}; rename the file or folder", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        thing = "output" if error.filename is None else error.filename
        print(f"{name}: {thing}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def folder_app(package: str, help_text: str) -> typer.Typer:
    """Return the command line of `python -m package`: every command in the folder `package.commands`."""
    app = new_app(package, help_text)
    app.callback()(lambda: None)
    add_commands(app, f"{package}.commands")
    return app


def add_commands(app: typer.Typer, package: str) -> None:
    """Put every command of a folder on a command line."""
    for name in plugins.names(package):
        plugins.load(package, name, setting="command").add(app)


def new_app(name: str, help_text: str) -> typer.Typer:
    """Return an empty command line in the house's manner."""
    return typer.Typer(
        name=name,
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def as_overrides(given: dict[str, str]) -> list[str]:
    """Return texts, by the setting that each is for, as ``section.key="text"``, which `edge.config.load` takes."""
    return [f"{key}={json.dumps(text, ensure_ascii=False)}" for key, text in given.items()]


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def named_columns(text: str, meanings: str) -> dict[str, str]:
    """Read what an option `--columns MEANING=NAME,...` says; `meanings` is how the error spells what was expected.

    Raises
    ------
    ConfigError
        A part is no MEANING=NAME.
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if bad := [key for key, _, name in pairs if not key.strip() or not name.strip()]:
        raise ConfigError(f"--columns {text}", f"{bad[0]!r} names no column", expected=meanings)
    return {key.strip(): name.strip() for key, _, name in pairs}


def emit_json(schema: str, options: dict[str, Any], body: dict[str, Any], *, version: int = 1) -> None:
    """Print one JSON object, as `envelope` makes it. NaN becomes null."""
    print(json.dumps(plain(envelope(schema, options, body, version=version)), ensure_ascii=False, allow_nan=False))


def envelope(schema: str, options: dict[str, Any], body: dict[str, Any], *, version: int = 1) -> dict[str, Any]:
    """Return what every JSON document of a command is: `schema`, `version`, `options`, then `body`."""
    return {"schema": f"emogaze.{schema}", "version": version, "options": options, **body}


def progress(
    items: Iterable[T], label: str, total: int | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """Iterate over `items` with a progress bar on a terminal; elsewhere a line on stderr tells every minute."""
    if not sys.stderr.isatty():
        yield from _with_lines(items, label, total, clock)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=label, total=total, console=Console(stderr=True), transient=True)


def _with_lines(items: Iterable[T], label: str, total: int | None, clock: Callable[[], float]) -> Iterator[T]:
    of = total if total is not None or not isinstance(items, Sized) else len(items)
    said = clock()
    for done, item in enumerate(items):
        if clock() - said >= PROGRESS_LINE_S:
            said = clock()
            print(f"{label}: {done}" + (f" of {of}" if of is not None else ""), file=sys.stderr, flush=True)
        yield item
