"""Model artefacts are refused unless a publisher that the device knows signed them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from edge.backends.base import open_model
from edge.config import ModelsConfig, from_dict
from edge.errors import ModelError
from edge.keys import new_signing_pair, read_private
from edge.signatures import SIGNATURE_FILE, check_artefact, sign_artefact

NAME = "blazeface_full_sparse-fp32"


@pytest.fixture
def folder(artefacts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(artefacts / NAME, tmp_path / "models" / NAME))


@pytest.fixture
def models(tmp_path: Path) -> ModelsConfig:
    """A device that knows two publishers."""
    for name in ("one", "two"):
        new_signing_pair(tmp_path / f"{name}.key")
        (tmp_path / "trusted").mkdir(exist_ok=True)
        shutil.copyfile(tmp_path / f"{name}.pub", tmp_path / "trusted" / f"{name}.pub")
    return ModelsConfig(dir=str(tmp_path / "models"), publishers=str(tmp_path / "trusted"))


def test_a_device_that_knows_nobody_runs_unsigned_artefacts(folder, tmp_path):
    assert check_artefact(folder, ModelsConfig(publishers=str(tmp_path / "nobody"))) == ""


def test_a_signed_artefact_opens_and_says_who_signed_it(folder, models, tmp_path):
    sign_artefact(folder, read_private(tmp_path / "two.key"))
    assert check_artefact(folder, models) == "two"
    open_model(NAME, models).close()


@pytest.mark.parametrize("case", ["unsigned", "altered", "stranger", "garbage"])
def test_everything_else_is_refused(folder, models, tmp_path, case):
    if case != "unsigned":
        sign_artefact(folder, read_private(tmp_path / "one.key"))
    if case == "altered":
        manifest = folder / "model.json"
        manifest.write_text(manifest.read_text().replace('"version"', ' "version"', 1))
    if case == "stranger":
        new_signing_pair(tmp_path / "stranger.key")
        sign_artefact(folder, read_private(tmp_path / "stranger.key"))
    if case == "garbage":
        (folder / SIGNATURE_FILE).write_bytes(b"\xff\x00")
    with pytest.raises(ModelError, match="the signature of one or two"):
        open_model(NAME, models)


def test_the_key_folder_of_the_settings_holds_for_models_too(tmp_path):
    config = from_dict({"keys": {"dir": str(tmp_path / "keys")}}, thing="test")
    assert config.models.publishers == str(tmp_path / "keys" / "models")
