"""Gaze sources, one file each: recordings, live streams, and recordings played as if they were live."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from edge import plugins
from edge.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from edge.config import GazeConfig
    from edge.gaze.sources.base import GazeSource

PACKAGE = "edge.gaze.sources"


def open_gaze(config: GazeConfig) -> GazeSource:
    """Open the source that `config.source` names, with the plug-in `config.format` or the first that knows it.

    Raises
    ------
    SourceError, ConfigError
        Nothing there, no plug-in knows it, or its frame, unit or times are undeclared.
    """
    if not config.source:
        raise ConfigError("gaze.source", "is empty", fix="name a gaze file, a recording folder or lsl:NAME")
    plugin = _load(config.format) if config.format else _plugin_for(config.source)
    source: GazeSource = plugin.open_source(config)
    return source


def may_uncover(source: str) -> bool:
    """Whether gaze from `source` may decide which face is left uncovered.

    An LSL stream is unauthenticated input: it may only if both its source id and its host are pinned.
    """
    if not source.startswith("lsl:"):
        return True
    pinned = {part.partition("=")[0].strip() for part in source.removeprefix("lsl:").split(",")}
    return {"source_id", "hostname"} <= pinned


def _load(name: str) -> ModuleType:
    return plugins.load(PACKAGE, name, setting="gaze.format")


def _plugin_for(source: str) -> ModuleType:
    # A generic table is tried last: a vendor's export is one too.
    for name in sorted(plugins.names(PACKAGE), key=lambda name: (name == "csv", name)):
        plugin = _load(name)
        if plugin.matches(source):
            return plugin
    if not source.startswith("lsl:") and not Path(source).exists():
        raise SourceError(source, "no such file or folder")
    known = ", ".join(plugins.names(PACKAGE))
    raise SourceError(source, "is no gaze source that is known by its looks", fix=f"set gaze.format to one of {known}")
