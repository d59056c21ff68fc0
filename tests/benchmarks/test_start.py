"""Starts are measured in processes of their own, with caches that are empty only the first time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.start import PARTS, measure


@pytest.mark.long
def test_a_second_start_finds_what_the_first_left(artefacts: Path, tmp_path: Path) -> None:
    small = ["models.embedder='mobilenet_v2-fp32'", "models.face_recall=''", "models.emotion=''"]
    result = measure(tmp_path, small, 2)
    assert result["models"][0].startswith("mobilenet_v2-fp32 on ") and len(result["models"]) == 2
    for start in (result["first"], *result["samples"]):
        assert start["total"] == pytest.approx(sum(start[part] for part in PARTS))
    assert list((tmp_path / "compiled").rglob("*.pyc")), "the first start compiled Python where the second finds it"
    assert (tmp_path / "models/mobilenet_v2-fp32").resolve() == (artefacts / "mobilenet_v2-fp32").resolve()
