"""The six classes of MEMO-Bench: the benchmark's codes for the label set ``memo6``."""

from __future__ import annotations

from host_tools.labels import SETS, canonical

CLASSES = ("HAP", "SAD", "ANG", "SUR", "WOR", "NEU")
#: Label of the set -> the benchmark's code.
CODE_OF = dict(zip(SETS["memo6"], CLASSES, strict=True))
LABEL_OF = {code: label for label, code in CODE_OF.items()}


def find_class(text: str) -> str:
    """Return the code of the class that `text` names (a code, a label or a synonym), or an empty text."""
    return CODE_OF.get(canonical(text), "")
