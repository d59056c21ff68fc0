"""How a session lies on disk, and what may be known of it without any key.

::

    DIR/.lock                           held by the one process that records into DIR
    DIR/SESSION/SESSION.chain           signed checkpoints; its first line is the header
    DIR/SESSION/SESSION.key.age         the session's identity, encrypted to the study's recipients
    DIR/SESSION/SESSION.0000.mcap.age   segments
    DIR/SESSION/SESSION.withdrawn.json  the tombstone that stands in the key's place after a withdrawal
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.errors import RecordingError
from edge.files import decode_document
from edge.session.chain import Chain, read_chain

FORMAT = 1
NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]+")
SEGMENT = re.compile(r"\.(\d{4,})\.mcap\.age$")


@dataclass(frozen=True, slots=True)
class SessionPaths:
    """The files of the session in `folder`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def chain(self) -> Path:
        return self.folder / f"{self.name}.chain"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.name}.key.age"

    @property
    def tombstone(self) -> Path:
        return self.folder / f"{self.name}.withdrawn.json"

    def segment(self, number: int) -> Path:
        return self.folder / f"{self.name}.{number:04d}.mcap.age"

    def segments(self) -> dict[int, Path]:
        """Return the segments that are there, by number."""
        found = ((SEGMENT.search(path.name), path) for path in self.folder.glob(f"{self.name}.*.mcap.age"))
        return dict(sorted((int(match.group(1)), path) for match, path in found if match))


def find_session(path: Path) -> SessionPaths:
    """Return the session at `path` (its folder, or any file in it).

    Raises
    ------
    RecordingError
        There is none.
    """
    folder = (path if path.is_dir() else path.parent).resolve()
    paths = SessionPaths(folder)
    if not path.exists():
        raise RecordingError(str(path), "no such session")
    if not paths.chain.exists() and not paths.segments():
        raise RecordingError(str(path), "is no session", expected=f"a folder with {paths.chain.name}")
    return paths


def sessions(folder: Path) -> list[SessionPaths]:
    """List the sessions in a recording folder, oldest name first, with those that have lost their chain."""
    return [SessionPaths(path) for path in sorted(folder.glob("*")) if path.is_dir() and _holds_session(path)]


def _holds_session(folder: Path) -> bool:
    paths = SessionPaths(folder)
    try:
        return paths.chain.exists() or paths.key.exists()
    except PermissionError:
        return NAME.fullmatch(folder.name) is not None  # who reads it is told


def withdrawal_marker(folder: Path, consent_id: str) -> Path:
    """Return the file in a recording folder that says that a consent was withdrawn."""
    return folder / "withdrawn" / f"{consent_id}.json"


def read_header(paths: SessionPaths, chain: Chain | None = None) -> dict[str, Any]:
    """Return the first line of a session's chain; empty if the power went before it was written.

    Raises
    ------
    RecordingError
        It was written by a newer version, or is no header.
    """
    version = _format_of(paths.chain)
    if version > FORMAT:
        raise RecordingError(
            str(paths.folder),
            "was recorded by a newer version of emogaze",
            expected=f"format {FORMAT} or older",
            got=f"format {version}",
            fix="update emogaze",
        )
    lines = (chain or read_chain(paths.chain)).lines
    if lines and lines[0].get("kind") != "start":
        raise RecordingError(str(paths.chain), "has no header in its first line")
    return lines[0] if lines else {}


def _format_of(chain: Path) -> int:
    """Return the format that the first line names, before anything else of it is believed; 0 if it names none."""
    try:
        with chain.open("rb") as file:
            version = decode_document(file.readline()).get("format", 0)
    except (OSError, ValueError, AttributeError):
        return 0
    return version if isinstance(version, int) else 0
