"""The few operations on a file system that a recording's durability rests on, in one place.

A test replaces this class by one that logs each write and sync, and rebuilds what a power cut would leave.
"""

from __future__ import annotations

import os
from pathlib import Path

from edge.files import sync_dir


class Disk:
    """Append-only files with explicit syncs."""

    def create(self, path: Path) -> int:
        """Create `path` (0600; FileExistsError if it is there) and return a handle that appends."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, handle: int, content: bytes) -> None:
        """Append all of `content`; OSError if not all of it could be."""
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]

    def sync(self, handle: int) -> None:
        """Make what was appended durable."""
        os.fdatasync(handle)

    def sync_dir(self, folder: Path) -> None:
        """Make the names in `folder` durable."""
        sync_dir(folder)

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file back to `size`."""
        os.ftruncate(handle, size)

    def close(self, handle: int) -> None:
        """Close a handle."""
        os.close(handle)

    def free_bytes(self, folder: Path) -> int:
        """Return the space left for this user on the file system of `folder`."""
        stat = os.statvfs(folder)
        return stat.f_bavail * stat.f_frsize
