"""One table of synonyms."""

from __future__ import annotations

import pytest

from edge.labels import SYNONYMS, canonical


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


def test_every_name_is_its_own_canonical_form() -> None:
    for name in SYNONYMS.values():
        assert canonical(name) == name
