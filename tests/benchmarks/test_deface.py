"""The comparison with `deface`: its measures on cases worked out by hand (the package itself isn't needed)."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.deface import change as measured
from benchmarks.deface import clip, cpu_s, is_covered, still_as_clip
from edge.errors import SourceError
from edge.records import Box

BOX: Box = (30.0, 30.0, 30.0, 30.0)


def change(inside: float, parts: int = 9, noise: float = 1.0) -> np.ndarray:
    """A picture that changed by `noise`, and by `inside` in the first `parts` of the box's 3 x 3 parts."""
    picture = np.full((90, 90), noise)
    for i in range(parts):
        row, column = 30 + 10 * (i // 3), 30 + 10 * (i % 3)
        picture[row : row + 10, column : column + 10] = inside
    return picture


@pytest.mark.parametrize(
    ("picture", "covered"),
    [
        pytest.param(change(20.0), True, id="whole"),
        pytest.param(change(20.0, parts=8), True, id="one-corner-left"),
        pytest.param(change(20.0, parts=7), False, id="two-parts-left"),
        pytest.param(change(1.0), False, id="encoding-alone"),
        pytest.param(change(3.9), False, id="little-more-than-encoding"),
        pytest.param(change(20.0, noise=18.0), False, id="everything-changed-alike"),
    ],
)
def test_a_face_is_covered_if_its_parts_changed_more_than_the_picture(picture: np.ndarray, covered: bool) -> None:
    assert is_covered(picture, BOX) is covered


def test_a_copy_that_was_scaled_is_compared_at_its_source_s_size() -> None:
    picture = (
        np.random.default_rng(0).integers(0, 255, (9, 16, 3)).repeat(20, axis=0).repeat(20, axis=1).astype(np.uint8)
    )
    covered = picture.copy()
    covered[60:100, 40:80] = 0
    scaled = cv2.resize(covered, (320, 192), interpolation=cv2.INTER_LINEAR)
    changed = measured(picture, scaled)
    assert changed.shape == (180, 320)
    assert is_covered(changed, (40.0, 60.0, 40.0, 40.0))
    assert not is_covered(changed, (200.0, 60.0, 40.0, 40.0))


def test_a_still_is_shown_for_five_seconds(tmp_path: Path) -> None:
    still = tmp_path / "a.png"
    cv2.imwrite(str(still), np.full((33, 65, 3), 90, np.uint8))
    made = still_as_clip(still, tmp_path, [BOX])
    assert (made.frames, made.required) == (125, (BOX,))
    assert clip(made.path).frames == 125


def test_the_time_of_a_child_and_its_children_is_counted() -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spin!r}])"
    assert cpu_s([sys.executable, "-c", nested]) >= 0.3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param(["/nothing/here"], "can't be run", id="missing"),
        pytest.param([sys.executable, "-c", "raise SystemExit('no such clip')"], "no such clip", id="failed"),
    ],
)
def test_a_program_that_can_not_be_run_is_named(command: list[str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        cpu_s(command)
