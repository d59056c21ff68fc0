"""What an LSL stream's description says of its gaze channels, live or in an XDF file.

Two vocabularies are read: the XDF gaze metadata (channel type ScreenX/ScreenY/Confidence/PupilDiameter..., unit, and
coordinate_system `screen` or `world`), and a node `emogaze` with what this project's own outlets declare: frame, units,
origin, geometry, simulated.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from edge.errors import SourceError
from edge.gaze.geometry import read_geometry
from edge.gaze.recorded import Declared

Channel = dict[str, str]

#: Meaning -> test on (label, type), in lower case; the first channel that passes is taken.
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "x": lambda label, kind: label in ("x", "gaze x", "gaze_x", "xpos", "norm_pos_x") or kind == "screenx",
    "y": lambda label, kind: label in ("y", "gaze y", "gaze_y", "ypos", "norm_pos_y") or kind == "screeny",
    "valid": lambda label, kind: label in ("valid", "validity") or kind == "validity",
    "confidence": lambda label, kind: label == "confidence" or kind == "confidence",
    "pupil_mm": lambda label, kind: label in ("pupil_mm", "pupil diameter") or kind == "pupildiameter",
    "openness": lambda label, kind: label in ("openness", "eye openness"),
}
_UNITS = {
    **dict.fromkeys(("px", "pixel", "pixels"), "px"),
    **dict.fromkeys(("norm", "normalized", "normalised"), "norm"),
    **dict.fromkeys(("deg", "degree", "degrees"), "deg"),
    "vector": "vector",
}


def channels_of(desc: Any) -> list[Channel]:
    """Return the channels of a description as pyxdf gives it: nested dicts of lists."""
    if not isinstance(desc, dict):
        return []
    found = []
    for channels in desc.get("channels") or []:
        for channel in (channels or {}).get("channel") or []:
            found.append({key: str(value[0]) for key, value in channel.items() if value and value[0] is not None})
    return found


def plain_xml(xml: str) -> Any:
    """Return an LSL stream's XML as nested dicts of lists, as pyxdf does for a file."""

    def walk(element: ET.Element) -> Any:
        if not len(element):
            return (element.text or "").strip()
        nested: dict[str, list[Any]] = {}
        for child in element:
            nested.setdefault(child.tag, []).append(walk(child))
        return nested

    return walk(ET.fromstring(xml))


def choose_channels(source: str, channels: list[Channel], n_channels: int, wanted: dict[str, str]) -> dict[str, int]:
    """Return {meaning: channel index}: declared ones by label or number, others by what the description says.

    Raises
    ------
    SourceError
        A declared channel isn't there, or x or y can't be told.
    """
    labels = [channel.get("label", "") for channel in channels]
    chosen: dict[str, int] = {}
    for meaning, name in wanted.items():
        if name in labels:
            chosen[meaning] = labels.index(name)
        elif name.isdigit() and int(name) < n_channels:
            chosen[meaning] = int(name)
        else:
            raise SourceError(source, f"has no channel {name!r}", got=", ".join(labels) or f"0 to {n_channels - 1}")
    for meaning, test in _TESTS.items():
        for i, channel in enumerate(channels[:n_channels]):
            if meaning not in chosen and test(channel.get("label", "").lower(), channel.get("type", "").lower()):
                chosen[meaning] = i
    if not {"x", "y"} <= set(chosen):
        raise SourceError(
            source,
            "doesn't say which channels are x and y",
            got=", ".join(labels) or "no channel labels",
            fix="add --set gaze.columns.x=0 --set gaze.columns.y=1 (labels or numbers)",
        )
    return chosen


def declared_by(desc: Any, channels: list[Channel], chosen: dict[str, int], hz: float) -> Declared:
    """Return what a description declares of frame, units and geometry; what it leaves open stays empty."""
    own = (desc.get("emogaze") or [{}])[0] if isinstance(desc, dict) else {}
    own = own if isinstance(own, dict) else {}

    def said(key: str) -> str:
        return str((own.get(key) or [""])[0] or "")

    x = channels[chosen["x"]] if chosen["x"] < len(channels) else {}
    units = said("units") or _UNITS.get(x.get("unit", "").lower(), "")
    space = x.get("coordinate_system", "").lower()
    place = "scene" if "world" in space or "scene" in space else "screen" if "screen" in space else ""
    frame = said("frame") or (f"{place}_{units}" if place and units in ("px", "norm") else "")
    # Pupil Capture's norm_pos has its origin at the bottom left, and its description doesn't say so.
    origin = said("origin") or ("bottom-left" if x.get("label", "").lower() == "norm_pos_x" else "")
    return Declared(
        units=units,
        frame=frame,
        origin=origin,
        geometry=read_geometry(said("geometry")),
        hz=hz,
        simulated=said("simulated").lower() in ("yes", "true", "1"),
        device=str((desc.get("manufacturer") or [""])[0] or "") if isinstance(desc, dict) else "",
        note=said("note"),
    )
