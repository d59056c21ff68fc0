from __future__ import annotations

from pathlib import Path

import pytest

from edge.errors import ConfigError
from host_tools.memo.ask.collect import choose_profile
from host_tools.memo.ask.profiles import load_profiles
from host_tools.memo.ask.questions import load_questions
from host_tools.memo.settings import ModelSettings

PROFILES = load_profiles()


def test_the_profiles_that_come_along_are_whole() -> None:
    assert {"gpt-4o", "gemini-1.5-pro", "llava-1.5-7b", "mplug-owl3"} <= set(PROFILES.multimodal)
    assert {"SD1", "SD2", "DL3", "FCS", "SGA"} <= set(PROFILES.generators)
    for profile in PROFILES.multimodal.values():
        assert load_questions(profile.template).coarse()
        assert profile.base_url.startswith("https://" if profile.access == "closed" else "http://localhost")
        assert bool(profile.api_key_env) == (profile.access == "closed")


def test_own_profiles_win(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('[multimodal.gpt-4o]\nmodel = "mine"\nbase_url = "http://localhost/v1"\n')
    assert load_profiles(tmp_path / "p.toml").multimodal["gpt-4o"].model == "mine"


def test_another_server_for_a_profile() -> None:
    model = ModelSettings(name="x", profile="mplug-owl3", base_url="http://localhost:11434/v1")
    assert choose_profile(model, PROFILES).base_url == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ModelSettings(name="x"), "says not where its answers come from"),
        (ModelSettings(name="x", profile="gpt-4o", answers="a.csv"), "names answers and profile"),
        (ModelSettings(name="x", profile="gpt-5"), "there is no profile 'gpt-5'"),
    ],
    ids=["none", "two", "unknown"],
)
def test_sources(model: ModelSettings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        choose_profile(model, PROFILES)


def test_an_unknown_set_of_questions_is_named() -> None:
    with pytest.raises(ConfigError, match="there is no 'memo-0'; expected one of memo-1, memo-1-zh"):
        load_questions("memo-0")


def test_questions_hold_the_labels() -> None:
    assert "happy, sad, angry, surprise, worried, neutral" in load_questions("memo-1").coarse()
    assert "worried" in load_questions("memo-1").fine("WOR")
