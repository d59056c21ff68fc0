"""Building: tiles that cover, regions, views that stand still, and the separation on real pictures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from pixel_model import PixelModel

from edge.backends.base import open_model
from edge.config import ModelsConfig, ScoreConfig
from edge.environment import EnvironmentCache, store
from edge.environment_build import Region, Regions, View, build, keep_covered, read_regions, read_views, tiles
from edge.errors import CacheError, ConfigError, SourceError
from edge.features import Embedder


@pytest.mark.parametrize("size", [(320, 240), (641, 359), (100, 400)], ids=str)
def test_tiles_cover_edge_to_edge_at_three_scales(size: tuple[int, int]) -> None:
    width, height = size
    places = tiles(width, height, "auto")
    sides = {side for *_, side in places}
    assert len(sides) == 3
    for side in sides:
        covered = np.zeros((height, width), int)
        for x, y, s in places:
            if s == side:
                assert x >= 0 and y >= 0 and x + s <= width and y + s <= height
                covered[y : y + s, x : x + s] += 1
        assert covered.min() >= 1
        assert covered[height // 2, width // 2] >= 4, "half overlapping both ways"


def test_a_picture_of_one_pixel_is_one_tile() -> None:
    assert tiles(1, 1, "auto") == [(0, 0, 1)]


def noise(seed: int, size: tuple[int, int] = (120, 160)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (*size, 3), dtype=np.uint8)


def embedder(model: PixelModel | None = None) -> Embedder:
    return Embedder(model or PixelModel(), ScoreConfig())


def test_build_counts_and_leaves_out_what_stands_still() -> None:
    views = [View("a", noise(1)), View("b", noise(1)), View("c", noise(2))]
    cache = build(embedder(), views, ScoreConfig())
    assert cache.info.views == ("a", "c")
    assert cache.info.n_entries == 2 * len(tiles(160, 120, "auto")) == cache.indices[0].ntotal
    assert (cache.info.n_views, cache.info.dim_local, cache.info.dim_global) == (2, 12, 12)
    assert cache.info.separation["n_matched"] == 200
    assert np.isnan(cache.info.separation["auc_retrieved"]), "no other environment was given"


def test_views_that_show_nothing_or_little_are_said(caplog: pytest.LogCaptureFixture) -> None:
    dark = noise(3) // 128
    views = [View("dark", dark), View("small", noise(1, (40, 50))), View("good", noise(2))]
    build(embedder(), views, ScoreConfig())
    said = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(":")[0] for line in said] == [
        "environment: view dark shows nothing",
        "environment: view small is only 50x40 px",
    ]
    with pytest.raises(CacheError, match="no view shows anything: dark shows nothing"):
        build(embedder(), [View("dark", dark)], ScoreConfig())


def test_a_cached_window_finds_itself_with_its_region() -> None:
    view = View("a", noise(3))
    regions = Regions(
        units="norm", region=(Region(name="all", box=(0, 0, 1, 1)), Region(name="left", box=(0, 0, 0.5, 1)))
    )
    model = embedder()
    cache = build(model, [view], ScoreConfig(), regions=regions)
    for entry in (0, 7, cache.info.n_entries - 1):
        row = cache.entries[entry]
        window = view.image[row["y"] : row["y"] + row["side"], row["x"] : row["x"] + row["side"]]
        match = cache.lookup(model.local([window])[0], model.scenes([view.image])[0])
        assert match.entry_local == entry
        assert match.sim_local == pytest.approx(1.0, abs=1e-5) and match.sim_global == pytest.approx(1.0, abs=1e-5)
        assert match.region == ("left" if row["x"] + row["side"] / 2 < 80 else "all"), "the smaller region wins"


def test_building_twice_gives_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        build(embedder(), [View("v", noise(1))], ScoreConfig(), others=[View("o", noise(9))]).write(tmp_path / name)
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert [(tmp_path / "a" / n).read_bytes() for n in names] == [(tmp_path / "b" / n).read_bytes() for n in names]


def test_nothing_to_build_from() -> None:
    with pytest.raises(CacheError, match="no reference view"):
        build(embedder(), [], ScoreConfig())


def test_pca_of_few_scenes_is_refused_by_name() -> None:
    with pytest.raises(CacheError, match="too few global vectors"):
        build(embedder(), [View("v", noise(1))], ScoreConfig(embedding="pca:4"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('[[region]]\nname = "a"\nbox = [0, 0, 1, 1]', "units", id="undeclared-units"),
        pytest.param('units = "cm"\nregion = []', "units", id="unknown-units"),
        pytest.param('units = "px"\n[[region]]\nname = "a"\nbox = [0, 0, 1]', "length", id="short-box"),
        pytest.param('units = "px"\n[[region]]\nnmae = "a"\nbox = [0, 0, 1, 1]', "nmae", id="unknown-key"),
        pytest.param("units = ", "TOML", id="no-toml"),
    ],
)
def test_bad_regions_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "regions.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_regions(file)


def test_regions_in_pixels_of_one_view(tmp_path: Path) -> None:
    file = tmp_path / "regions.toml"
    file.write_text('units = "px"\n[[region]]\nname = "mirror"\nview = "front.png"\nbox = [10, 20, 30, 40]\n')
    regions = read_regions(file)
    front, side = View("front.png", noise(1)), View("side.png", noise(1))
    assert [regions.at(front, *p) for p in ((10, 20), (39.9, 59.9), (40, 30), (9, 30))] == [0, 0, -1, -1]
    assert regions.at(side, 15, 30) == -1


def test_views_of_a_clip_are_paced(data: Path) -> None:
    clip = str(data / "faces" / "WolfgangLanger_Pexels.mp4")
    names = [view.name for view in read_views(clip, start_s=1.0, end_s=3.0, every_s=0.5)]
    assert len(names) == 4
    times = [float(name[:-1]) for name in names]
    assert times[0] >= 1.0 and times[-1] < 3.0
    assert all(later - earlier >= 0.499 for earlier, later in pairwise(times))


def test_a_missing_source_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="none"):
        list(read_views(str(tmp_path / "none.mp4")))


@pytest.mark.parametrize(
    ("picture", "other"),
    [
        pytest.param("panorama/P41_2000x1000.jpg", "faces/city_pexels109919.jpg", id="panorama"),
        pytest.param("faces/city_pexels109919.jpg", "panorama/P41_2000x1000.jpg", id="city"),
    ],
)
def test_separation_of_real_scenes(data: Path, artefacts: Path, picture: str, other: str) -> None:
    model = open_model("mobilenet_v2-fp32", ModelsConfig(dir=str(artefacts)))
    score = ScoreConfig()
    others = read_views(str(data / other))
    cache: EnvironmentCache = build(Embedder(model, score), read_views(str(data / picture)), score, others=others)
    report = cache.info.separation
    assert (report["n_matched"], report["n_mismatched"]) == (200, 200)
    assert report["auc"] >= 0.97 and report["gap_cos"] >= 0.4
    assert report["auc_retrieved"] >= 0.97


def test_covered_views_are_stored_and_read_when_asked_for(tmp_path: Path) -> None:
    model = PixelModel()
    views = keep_covered([View("a", noise(1)), View("b", noise(2))], lambda image: np.full_like(image, 128))
    store(tmp_path / "env", [build(embedder(model), views, ScoreConfig(), measured=False)])
    loaded = EnvironmentCache.load(tmp_path / "env", model.manifest)
    stored = cv2.imdecode(np.frombuffer(loaded.picture(1), np.uint8), cv2.IMREAD_COLOR)
    assert stored.shape == (120, 160, 3) and abs(int(stored.mean()) - 128) <= 2
    (tmp_path / "env/pixels/view-00000.jpg").write_bytes(b"another picture")
    with pytest.raises(CacheError, match="view-00000"):
        EnvironmentCache.load(tmp_path / "env", model.manifest)


def test_without_being_asked_no_view_is_stored(tmp_path: Path) -> None:
    model = PixelModel()
    store(tmp_path / "env", [build(embedder(model), [View("a", noise(1))], ScoreConfig(), measured=False)])
    assert not list((tmp_path / "env/pixels").glob("*.jpg"))
    assert EnvironmentCache.load(tmp_path / "env", model.manifest).picture(0) == b""
