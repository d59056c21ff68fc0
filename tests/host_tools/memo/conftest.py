from __future__ import annotations

from pathlib import Path

import pytest

from host_tools.memo.synthetic import Shape, make_archive

SMALL = Shape(n_models=3, n_prompts=6, n_raters=6, n_missing=5, picture_px=24)


@pytest.fixture(scope="session")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic archive of 3 generators, 6 prompts per emotion and 6 raters; don't change it, copy it."""
    folder = tmp_path_factory.mktemp("archive")
    make_archive(folder, SMALL)
    return folder
