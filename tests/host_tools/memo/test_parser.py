from __future__ import annotations

import math

import pytest

from host_tools.memo.classes import CLASSES
from host_tools.memo.parser import parse_category, parse_degree

REFUSAL = "I'm sorry, I can't help with identifying emotions."
CATEGORIES = [
    ("Happy", "HAP", "ok"),
    ("  **Sadness**.", "SAD", "ok"),
    ("ＨＡＰＰＹ", "HAP", "ok"),
    ('{"emotion": "worried"}', "WOR", "ok"),
    ("The emotion is anger", "ANG", "ok"),
    ("The person is not happy but angry", "ANG", "ok"),
    ("She doesn't look sad; she is surprised.", "SUR", "ok"),
    ("It isn't anger", "", "unknown"),
    ("unhappy", "SAD", "ok"),
    ("The madam looks calm", "NEU", "ok"),
    ("happy or surprised", "", "several"),
    ("Happy, maybe surprised. Answer: surprise", "SUR", "ok"),
    ("neutral\n\nThe face shows neither happy nor sad features", "NEU", "ok"),
    (REFUSAL, "", "refused"),
    ("I cannot determine it, but the person appears sad.", "SAD", "ok"),
    ("I'm sorry, I can't tell whether she is happy.", "", "refused"),
    ("她看起来很高兴", "HAP", "ok"),
    ("这个人不高兴，很难过。", "SAD", "ok"),
    ("不是生气，而是惊讶", "SUR", "ok"),
    ("答案：担忧", "WOR", "ok"),
    ("抱歉，我无法识别", "", "refused"),
    ("怒り", "ANG", "ok"),
    ("행복", "HAP", "ok"),
    ("Er ist traurig", "SAD", "ok"),
    ("Die Person ist nicht glücklich", "", "unknown"),
    ("triste", "SAD", "ok"),
    ("не грустный, а злой", "ANG", "ok"),
    ("fear", "", "other"),
    ("焦虑", "", "other"),
    ("A portrait of a woman", "", "unknown"),
    ("", "", "empty"),
    (" \n ", "", "empty"),
]


@pytest.mark.parametrize(("text", "code", "status"), CATEGORIES, ids=[repr(c[0]) for c in CATEGORIES])
def test_categories(text: str, code: str, status: str) -> None:
    read = parse_category(text)
    assert (read.code, read.status) == (code, status)


def test_a_foreign_emotion_is_named() -> None:
    assert parse_category("Probably disgust.").named == "disgust"


@pytest.mark.parametrize("text", ["B", "(b)", "b.", "Answer: B"])
def test_lettered_options(text: str) -> None:
    assert parse_category(text, letters=CLASSES).code == "SAD"


def test_a_letter_beyond_the_options_is_no_answer() -> None:
    assert parse_category("z", letters=CLASSES).status == "unknown"


DEGREES: list[tuple[str, float | str]] = [
    ("4", 4),
    ("3.5", 3.5),
    ("2,5", 2.5),
    ("５", 5),
    ("Degree: 3", 3),
    ("4/5", 4),
    ("4 out of 5", 4),
    ("On a scale of 0 to 5, I would say 4.", 4),
    ("I'd rate it 2 (0-5)", 2),
    ("three", 3),
    ("three and a half", 3.5),
    ("Intensity level: four", 4),
    ("四", 4),
    ("三点五分", 3.5),
    ("强度：4分", 4),
    ("drei", 3),
    ("There are 2 eyes. Answer: 4", 4),
    ("7", "out-of-range"),
    ("-1", "out-of-range"),
    ("10", "out-of-range"),
    ("80%", "unknown"),
    ("80 out of 100", "several"),
    ("3-4", "several"),
    ("I can't determine that", "refused"),
    ("rather strong", "unknown"),
    ("", "empty"),
]


@pytest.mark.parametrize(("text", "expected"), DEGREES, ids=[repr(d[0]) for d in DEGREES])
def test_degrees(text: str, expected: float | str) -> None:
    read = parse_degree(text)
    assert (read.value if read.status == "ok" else read.status) == expected
    assert math.isnan(read.value) == (read.status != "ok")
