"""Sessions: encrypted recordings on disk, how they are written, checked, read back and exported."""

from __future__ import annotations

SOURCE_PREFIX = "session:"  #: of a recorded session as a source
