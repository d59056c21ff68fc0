"""The sample device files: every setting known and in bounds, every geometry readable, every source understood."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

import pytest

from edge.capture import is_live
from edge.commands.run import NOTHING_SCORED, OUTPUT_FAILED
from edge.config import load
from edge.gaze.geometry import read_geometry

DEVICES = Path(__file__).parents[1] / "docs" / "devices"


@pytest.mark.parametrize("path", sorted(DEVICES.glob("*/device.toml")), ids=lambda path: path.parent.name)
def test_a_sample_device_is_valid(path: Path) -> None:
    config = load(path)
    assert is_live(config.scene) and config.gaze.source.startswith("lsl:")
    geometry = read_geometry(str(path.parent / Path(config.gaze.geometry).name))
    assert geometry is not None and (geometry.camera or geometry.screen)
    assert not config.sinks.allow_plaintext and not config.sinks.events


def test_there_is_a_sample_for_each_kind_of_device() -> None:
    assert {path.parent.name for path in DEVICES.glob("*/device.toml")} == {"orin-neon", "x86-usb", "vehicle"}


def test_the_unit_waits_for_readiness_and_has_a_watchdog() -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEVICES / "emogaze.service")
    service = unit["Service"]
    assert service["Type"] == "notify" and int(service["WatchdogSec"]) >= 5
    assert service["ExecStart"].split()[1:] == ["run", "-c", "/etc/emogaze/device.toml"]
    assert os.path.isabs(service["ExecStart"].split()[0])
    assert set(map(int, service["RestartPreventExitStatus"].split())) == {OUTPUT_FAILED, NOTHING_SCORED}


@pytest.mark.parametrize("name", ["emogaze.service", "Containerfile.jetson", "Containerfile.x86-64"])
def test_service_and_containers_look_for_models_where_the_page_puts_them(name: str) -> None:
    setting = "EMOGAZE_MODELS=/var/lib/emogaze/models"
    assert f"export {setting}" in (DEVICES / "README.md").read_text()
    assert setting in (DEVICES / name).read_text()
