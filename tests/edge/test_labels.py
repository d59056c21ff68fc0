"""One table of synonyms, and label sets made of the house's names."""

from __future__ import annotations

import pytest

from edge.labels import LABEL_SETS, MEANING_MAPS, SYNONYMS, canonical


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("Anger", "angry", id="case"),
        pytest.param(" surprised ", "surprise", id="spaces"),
        pytest.param("fearful", "fear", id="adjective"),
        pytest.param("WOR", "worried", id="short"),
        pytest.param("boredom", "boredom", id="unknown-stays"),
    ],
)
def test_canonical(given: str, expected: str) -> None:
    assert canonical(given) == expected


def test_sets_use_the_names_of_the_table() -> None:
    names = set(SYNONYMS.values())
    for labels in LABEL_SETS.values():
        assert set(labels) <= names and len(set(labels)) == len(labels)


def test_a_change_of_meaning_is_no_synonym() -> None:
    for changes in MEANING_MAPS.values():
        for before, after in changes.items():
            assert canonical(before) == before != after
