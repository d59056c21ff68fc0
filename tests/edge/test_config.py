"""The configuration: what is read, what wins, and what is said of a mistake."""

from __future__ import annotations

import re
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
        ("scene.foo=1", "unknown setting 'scene.foo'; scene has source, start_s, end_s, "),
        ("gaze.silent_ms=-5", "--set gaze.silent_ms=-5: Expected `int` >= 1 - at `gaze.silent_ms`; got -5"),
        (
            "redact.cover=none",
            "Invalid enum value 'none' - at `redact.cover`; expected 'blur' | 'mosaic' | 'solid'",
        ),
        ("scene.pixel_format=TOOLONG", "Expected `str` of length <= 4 - at `scene.pixel_format`; got 'TOOLONG'"),
        (
            "score.window=40%",
            "--set score.window=40%: score.window can't be read; "
            "expected auto, 20% to 30% of the short side, or a side such as 100px; got '40%'",
        ),
        ("score.embedding=pca", "score.embedding can't be read; expected raw, centred or pca:N; got 'pca'"),
        ("scor.window=auto", "--set scor.window=auto: unknown setting 'scor'; did you mean score?"),
        ("score.deadline_ms=99999999999999999999", "--set score.deadline_ms=99999999999999999999: "),
        ("gaze.offset_ms=1e300", "--set gaze.offset_ms=1e300: Expected `float` <= 4000000000000"),
        ("scene.start_s=nan", "scene.start_s: must be a finite number; got nan"),
        ("scene", "--set scene: can't be read; expected section.key=value"),
        ("preset.x=1", "--set preset.x=1"),
    ],
    ids=[
        *("near miss", "no section", "nothing like it", "bound", "type", "nothing like it in its section"),
        *(
            "below",
            "no choice",
            "too long",
            "window",
            "embedding",
            "no section of its name",
            "beyond 64 bits",
            "beyond all times",
            "nan",
            "no value",
            "no such section",
        ),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(overrides=["preset=bench", text])
    assert said in str(error.value)


def test_the_file_is_blamed_for_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text("[gaze]\nsilent_ms = 0\n")
    with pytest.raises(ConfigError, match=r"short\.toml: Expected `int` >= 1 - at `gaze\.silent_ms`; got 0"):
        load(path, ["scene.source=0"])


def test_every_number_has_both_bounds() -> None:
    for key, default, bounds, _ in describe():
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert re.fullmatch(r"[-\d.e]+ to [\d.e+]+", bounds), key


def test_settings_survive_being_written_and_read() -> None:
    config = load(overrides=["scene.source=0", "aux.streams=['lsl:type=EEG']"])
    assert from_dict(to_dict(config), thing="again") == config


def test_every_setting_is_described_and_at_its_default() -> None:
    rows = {key: (default, text) for key, default, _, text in describe()}
    assert all(text for _, text in rows.values())
    for section, settings in to_dict(Config()).items():
        for key, value in settings.items() if isinstance(settings, dict) else ():
            assert rows[f"{section}.{key}"][0] in (value, None), key
