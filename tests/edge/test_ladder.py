"""The ladder keeps what nothing beats, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import ModelsConfig, load
from edge.errors import ModelError
from edge.ladder import Ladder, Rung, embedders, non_dominated, read_ladder, write_ladder


def rung(artefact: str, latency_ms: float, drift: float) -> Rung:
    return Rung(artefact=artefact, latency_ms=latency_ms, drift=drift)


def test_what_something_beats_in_both_goes() -> None:
    rungs = [
        rung("slow", 9, 0.01),
        rung("best", 7, 0.0),
        rung("fast", 2, 0.03),
        rung("worse", 2, 0.04),
        rung("mid", 5, 0.01),
    ]
    assert [r.artefact for r in non_dominated(rungs)] == ["best", "mid", "fast"]
    assert non_dominated([]) == ()


def test_written_and_read_again(tmp_path: Path) -> None:
    ladder = Ladder(machine="a board", rungs=(rung("a", 7, 0), rung("b", 3, 0.01), rung("a", 1, 0.02)))
    write_ladder(tmp_path / "ladder.json", ladder)
    assert read_ladder(tmp_path / "ladder.json") == ladder
    assert ladder.artefacts == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "emogaze tune", id="missing"),
        pytest.param("{", "is no ladder", id="cut"),
        pytest.param('{"machine": "m", "rungs": []}', "at least one rung", id="empty"),
        pytest.param(
            '{"machine": "m", "rungs": [{"artefact": "a", "latency_ms": 1, "drift": 0},'
            ' {"artefact": "b", "latency_ms": 2, "drift": 0.1}]}',
            "b isn't faster than a",
            id="out-of-order",
        ),
        pytest.param(
            '{"machine": "m", "rungs": [{"artefact": "a", "latency_ms": 1, "drift": 0}], "format": 9}',
            "format",
            id="newer",
        ),
    ],
)
def test_a_bad_ladder_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "ladder.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ModelError, match=message):
        read_ladder(file)


def test_a_rung_opens_its_artefact_its_own_way() -> None:
    models = Rung(artefact="a", backend="openvino", threads=2, latency_ms=1, drift=0).models(ModelsConfig(strict=True))
    assert (models.embedder, models.backend, models.threads, models.strict) == ("a", "openvino", 2, True)


def test_a_ladder_asks_for_one_cache_per_artefact(tmp_path: Path) -> None:
    rungs = (
        Rung(artefact="a", backend="onnxruntime", latency_ms=9, drift=0),
        Rung(artefact="b", backend="openvino", latency_ms=5, drift=0.01),
        Rung(artefact="a", backend="openvino", latency_ms=3, drift=0.02),
    )
    write_ladder(tmp_path / "ladder.json", Ladder(machine="test", rungs=rungs))
    opened = embedders(load(overrides=[f"governor.ladder='{tmp_path / 'ladder.json'}'"]))
    assert [(models.embedder, models.backend) for models in opened] == [("a", "onnxruntime"), ("b", "openvino")]
    assert [models.embedder for models in embedders(load())] == ["mobilenet_v2-fp32"]
