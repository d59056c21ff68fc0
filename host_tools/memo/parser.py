"""Free answers to classes and degrees. What can't be read says why; nothing is guessed and nothing is clamped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from edge.config_files import parse_toml
from host_tools.memo.classes import CLASSES

#: ok: read. other: an emotion that is none of the six. several: more than one and no final word. refused: the model
#: says that it won't or can't. out-of-range: a number outside the scale. unknown: none of these. empty: no answer.
Status = Literal["ok", "other", "several", "refused", "out-of-range", "unknown", "empty"]

_FINAL = re.compile(
    r"(?:answer|emotion|category|expression|label|degree|intensity|rating|score|答案|情绪|情感|类别|强度|程度)"
    r"\s*(?:is|was|为|是)?\s*[\"'”]?\s*[:：=]?\s*[\"'“*(]*"
)
_SCALE = re.compile(
    r"(?:(?:on |in )?(?:an? |the )?scale (?:of|from) |from |between |\(|从)?0\s*(?:to|-|–|—|~|and|到|至)\s*5\)?|"
    r"\s*(?:out of|/|von|sur|de)\s*5(?:\.0)?\b(?! *\d)|满分\s*(?:5|五)\s*分?"
)
_NUMBER = re.compile(r"(?<![a-z\d_.])[-−]?\d+(?:[.,]\d+)?(?![a-z\d_%])(?!\s*%)")
_CJK_NUMBER = re.compile(r"([零〇一二两兩三四五六七八九十])(?:点([零一二三四五六七八九]))?(?=分|级|級|度|点|$)")
_NEGATION_REACH = 25  #: characters before a word in which a negation speaks about it


@dataclass(frozen=True, slots=True)
class Category:
    """A class read from an answer: its code, or an empty text and the reason; `named` is the word that was found."""

    code: str
    status: Status
    named: str = ""


@dataclass(frozen=True, slots=True)
class Degree:
    """A degree read from an answer, nan with the reason where there is none."""

    value: float
    status: Status


@dataclass(frozen=True, slots=True)
class _Words:
    classes: re.Pattern[str]
    code_of: dict[str, str]
    refusal: re.Pattern[str]
    but: re.Pattern[str]
    negation: re.Pattern[str]
    numbers: dict[str, int]
    chinese: dict[str, int]
    whole: dict[str, int]


def parse_category(text: str, *, letters: Sequence[str] = ()) -> Category:
    """Read a class from a free answer in any of ten languages.

    A word that is negated doesn't count. Several classes count only if one of them is the final word: it follows
    "answer:" or stands alone on the first or last line. After a refusal only what follows a "but" counts.

    Parameters
    ----------
    letters : sequence of str
        Codes in the order of the lettered options that the question gave, for an answer such as "B" or "(b)".
    """
    plain = _plain(text)
    if not plain:
        return Category("", "empty")
    words = _words()
    letter = re.fullmatch(r"(?:answer\s*[:：]?\s*)?\(?([a-z])\)?[.:]?", plain)
    if letter and letters and ord(letter[1]) - ord("a") < len(letters):
        return Category(letters[ord(letter[1]) - ord("a")], "ok", letter[1])
    refused = words.refusal.search(plain)
    if refused:
        but = words.but.search(plain, refused.end())
        if not but:
            return Category("", "refused")
        plain = plain[but.end() :]
    found = _found(plain, words)
    codes = {words.code_of[word] for _, word in found}
    if len(codes) > 1:
        final = _final_word(plain, found)
        codes, found = ({words.code_of[final]}, [(0, final)]) if final else (codes, found)
    if not codes:
        return Category("", "refused" if refused else "unknown")
    if len(codes) > 1:
        return Category("", "several", " ".join(word for _, word in found))
    (code,) = codes
    return Category(code if code != "other" else "", "ok" if code != "other" else "other", found[0][1])


def parse_degree(text: str, *, low: float = 0, high: float = 5) -> Degree:
    """Read a degree from a free answer: digits, fractions of five, or a number in words.

    A number outside `low` to `high` is ``out-of-range``, not clamped; two different numbers are ``several`` unless one
    follows "answer:", "degree:" or the like.
    """
    nan = float("nan")
    plain = _plain(text)
    if not plain:
        return Degree(nan, "empty")
    words = _words()
    stripped = re.sub(_SCALE, " ", plain)
    values = _numbers(stripped, words)
    if len(set(values)) > 1:
        finals = [_numbers(stripped[m.end() : m.end() + 12], words)[:1] for m in _FINAL.finditer(stripped)]
        values = next((v for v in reversed(finals) if v), values)
    if not values:
        return Degree(nan, "refused" if words.refusal.search(plain) else "unknown")
    if len(set(values)) > 1:
        return Degree(nan, "several")
    return Degree(values[0], "ok") if low <= values[0] <= high else Degree(nan, "out-of-range")


def _plain(text: str) -> str:
    """Lower case, one form per character, no markdown; line breaks stay."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    return re.sub(r"[*_`#{}\[\]]+", " ", folded).strip()


def _found(plain: str, words: _Words) -> list[tuple[int, str]]:
    """List (position, word) of all class words that aren't negated."""
    found = []
    for match in words.classes.finditer(plain):
        before = plain[max(0, match.start() - _NEGATION_REACH) : match.start()]
        clause = re.split(r"[.,;:!?\n。，；：！？]|\bbut\b|但", before)[-1]
        if not words.negation.search(clause):
            found.append((match.start(), match[0]))
    return found


def _final_word(plain: str, found: list[tuple[int, str]]) -> str:
    starts = {m.end() for m in _FINAL.finditer(plain)}
    named = [word for position, word in found if position in starts]
    if named:
        return named[-1]
    lines = [line.strip(" .!\"'“”。！") for line in plain.splitlines() if line.strip()]
    alone = {word for _, word in found}
    return next((line for line in (lines[0], lines[-1]) if line in alone), "")


def _numbers(text: str, words: _Words) -> list[float]:
    bare = text.strip(" .!\"'。！")
    if bare in words.whole:
        return [float(words.whole[bare])]
    values = [float(m[0].replace(",", ".").replace("−", "-")) for m in _NUMBER.finditer(text)]
    if values:
        return values
    for match in re.finditer(r"\b(" + "|".join(words.numbers) + r")\b( and a half)?", text):
        values.append(words.numbers[match[1]] + (0.5 if match[2] else 0.0))
    for match in _CJK_NUMBER.finditer(bare):
        values.append(words.chinese[match[1]] + (words.chinese[match[2]] / 10 if match[2] else 0.0))
    return values


@cache
def _words() -> _Words:
    data = parse_toml(Path(__file__).parent / "words.toml")
    code_of = {word: code for code in CLASSES for group in data["classes"][code].values() for word in group}
    code_of |= {word: "other" for group in data["other"].values() for word in group}
    return _Words(
        classes=_any_of(code_of),
        code_of=code_of,
        refusal=_any_of(data["refusals"]["phrases"]),
        but=_any_of(data["refusals"]["but"]),
        negation=_any_of(data["negations"]["words"]),
        numbers=data["numbers"]["en"],
        chinese=data["numbers"]["zh"],
        whole=data["numbers"]["whole"],
    )


def _any_of(phrases: Any) -> re.Pattern[str]:
    """Match the longest of `phrases`; at word bounds, but for scripts that write without spaces."""
    ordered = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(re.escape(p) if _is_cjk(p) else rf"(?<!\w){re.escape(p)}(?!\w)" for p in ordered))


def _is_cjk(text: str) -> bool:
    return any(unicodedata.name(c, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "HANGUL")) for c in text)
