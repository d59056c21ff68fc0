from __future__ import annotations

import pytest

from edge.errors import DataError
from host_tools.labels import SETS, LabelSet, canonical, choose, encode_predicted, encode_true, meaning_maps


@pytest.mark.parametrize(
    ("word", "label"),
    [("Anger", "angry"), (" HAP ", "happy"), ("joy", "happy"), ("fearful", "fear"), ("Surprised", "surprise")],
    ids=["anger", "memo-code", "joy", "fearful", "surprised"],
)
def test_synonyms_are_one_label(word: str, label: str) -> None:
    assert canonical(word) == label


def test_worry_becomes_fear_only_when_asked() -> None:
    assert canonical("worry") == "worried"
    assert canonical("worry", meaning_maps(["worry-to-fear"])) == "fear"


def test_unknown_map_is_named() -> None:
    with pytest.raises(DataError, match="sad-to-happy"):
        meaning_maps(["sad-to-happy"])


@pytest.mark.parametrize("name", sorted(SETS), ids=str)
def test_set_is_found_by_its_labels(name: str) -> None:
    assert choose("", reversed(SETS[name])).name == name


def test_no_set_equals_the_labels() -> None:
    with pytest.raises(DataError, match=r"no named set equals them; got happy, sad; give --labels"):
        choose("", ["sad", "happy", "sad"])


def test_listed_labels_are_a_custom_set() -> None:
    assert choose("sadness,Joy", []) == LabelSet("custom", ("sad", "happy"))


def test_true_label_outside_the_set_is_named_and_counted() -> None:
    with pytest.raises(DataError, match=r"outside the set seedv5: angry \(2\)"):
        encode_true(["happy", "angry", "angry"], choose("seedv5", []))


def test_prediction_outside_the_set_is_wrong_and_named() -> None:
    codes, other = encode_predicted(["sad", "bored", "", "bored"], LabelSet("custom", ("happy", "sad")))
    assert codes.tolist() == [1, 2, 2, 2]
    assert other == {"(none)": 1, "bored": 2}
