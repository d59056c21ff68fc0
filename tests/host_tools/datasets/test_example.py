from __future__ import annotations

from pathlib import Path

from host_tools.datasets.example import generate
from host_tools.datasets.layout import load
from host_tools.engine import Engine
from host_tools.evaluate.looks import find


def test_example_is_whole_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    assert generate(tmp_path, pictures_per_emotion=3, viewers=1) == 18
    dataset = load(tmp_path)
    assert dataset.info.simulated
    assert (len(dataset), len(dataset.only("train")), len(dataset.only("test"))) == (18, 6, 12)
    looks = list(find(dataset, engine=Engine()))
    assert all(3 <= len(k) <= 8 and k.on_picture.all() for k in looks)
    assert all(abs(k.hz - 120) < 1 for k in looks)


def test_equal_seeds_draw_equal_data(tmp_path: Path) -> None:
    for name in ("a", "b"):
        generate(tmp_path / name, pictures_per_emotion=3, viewers=1, seed=2)
    one, other = ({p.name: p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()} for n in ("a", "b"))
    assert one == other
