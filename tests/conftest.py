"""Fixtures shared by all tests: the real data, the fetched artefacts, and what to do where a component is missing."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

REQUIRED = {name for name in os.environ.get("EMOGAZE_REQUIRE", "").split(",") if name}


def missing(component: str, reason: str) -> None:
    """Skip with the reason; fail where EMOGAZE_REQUIRE names the component."""
    if component in REQUIRED:
        pytest.fail(f"{component} is required here (EMOGAZE_REQUIRE) but {reason}")
    pytest.skip(f"{component}: {reason}", allow_module_level=True)


def need(module: str) -> Any:
    """Import a package that this test needs; skip, or fail where it is required, if it isn't installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        return missing(module, str(error))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real recordings, pictures and reference values."""
    folder = os.environ.get("EMOGAZE_DATA", "")
    if not folder or not Path(folder).is_dir():
        missing("data", "EMOGAZE_DATA names no folder of real recordings")
    return Path(folder)


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """The folder of model artefacts that `python -m models fetch default` wrote."""
    from edge.manifest import models_dir

    folder = models_dir("")
    if not any(folder.glob("*/model.json")):
        missing("models", f"no artefact in {folder}; run `python -m models fetch default`")
    return folder


@pytest.fixture(scope="session")
def chromium() -> tuple[str, str]:
    """Paths of Chromium and of the driver that belongs to it."""
    programs = [shutil.which(name) or "" for name in ("chromium", "chromedriver")]
    if not all(programs):
        missing("browser", "the packages chromium and chromium-driver are not installed")
    return programs[0], programs[1]
