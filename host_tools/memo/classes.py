"""The six classes of MEMO-Bench, by their codes."""

from __future__ import annotations

CLASSES = ("HAP", "SAD", "ANG", "SUR", "WOR", "NEU")


def find_class(text: str) -> str:
    """Return the code of the class that `text` names, or an empty text."""
    code = text.strip().upper()
    return code if code in CLASSES else ""
