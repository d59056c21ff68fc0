"""Frame sources. One file each; live ones are child processes that hand frames over in shared memory."""

from __future__ import annotations

import os.path
from types import ModuleType
from typing import TYPE_CHECKING

from edge import plugins
from edge.errors import SourceError

if TYPE_CHECKING:
    from edge.capture.base import FrameSource
    from edge.config import SceneConfig
    from edge.records import Role

PACKAGE = "edge.capture"


def open_capture(scene: SceneConfig, role: Role) -> FrameSource:
    """Open the source that a camera section names, by the first plug-in that says the text is its own.

    Raises
    ------
    SourceError
        No source is named, no plug-in knows it, or it can't be opened.
    """
    return _plugin_for(scene, role).open_source(scene, role)


def is_live(scene: SceneConfig) -> bool:
    """Whether a camera section names a live source, on the host's clock; errors as `open_capture`."""
    return hasattr(_plugin_for(scene, "scene"), "open_reader")


def _plugin_for(scene: SceneConfig, role: Role) -> ModuleType:
    setting = "scene.source" if role == "scene" else "face_camera.source"
    if not scene.source:
        raise SourceError(setting, "names no source", fix="give a clip, a folder of pictures or a camera")
    # What looks like a file is asked last (paced:CLIP ends like one), but first where it is one: to open a clip, no
    # network's client need be imported.
    is_file = os.path.isfile(scene.source)
    for name in sorted(plugins.names(PACKAGE), key=lambda name: ((name in ("file", "images")) != is_file, name)):
        plugin = plugins.load(PACKAGE, name, setting=setting)
        if plugin.matches(scene.source):
            return plugin
    raise SourceError(
        scene.source, "is no clip, picture, folder or camera that is known here", expected="an existing path or a URL"
    )
