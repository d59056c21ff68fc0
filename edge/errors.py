"""What can go wrong, and how it is said.

    EmoGazeError
    ├── ConfigError          a setting is unknown, out of bounds or contradicts another
    ├── SourceError          a camera, clip, gaze file or stream can't be used
    │   ├── AbsentError      it isn't there, and may come
    │   ├── EmptyError       it is there, whole, and holds nothing
    │   └── StalledError     it was there and stopped delivering
    ├── ModelError           an artefact is missing, altered or doesn't fit
    │   └── BackendError     an inference runtime is missing or failed
    ├── CacheError           an environment cache can't be used
    ├── SinkError            an output can't be written
    │   └── RecordingError   a recording can't be started, kept or read
    ├── KeyFileError         a key is missing, wrong or readable by others
    └── DataError            a table, rating or label set is not what it says

An error names the thing, what was expected, what came, and what to do. Wrong arguments of a function are ValueError or
TypeError; these classes are for what a user can mend.
"""

from __future__ import annotations

from functools import partial
from typing import Any


class EmoGazeError(Exception):
    """Base of all errors that a user can mend.

    Parameters
    ----------
    thing : str
        What is wrong, by its name: a path, a setting, a stream.
    problem : str
        What is the matter with it.
    expected, got : str, optional
        What should have been there, and what was.
    fix : str, optional
        What to do about it.
    """

    def __init__(self, thing: str, problem: str, *, expected: str = "", got: str = "", fix: str = "") -> None:
        self.thing, self.problem, self.expected, self.got, self.fix = thing, problem, expected, got, fix
        detail = "".join(
            f"; {label}{text}" for label, text in (("expected ", expected), ("got ", got), ("", fix)) if text
        )
        super().__init__(f"{thing}: {problem}{detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception's own pickling knows no keyword arguments, and a worker process must be able to hand it over.
        return partial(type(self), expected=self.expected, got=self.got, fix=self.fix), (self.thing, self.problem)


class ConfigError(EmoGazeError):
    """A setting is unknown, out of bounds or contradicts another."""


class SourceError(EmoGazeError):
    """A camera, clip, gaze file or stream can't be used."""


class AbsentError(SourceError):
    """A source isn't there (refused connection, no such device); it may come, so a live source is tried again."""


class EmptyError(SourceError):
    """A recording is there and holds nothing: who evaluates many may count it and go on."""


class StalledError(SourceError):
    """A source was there and stopped delivering."""


class ModelError(EmoGazeError):
    """A model artefact is missing, altered or doesn't fit."""


class BackendError(ModelError):
    """An inference runtime is missing or failed."""


class CacheError(EmoGazeError):
    """An environment cache can't be used."""


class SinkError(EmoGazeError):
    """An output can't be written."""


class RecordingError(SinkError):
    """A recording can't be started, kept or read."""


class KeyFileError(EmoGazeError):
    """A key is missing, wrong or readable by others."""


class DataError(EmoGazeError):
    """A table, rating or label set is not what it says."""
