"""What a child process of this package needs to know: where the package lies, installed or not."""

from __future__ import annotations

import os
from pathlib import Path


def child_environment(**extra: str) -> dict[str, str]:
    """Return this process's environment with `extra`, in which ``python -m edge...`` finds this very package."""
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, **extra}
