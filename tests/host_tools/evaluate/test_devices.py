from __future__ import annotations

import pytest

from edge.config import ModelsConfig
from edge.errors import BackendError, ConfigError
from host_tools.engine import Engine
from host_tools.evaluate import devices

pytestmark = pytest.mark.usefixtures("artefacts")
EMBEDDER = ModelsConfig().embedder


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(BackendError, match=r"--devices tpu:1: can't be used here: .* has no 'tpu'.*emogaze doctor"):
        devices.open_on("tpu:1", EMBEDDER, ModelsConfig())


@pytest.mark.long
def test_devices_are_tried_before_the_work() -> None:
    devices.check(Engine(devices=("cpu",)), ModelsConfig())
    with pytest.raises(BackendError, match="--devices tpu:0: can't be used here"):
        devices.check(Engine(devices=("cpu", "tpu:0")), ModelsConfig())


@pytest.mark.parametrize("name", ["cuda:x", "0", "cuda:", "a b"])
def test_a_name_that_is_no_device(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--devices: .* names no device; expected cpu, cuda:0"):
        Engine(devices=(name,))
