"""The cache: transforms by hand, lookups that are undefined, and files that were altered."""

from __future__ import annotations

import math
from pathlib import Path

import faiss
import msgspec
import numpy as np
import pytest
from pixel_model import PixelModel

from edge.embedding import Transform
from edge.environment import (
    ENTRY,
    EnvironmentCache,
    EnvironmentInfo,
    build_index,
    list_caches,
    read_info,
    store,
)
from edge.errors import CacheError, SinkError


def cache_of(local: np.ndarray, scenes: np.ndarray, model: PixelModel | None = None) -> EnvironmentCache:
    """A cache of raw vectors, which are normalised as a builder does."""
    manifest = (model or PixelModel()).manifest
    transforms = tuple(Transform(np.zeros(v.shape[1], np.float32)) for v in (local, scenes))
    entries = np.zeros(len(local), ENTRY)
    entries["region"] = np.minimum(np.arange(len(local)) - 1, 1)
    info = EnvironmentInfo(
        embedder=manifest.name,
        embedder_id=manifest.model_id,
        model_sha256=manifest.sha256,
        precision="fp32",
        embedding="raw",
        window="auto",
        scales=(1.0,),
        n_views=len(scenes),
        n_entries=len(local),
        dim_local=local.shape[1],
        dim_global=scenes.shape[1],
        regions=("mirror", "road"),
        views=("a",) * len(scenes),
        separation={"auc": math.nan},
    )
    units = (transforms[0](local), transforms[1](scenes))
    return EnvironmentCache(
        info, (transforms[0], transforms[1]), (build_index(units[0]), build_index(units[1])), entries
    )


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


LOCAL = np.array([[1, 0, 0], [0, 2, 0], [0, 3, 4]], np.float32)
SCENES = np.array([[1, 1]], np.float32)


def test_best_match_by_hand() -> None:
    match = cache_of(LOCAL, SCENES).lookup(f32(0, 0, 10), f32(1, 0))
    # the third window is (0, .6, .8): cosine .8; the scene is at 45 degrees
    assert match.sim_local == pytest.approx(0.8, abs=1e-6)
    assert match.sim_global == pytest.approx(math.sqrt(0.5), abs=1e-6)
    assert (match.entry_local, match.entry_global, match.region, match.reason) == (2, 0, "road", "")
    assert cache_of(LOCAL, SCENES).lookup(f32(1, 0, 0), f32(1, 1)).region == ""


def test_identical_vectors_never_exceed_one() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.random((500, 257), dtype=np.float32)
    cache = cache_of(vectors, vectors)
    for row in vectors:
        match = cache.lookup(row, row)
        assert 0.999999 < match.sim_local <= 1.0


def test_an_opposite_vector_is_minus_one() -> None:
    assert cache_of(LOCAL[:1], SCENES).lookup(f32(-5, 0, 0), f32(-1, -1))[:2] == pytest.approx((-1.0, -1.0), abs=1e-6)


@pytest.mark.parametrize(
    ("local", "scene", "reason"),
    [
        pytest.param(f32(0, 0, 0), f32(1, 0), "local_zero_vector", id="zero"),
        pytest.param(f32(1, 0), f32(1, 0), "local_dimension_mismatch", id="short"),
        pytest.param(f32(1, 0, 0), f32(1, 0, 0), "global_dimension_mismatch", id="long-scene"),
        pytest.param(f32(math.nan, 0, 0), f32(1, 0), "local_not_finite", id="nan"),
        pytest.param(f32(1, 0, 0), f32(math.inf, 0), "global_not_finite", id="infinite"),
    ],
)
def test_undefined_has_a_reason(local: np.ndarray, scene: np.ndarray, reason: str) -> None:
    match = cache_of(LOCAL, SCENES).lookup(local, scene)
    assert match.reason == reason
    side = 0 if reason.startswith("local") else 1
    assert math.isnan(match[side]), "never 0 and never 1"
    assert (match.entry_local, match.entry_global)[side] == -1
    assert not math.isnan(match[1 - side]), "the other scale is still told"


def test_an_empty_index_is_undefined() -> None:
    match = cache_of(np.empty((0, 3), np.float32), SCENES).lookup(f32(1, 0, 0), f32(1, 0))
    assert (match.reason, match.entry_local, match.region) == ("local_empty_index", -1, "")
    assert math.isnan(match.sim_local)


def test_minus_one_is_never_an_entry() -> None:
    cache = cache_of(LOCAL, SCENES)
    assert cache.region_of(-1) == "", "-1 would name the last entry's region"
    found = cache.nearest(f32(0.1, 0, 1), 10)
    assert [entry for entry, _ in found] == [2, 0, 1], "an index of 3 asked for 10 gives 3"


def test_a_large_index_finds_itself() -> None:
    vectors = np.random.default_rng(1).normal(size=(4500, 24)).astype(np.float32)
    cache = cache_of(vectors, SCENES)
    found = [cache.lookup(vectors[i], SCENES[0]).entry_local for i in range(0, 4500, 50)]
    assert found == list(range(0, 4500, 50))


def test_the_graph_finds_what_an_exact_search_finds_and_is_built_alike_twice() -> None:
    rng = np.random.default_rng(3)
    tiles = rng.normal(size=(40, 64))[:, None] + 0.3 * rng.normal(size=(40, 50, 64))  # 40 places, 50 windows on each
    vectors = tiles.reshape(-1, 64).astype(np.float32)
    cache = cache_of(vectors, SCENES)
    looks = vectors[::25] + 0.2 * rng.normal(size=(80, 64)).astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    exact = (looks / np.linalg.norm(looks, axis=1, keepdims=True) @ unit.T).max(axis=1)
    found = [cache.lookup(look, SCENES[0]).sim_local for look in looks]
    np.testing.assert_allclose(found, exact, atol=1e-5)
    again = cache_of(vectors, SCENES)
    assert (faiss.serialize_index(cache.indices[0]) == faiss.serialize_index(again.indices[0])).all()


def test_stored_and_loaded_again(tmp_path: Path) -> None:
    model, other = PixelModel(), PixelModel(name="others")
    cache = cache_of(LOCAL, SCENES, model)
    store(tmp_path / "env", [cache, cache_of(LOCAL, SCENES, other)])
    loaded = EnvironmentCache.load(tmp_path / "env", model.manifest, embedding="raw")
    assert loaded.lookup(f32(0, 1, 1), f32(1, 0)) == cache.lookup(f32(0, 1, 1), f32(1, 0))
    assert [info.embedder for info in list_caches(tmp_path / "env")] == ["others", "pixels"]
    assert loaded.info.separation == {"auc": None}
    store(tmp_path / "env", [cache])
    assert [info.embedder for info in list_caches(tmp_path / "env")] == ["pixels"], "replaced as a whole"
    assert [p.name for p in tmp_path.iterdir()] == ["env"]


def test_stored_twice_is_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        store(tmp_path / name, [cache_of(LOCAL, SCENES)])
    assert (tmp_path / "a/pixels/env.json").read_bytes() == (tmp_path / "b/pixels/env.json").read_bytes()


def test_another_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env/thesis.txt").write_text("do not lose me")
    with pytest.raises(SinkError, match="choose another folder"):
        store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    assert (tmp_path / "env/thesis.txt").exists()


def test_a_failed_write_leaves_the_old_cache(tmp_path: Path) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    broken = cache_of(LOCAL, SCENES)
    broken.entries = np.array([object()], dtype=object)
    with pytest.raises(ValueError, match="pickle"):
        store(tmp_path / "env", [broken])
    assert read_info(tmp_path / "env/pixels").n_entries == 3
    assert [p.name for p in tmp_path.iterdir()] == ["env"]


def test_another_models_cache_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES, PixelModel(name="others"))])
    (tmp_path / "file").touch()
    for name, problem in (("file", "is a file, not a folder"), ("absent", "no such folder")):
        with pytest.raises(CacheError, match=f"{name}: {problem}; name the folder"):
            EnvironmentCache.load(tmp_path / name, PixelModel().manifest)
    with pytest.raises(
        CacheError,
        match=r"expected pixels; got others; build one: .*--set models\.embedder=pixels",
    ):
        EnvironmentCache.load(tmp_path / "env", PixelModel().manifest)
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    retrained = msgspec.structs.replace(PixelModel().manifest, sha256="f" * 64)
    with pytest.raises(CacheError, match="built by another model; expected pixels@ffff"):
        EnvironmentCache.load(tmp_path / "env", retrained)


def test_another_embedding_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    with pytest.raises(CacheError, match="expected centred; got raw"):
        EnvironmentCache.load(tmp_path / "env", PixelModel().manifest, embedding="centred")


def test_no_cache_at_all(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="no cache of this model"):
        EnvironmentCache.load(tmp_path, PixelModel().manifest)


@pytest.mark.parametrize("name", ["local.faiss", "mean_global.npy", "entries.npy"])
@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_altered_files_are_refused(tmp_path: Path, name: str, how: str) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    file = tmp_path / "env/pixels" / name
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if how == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CacheError, match=name):
        EnvironmentCache.load(tmp_path / "env", PixelModel().manifest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "can't be read", id="cut"),
        pytest.param("[]", "can't be read", id="no-object"),
        pytest.param('{"unknown": 1}', "can't be read", id="unknown-key"),
    ],
)
def test_a_broken_description_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    (tmp_path / "env/pixels/env.json").write_text(text)
    with pytest.raises(CacheError, match=message):
        EnvironmentCache.load(tmp_path / "env", PixelModel().manifest)


def test_an_altered_description_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "env", [cache_of(LOCAL, SCENES)])
    file = tmp_path / "env/pixels/env.json"
    text = file.read_text()
    file.write_text(text.replace('"precision": "', '"precision": "not '))
    assert file.read_text() != text
    with pytest.raises(CacheError, match=r"env\.json: was altered"):
        EnvironmentCache.load(tmp_path / "env", PixelModel().manifest)
