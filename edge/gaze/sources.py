"""Opening a gaze source and its mapping from the settings."""

from __future__ import annotations

from pathlib import Path

from edge import plugins
from edge.config import GazeConfig
from edge.errors import ConfigError, SourceError
from edge.gaze.base import GazeSource
from edge.gaze.calibration import read_calibration
from edge.gaze.geometry import read_geometry
from edge.gaze.mapping import Mapping, make_mapping


def open_gaze(config: GazeConfig) -> GazeSource:
    """Open the source that `config.source` names, with the plug-in `config.format` or the first that knows it.

    Raises
    ------
    SourceError, ConfigError
        Nothing there, no plug-in knows it, or its frame, unit or times are undeclared.
    """
    if not config.source:
        raise ConfigError("gaze.source", "is empty", fix="name a gaze file, a recording folder or lsl:NAME")
    name = config.format or _plugin_of(config.source)
    source: GazeSource = plugins.load("edge.gaze", name, setting="gaze.format").open_source(config)
    return source


def open_mapping(source: GazeSource, config: GazeConfig, frame_size: tuple[int, int] | None = None) -> Mapping:
    """Return the mapping of an open source: the configured geometry, or else what the source knows of itself."""
    geometry = read_geometry(config.geometry) or source.geometry
    return make_mapping(source.info, geometry, frame_size, read_calibration(config.calibration))


def may_uncover(source: str) -> bool:
    """Whether gaze from `source` may decide which face is left uncovered.

    An LSL stream is unauthenticated input: it may only if both its source id and its host are pinned.
    """
    if not source.startswith("lsl:"):
        return True
    pinned = {part.partition("=")[0].strip() for part in source.removeprefix("lsl:").split(",")}
    return {"source_id", "hostname"} <= pinned


def _plugin_of(source: str) -> str:
    # A generic table is tried last: a vendor's export is one too.
    for name in sorted(plugins.names("edge.gaze"), key=lambda name: (name == "csv", name)):
        if plugins.load("edge.gaze", name, setting="gaze.format").matches(source):
            return name
    if not source.startswith("lsl:") and not Path(source).exists():
        raise SourceError(source, "no such file or folder")
    known = ", ".join(plugins.names("edge.gaze"))
    raise SourceError(source, "isn't a gaze source that is known by its looks", fix=f"set format to one of {known}")
