"""Emotion label sets, the synonyms that mean the same, and the maps that do not.

Spelling never changes a result: ``Anger``, ``ANG`` and ``angry`` are one label. A map that changes the meaning (worry
is not fear) is applied only when it is asked for by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from edge.labels import SYNONYMS as CANONICAL

SETS: dict[str, tuple[str, ...]] = {
    "ekman6": ("angry", "disgust", "fear", "happy", "sad", "surprise"),
    "fer7": ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"),
    "affectnet8": ("neutral", "happy", "sad", "surprise", "fear", "disgust", "angry", "contempt"),
    "seedv5": ("happy", "sad", "fear", "disgust", "neutral"),
    "memo6": ("happy", "sad", "angry", "surprise", "worried", "neutral"),
}

#: Maps that change the meaning. They are options, and the result names the one that was used.
MEANING_MAPS: dict[str, dict[str, str]] = {
    "worry-to-fear": {"worried": "fear"},
    "anxiety-to-fear": {"anxiety": "fear", "anxious": "fear"},
    "contempt-to-disgust": {"contempt": "disgust"},
}


@dataclass(frozen=True, slots=True)
class LabelSet:
    """An ordered set of labels. `name` is one of `SETS`, or ``custom``."""

    name: str
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def other(self) -> int:
        """The code of every prediction outside the set: one past the last label."""
        return len(self.labels)


def canonical(text: str, maps: Mapping[str, str] | None = None) -> str:
    """Return the one spelling of a label: lower case, synonyms joined, then `maps` (see `MEANING_MAPS`) applied."""
    word = text.strip().lower().replace("_", " ").replace("-", " ")
    label = CANONICAL.get(word, word)
    return maps.get(label, label) if maps else label


def meaning_maps(names: Iterable[str]) -> dict[str, str]:
    """Join the named entries of `MEANING_MAPS`.

    Raises
    ------
    DataError
        If a name is unknown.
    """
    joined: dict[str, str] = {}
    for name in names:
        if name not in MEANING_MAPS:
            raise DataError("label map", f"there is no {name!r}", expected="one of " + ", ".join(MEANING_MAPS))
        joined.update(MEANING_MAPS[name])
    return joined


def choose(option: str, true: Iterable[str]) -> LabelSet:
    """Return the label set of `option`, or the named set that equals the true labels.

    Parameters
    ----------
    option : str
        Name of a set, or labels separated by commas; empty = told by the labels.
    true : iterable of str
        The true labels, canonical.

    Raises
    ------
    DataError
        If the option names nothing known, or is empty and no named set equals the labels.
    """
    if option in SETS:
        return LabelSet(option, SETS[option])
    if "," in option:
        listed = tuple(canonical(part) for part in option.split(",") if part.strip())
        if len(set(listed)) != len(listed):
            raise DataError("--labels", f"a label stands twice in {option!r}")
        return LabelSet("custom", listed)
    if option:
        raise DataError("--labels", f"there is no set {option!r}", expected=_expected_option())
    found = set(true)
    for name, labels in SETS.items():
        if set(labels) == found:
            return LabelSet(name, labels)
    raise DataError(
        "true labels",
        "no named set equals them",
        got=", ".join(sorted(found)) or "none",
        fix="give --labels " + _expected_option(),
    )


def encode_true(true: Sequence[str], labels: LabelSet) -> npt.NDArray[np.int64]:
    """Return the codes (n,) of the true labels.

    Raises
    ------
    DataError
        If a label is outside the set; it is named.
    """
    codes = {label: code for code, label in enumerate(labels.labels)}
    outside = Counter(label for label in true if label not in codes)
    if outside:
        raise DataError(
            "true label",
            f"outside the set {labels.name}: "
            + ", ".join(f"{k or '(empty)'} ({v})" for k, v in sorted(outside.items())),
            expected=", ".join(labels.labels),
            fix="choose another --labels, or map them with --map",
        )
    return np.array([codes[label] for label in true], dtype=np.int64)


def encode_predicted(predicted: Sequence[str], labels: LabelSet) -> tuple[npt.NDArray[np.int64], dict[str, int]]:
    """Return the codes (n,) of predictions and the count of each one outside the set, by its name.

    A prediction outside the set has the code `labels.other`: it is wrong, never dropped. No prediction at all is
    counted as ``(none)``.
    """
    codes = {label: code for code, label in enumerate(labels.labels)}
    outside = Counter(label or "(none)" for label in predicted if label not in codes)
    values = np.array([codes.get(label, labels.other) for label in predicted], dtype=np.int64)
    return values, dict(sorted(outside.items()))


def _expected_option() -> str:
    return "one of " + ", ".join(SETS) + ", or the labels separated by commas"
