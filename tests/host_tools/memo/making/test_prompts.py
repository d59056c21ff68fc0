from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from edge.config_files import parse_toml
from edge.errors import DataError
from host_tools.memo.classes import CLASSES
from host_tools.memo.making.prompts import BANKS, make_prompts, read_prompts, write_prompts
from host_tools.memo.parser import parse_category


def test_a_whole_set_is_varied_balanced_and_unique() -> None:
    prompts = make_prompts()
    assert Counter(p.emotion for p in prompts) == dict.fromkeys(CLASSES, 100)
    assert Counter(p.style for p in prompts) == {"direct": 300, "contextual": 300}
    assert len({p.text for p in prompts}) == len({p.prompt_id for p in prompts}) == 600
    assert make_prompts() == prompts
    assert make_prompts(seed=1) != prompts


def test_direct_prompts_name_the_emotion_and_contextual_ones_don_t() -> None:
    for prompt in make_prompts():
        named = parse_category(prompt.text)
        if prompt.style == "contextual":
            assert named.code == "", prompt.text
    words = parse_toml(BANKS)["words"]
    for prompt in make_prompts():
        if prompt.style == "direct":
            assert any(re.search(rf"\b{w}\b", prompt.text) for w in words[prompt.emotion]), prompt.text


def test_more_than_the_banks_hold() -> None:
    with pytest.raises(ValueError, match="the banks hold"):
        make_prompts(100_000)


def test_they_are_read_as_they_were_written(tmp_path: Path) -> None:
    prompts = make_prompts(4)
    write_prompts(tmp_path / "p.csv", prompts)
    assert read_prompts(tmp_path / "p.csv") == prompts


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,XXX,direct,text\n", "row 1: unknown emotion 'XXX'"),
        ("a,HAP,oblique,text\n", "row 1: unknown style 'oblique'"),
        ("a,HAP,direct,\n", "row 1: the text is empty"),
        ("a,HAP,direct,t\na,SAD,direct,u\n", "1 ids stand twice"),
    ],
    ids=["emotion", "style", "text", "id"],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "p.csv").write_text("prompt_id,emotion,style,text\n" + rows)
    with pytest.raises(DataError, match=message):
        read_prompts(tmp_path / "p.csv")
