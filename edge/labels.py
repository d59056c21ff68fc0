"""Names of emotions: the one table of synonyms, other spellings of the same state (`anger`, `angry`)."""

from __future__ import annotations

#: The house's names, and what else people and models call the same thing.
_SPELLINGS = {
    "angry": ("anger", "ang", "angered", "mad"),
    "contempt": ("contemptuous", "con"),
    "disgust": ("disgusted", "dis"),
    "fear": ("fearful", "afraid", "scared", "fea"),
    "happy": ("happiness", "happily", "joy", "joyful", "hap"),
    "neutral": ("neutrality", "calm", "neu"),
    "sad": ("sadness", "unhappy", "sorrow"),
    "surprise": ("surprised", "surprising", "sur"),
    "worried": ("worry", "worrying", "wor"),
}
SYNONYMS = {other: name for name, others in _SPELLINGS.items() for other in (name, *others)}


def canonical(label: str) -> str:
    """Return the house's name of an emotion, or the label itself (stripped, lower case) where the table has none."""
    plain = label.strip().lower()
    return SYNONYMS.get(plain, plain)
