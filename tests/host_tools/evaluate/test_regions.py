from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge.errors import DataError
from host_tools.datasets import layout
from host_tools.evaluate.config import EvaluateConfig, SystemConfig
from host_tools.evaluate.looks import Looks
from host_tools.evaluate.regions import (
    Cluster,
    Regions,
    assign,
    dice,
    find_regions,
    moves,
    pairwise_agreement,
    weighted_mean,
)
from host_tools.evaluate.run import Evaluation


def looks(*places: tuple[float, float], size: tuple[int, int] = (1000, 500)) -> Looks:
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    return Looks(x, y, np.arange(len(x)) * 300.0, np.full(len(x), 200.0), size)


def state(folder: Path, seen: list[Looks], annotations: str = "", projection: str = "picture") -> Evaluation:
    (folder / "p.jpg").touch()
    samples = [layout.Sample(str(i), f"P{i}", "happy", media="p.jpg") for i in range(len(seen))]
    info = layout.DatasetInfo(name="x", labels="happy,sad", projection=projection)  # type: ignore[arg-type]
    layout.write(folder, info, samples)
    if annotations:
        (folder / "annotations.csv").write_text("sample_id,annotator,x_px,y_px,label\n" + annotations)
    config = EvaluateConfig(dataset=".", systems=(SystemConfig(name="s", predictions="p.csv"),))
    evaluation = Evaluation(config, folder, folder / "out")
    evaluation.__dict__["looks"] = seen
    return evaluation


def test_fixations_of_all_viewers_are_clustered_per_picture_and_labelled(tmp_path: Path) -> None:
    seen = [looks((100, 100), (800, 400), (105, 100)), looks((100, 110), (805, 400), (800, 410), (500, 20))]
    annotations = "0,A,102,101,dog\n0,B,100,100,dog\n0,A,801,401,sky\n0,B,799,399,cloud\n1,C,800,400,sky\n"
    regions = find_regions(state(tmp_path, seen, annotations))
    assert [(c.label, c.n_fixations) for c in regions.clusters] == [("dog", 3), ("sky", 3)]
    assert regions.of_fixations == [["dog", "sky", "dog"], ["dog", "sky", "sky", ""]]
    assert pairwise_agreement(regions)["A, B"] == pytest.approx(1 / 3)  # p_o = 1/2, p_e = 1/4


def test_a_region_crosses_the_seam_of_a_panorama_and_not_of_a_picture(tmp_path: Path) -> None:
    seen = [looks((999, 250), (1, 250), (2, 251))]
    (tmp_path / "flat").mkdir()
    assert len(find_regions(state(tmp_path, seen, projection="panorama")).clusters) == 1
    assert find_regions(state(tmp_path / "flat", seen)).clusters == []


def test_annotation_of_an_unknown_sample(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown samples: 9"):
        find_regions(state(tmp_path, [looks((1, 1))], "9,A,1,1,dog\n"))


def cluster(number: int, **labels: str) -> Cluster:
    return Cluster("p.jpg", number, 100.0 * number, 100.0, 3, labels)


def test_kappa_is_cohens_of_two_and_fleiss_of_more() -> None:
    two = Regions([cluster(0, A="x", B="x"), cluster(1, A="y", B="y"), cluster(2, A="x")], [], ("A", "B"))
    assert two.kappa == (1.0, "Cohen's")
    three = Regions([cluster(0, A="x", B="x", C="x"), cluster(1, A="y", B="y", C="x")], [], ("A", "B", "C"))
    # within: 1 and 1/3; chance: (4/6)^2 + (2/6)^2 = 5/9
    assert three.kappa == (pytest.approx((2 / 3 - 5 / 9) / (4 / 9)), "Fleiss'")
    assert Regions([cluster(0, A="x")], [], ("A",)).kappa is None


def test_all_regions_are_weighted_and_small_ones_have_no_part() -> None:
    def row(weight: float, value: float) -> dict[str, Any]:
        score = {"value": value}
        return {"weight": weight, "n": 20, "n_fixations": 50, "mean_fcc": score, "cawf1_macro": score, "base": score}

    found = weighted_mean([row(0.5, 0.8), row(0.25, 0.5), row(0.25, float("nan"))])
    assert found["cawf1_macro"]["value"] == pytest.approx((0.5 * 0.8 + 0.25 * 0.5) / 0.75)
    assert (found["weight"], found["n"]) == (0.75, 40)


def test_transitions_and_their_agreement() -> None:
    one, other = moves(["a", "b", "", "b", "a"]), moves(["a", "b", "c"])
    assert one == Counter({("a", "b"): 1, ("b", "a"): 1})
    assert dice(one, other) == pytest.approx(2 * 1 / 4)
    assert np.isnan(dice(Counter(), Counter()))


def test_places_belong_to_the_nearest_region_within_reach(tmp_path: Path) -> None:
    evaluation = state(tmp_path, [looks((1, 1))])
    clusters = [cluster(1, A="left"), cluster(2, A="right")]
    points = np.array([[120.0, 100], [190, 100], [150, 400]])
    assert assign(points, clusters, evaluation, (1000, 500)) == ["left", "right", ""]
