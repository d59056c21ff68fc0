"""The configuration: what is read, what wins, and what is said of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import Config, describe, from_dict, load, to_dict
from edge.config_files import presets
from edge.errors import ConfigError


def test_overrides_win_over_the_file_and_the_file_over_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "device.toml"
    file.write_text("[scene]\nsilent_ms = 300\n[score]\ndeadline_ms = 80\n")
    config = load(file, ["score.deadline_ms=70"], preset="in-car")
    assert (config.scene.silent_ms, config.score.deadline_ms) == (300, 70)
    assert config.gaze.silent_ms == 150  # the preset's
    assert config.preset == "in-car"


def test_a_preset_that_the_file_names_wins_over_the_option(tmp_path: Path) -> None:
    file = tmp_path / "device.toml"
    file.write_text('preset = "in-car"\n')
    assert load(file, preset="bench").preset == "in-car"


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_valid(name: str) -> None:
    assert load(preset=name).preset == name


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("scene.source=0", "0"),
        ("scene.source='0'", "0"),
        ("scene.source=clip.mp4", "clip.mp4"),
        ("scene.source=/dev/video0", "/dev/video0"),
    ],
    ids=["number", "quoted", "word", "path"],
)
def test_a_source_may_be_given_without_quotes(text: str, source: str) -> None:
    assert load(overrides=[text]).scene.source == source


def test_a_column_may_be_given_by_its_number() -> None:
    assert load(overrides=["gaze.columns.x=0", "gaze.columns.y=gx"]).gaze.columns == {"x": "0", "y": "gx"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scene.silent=3", "unknown setting 'scene.silent'; did you mean scene.silent_ms?"),
        ("silent_ms=3", "unknown setting 'silent_ms'; did you mean scene.silent_ms or face_camera.silent_ms or "),
        ("xyzzy.words=1", "unknown setting 'xyzzy'; `emogaze config show` lists all"),
        ("scene.silent_ms=0", "Expected `int` >= 1 - at `scene.silent_ms`"),
        ("scene.silent_ms=soon", "Expected `int`, got `str` - at `scene.silent_ms`"),
        ("scene.start_s=nan", "scene.start_s: must be a finite number; got nan"),
        ("scene", "--set scene: can't be read; expected section.key=value"),
        ("preset.x=1", "--set preset.x=1"),
    ],
    ids=["near miss", "no section", "nothing like it", "bound", "type", "nan", "no value", "no such section"],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(overrides=["preset=bench", text])
    assert said in str(error.value)


def test_settings_survive_being_written_and_read() -> None:
    config = load(overrides=["scene.source=0", "aux.streams=['lsl:type=EEG']"])
    assert from_dict(to_dict(config), thing="again") == config


def test_every_setting_is_described_and_at_its_default() -> None:
    rows = {key: (default, text) for key, default, _, text in describe()}
    assert all(text for _, text in rows.values())
    for section, settings in to_dict(Config()).items():
        for key, value in settings.items() if isinstance(settings, dict) else ():
            assert rows[f"{section}.{key}"][0] in (value, None), key
