from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.config import GazeConfig
from edge.errors import DataError
from host_tools.datasets import layout
from host_tools.engine import Engine
from host_tools.evaluate.looks import Looks, find


def gaze_csv(path: Path, places: list[tuple[float, float]], hz: float, ms_each: float = 300) -> None:
    rows = [place for place in places for _ in range(round(ms_each / 1000 * hz))]
    lines = [f"{i / hz:.6f},{x},{y}" for i, (x, y) in enumerate(rows)]
    path.write_text("t,x,y\n" + "\n".join(lines) + "\n")


def dataset(folder: Path, info: layout.DatasetInfo, size: tuple[int, int], gaze: str = "g.csv") -> layout.Dataset:
    cv2.imwrite(str(folder / "p.png"), np.zeros((size[1], size[0], 3), np.uint8))
    layout.write(folder, info, [layout.Sample("1", "P", "happy", media="p.png", gaze=gaze)])
    return layout.load(folder, labels="happy,sad")


def look(data: layout.Dataset, **options: float) -> Looks:
    (found,) = find(data, engine=Engine(), **options)  # type: ignore[arg-type]
    return found


SCREEN = "screen = {width_mm = 400, height_mm = 300, width_px = 400, height_px = 300, distance_mm = 600}"
ON_SCREEN = layout.DatasetInfo(name="x", gaze=GazeConfig(time_unit="s", frame="screen_px", units="px", geometry=SCREEN))


@pytest.mark.parametrize("hz", [60.0, 120.0, 600.0], ids=["60", "120", "600"])
def test_the_same_looks_at_every_rate(tmp_path: Path, hz: float) -> None:
    gaze_csv(tmp_path / "g.csv", [(50, 60), (300, 200), (120, 250)], hz)
    found = look(dataset(tmp_path, ON_SCREEN, (400, 300)))
    np.testing.assert_allclose(np.stack([found.x_px, found.y_px], 1), [(50, 60), (300, 200), (120, 250)], atol=15)
    assert found.hz == pytest.approx(hz, rel=0.01)
    assert found.on_picture.all()


def test_thinned_gaze_says_its_rate(tmp_path: Path) -> None:
    gaze_csv(tmp_path / "g.csv", [(50, 60), (300, 200)], 600)
    assert look(dataset(tmp_path, ON_SCREEN, (400, 300)), hz=60).hz == pytest.approx(60, rel=0.01)


@pytest.mark.parametrize(
    ("n", "reason"), [(0, "no sample in the gaze file"), (1, "no fixation found in the gaze")], ids=["none", "one"]
)
def test_too_few_samples_are_a_reason_and_no_error(tmp_path: Path, n: int, reason: str) -> None:
    (tmp_path / "g.csv").write_text("t,x,y\n" + "0.0,50,60\n" * n)
    found = look(dataset(tmp_path, ON_SCREEN, (400, 300)))
    assert (len(found), found.n_samples, found.reason) == (0, n, reason)


def test_off_the_picture_is_kept_and_flagged(tmp_path: Path) -> None:
    gaze_csv(tmp_path / "g.csv", [(50, 60), (-80, 60)], 120)
    found = look(dataset(tmp_path, ON_SCREEN, (400, 300)))
    assert found.on_picture.tolist() == [True, False]
    assert found.x_px[1] == pytest.approx(-80, abs=5)


@pytest.mark.parametrize(
    ("frame", "units", "places"),
    [
        ("direction", "deg", [(-178, 0), (178, 10), (0, 85)]),
        ("scene_px", "px", [(5.5556, 250), (994.4444, 222.2222), (500, 13.8889)]),
    ],
    ids=["degrees", "pixels"],
)
def test_panorama(tmp_path: Path, frame: str, units: str, places: list[tuple[float, float]]) -> None:
    gaze = GazeConfig(time_unit="s", frame=frame, units=units)  # type: ignore[arg-type]
    gaze_csv(tmp_path / "g.csv", places, 120)
    found = look(dataset(tmp_path, layout.DatasetInfo(name="x", projection="panorama", gaze=gaze), (1000, 500)))
    expected = [(5.5556, 250), (994.4444, 222.2222), (500, 13.8889)]
    np.testing.assert_allclose(np.stack([found.x_px, found.y_px], 1), expected, atol=1.5)


def test_panorama_refuses_gaze_that_says_no_place_in_it(tmp_path: Path) -> None:
    gaze_csv(tmp_path / "g.csv", [(5, 5)], 120)
    info = layout.DatasetInfo(name="x", projection="panorama", gaze=ON_SCREEN.gaze)
    with pytest.raises(DataError, match="says no place in a panorama"):
        look(dataset(tmp_path, info, (1000, 500)))


def test_no_gaze_is_a_reason(tmp_path: Path) -> None:
    found = look(dataset(tmp_path, ON_SCREEN, (400, 300), gaze=""))
    assert (len(found), found.reason) == (0, "no gaze")


def test_given_fixations_are_taken(tmp_path: Path) -> None:
    data = dataset(tmp_path, ON_SCREEN, (400, 300), gaze="")
    (tmp_path / "fixations.csv").write_text("sample_id,x_px,y_px\n1,7,8\n")
    found = look(data)
    assert (found.x_px.tolist(), found.size, found.reason) == ([7.0], (400, 300), "")
