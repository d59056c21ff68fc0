"""Names of emotions: one table of synonyms, and the label sets with explicit maps between them.

A synonym is another spelling of the same state (`anger`, `angry`). A map that changes what is meant (worry read as
fear) is never applied unless it is asked for by name.
"""

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

#: Named label sets.
LABEL_SETS = {
    "ekman6": ("angry", "disgust", "fear", "happy", "sad", "surprise"),
    "fer7": ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"),
    "affectnet8": ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral", "contempt"),
    "seedv5": ("happy", "sad", "fear", "disgust", "neutral"),
    "memo6": ("happy", "sad", "angry", "surprise", "worried", "neutral"),
}

#: Maps that change what is meant. Options, never applied in silence.
MEANING_MAPS = {
    "worry-as-fear": {"worried": "fear"},
    "contempt-as-disgust": {"contempt": "disgust"},
}


def canonical(label: str) -> str:
    """Return the house's name of an emotion, or the label itself (stripped, lower case) where the table has none."""
    plain = label.strip().lower()
    return SYNONYMS.get(plain, plain)
