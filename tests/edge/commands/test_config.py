"""`emogaze config`: what it shows can be read back, as TOML and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from edge.commands import config as command
from edge.config import load, to_dict

FILE = """\
preset = "clinical"

[gaze]
geometry = '''
camera = {width_px = 640, height_px = 360, hfov_deg = 60}
'''
columns = {t = "the \\"time\\"", x = "0"}

[record]
segment_mb = 0.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "device.toml"
    path.write_text(FILE)
    return path


def config(*args: str | Path) -> str:
    app = typer.Typer()
    command.add(app)
    done = CliRunner().invoke(app, ["config", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_shown_can_be_read_back(file: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown.toml"
    shown.write_text(config("show", "-c", file))
    assert load(shown) == load(file)


def test_shown_as_json(file: Path) -> None:
    document = json.loads(config("show", "-c", file, "--json"))
    assert (document["schema"], document["version"]) == ("emogaze.config", 1)
    assert document["options"] == {"preset": "", "config": str(file)}
    rows = {row["key"]: row for row in document["settings"]}
    assert rows["redact.margin"] == {
        "key": "redact.margin",
        "value": 0.25,
        "default": 0.25,
        "bounds": "0 to 2",
        "description": "cover reaches beyond the box by this share of its size",
    }
    assert rows["redact.cover"]["value"] == "solid" != rows["redact.cover"]["default"]
    assert len(rows) == 1 + sum(len(section) for section in to_dict(load()).values() if isinstance(section, dict))


def test_checked_as_json(file: Path) -> None:
    assert json.loads(config("check", file, "--json")) == {
        "schema": "emogaze.config_check",
        "version": 1,
        "options": {"file": str(file)},
        "ok": True,
        "cautions": [],
    }
