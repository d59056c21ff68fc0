"""What an evaluation embeds: each window once, in its own place, and nothing again that is finished."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.config import ModelsConfig
from host_tools.engine import Engine
from host_tools.evaluate.embed import HUMAN, Embedded, Request, embed

pytestmark = pytest.mark.usefixtures("artefacts")
SIDE = 20
PLACES = np.array([[30.0, 25.0], [200.0, 5.0], [60.0, 40.0]])  # the second is off the picture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    picture = np.random.default_rng(0).integers(0, 255, (64, 96, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), picture)
    return tmp_path


def embedded(folder: Path, *sets: dict[str, np.ndarray]) -> list[Embedded]:
    requests = [Request("a.png", "hash of a", points, SIDE) for points in sets]
    return list(embed(requests, folder, ModelsConfig(), projection="picture", engine=Engine(done_dir=folder / "done")))


def test_samples_that_share_a_picture_and_places_share_their_vectors(folder: Path) -> None:
    first, second = embedded(folder, {HUMAN: PLACES, "net": PLACES[::-1]}, {HUMAN: PLACES[:1], "net": PLACES[2:]})
    assert first.size == (96, 64)
    assert np.isfinite(first.local[HUMAN]).all(axis=1).tolist() == [True, False, True]
    assert np.array_equal(first.local["net"], first.local[HUMAN][::-1], equal_nan=True)
    assert np.array_equal(second.local[HUMAN], first.local[HUMAN][:1])
    assert np.array_equal(second.local["net"], first.local[HUMAN][2:])
    assert not np.array_equal(first.local[HUMAN][0], first.local[HUMAN][2])
    assert np.array_equal(first.scene, second.scene)
    assert first.pooled[HUMAN] is not None
    assert first.pooled["net"] is not None


def test_other_recorded_fixations_leave_what_systems_look_at_finished(folder: Path) -> None:
    (before,) = embedded(folder, {HUMAN: PLACES, "net": PLACES})
    n = Engine(done_dir=folder / "done").count_finished()
    (after,) = embedded(folder, {HUMAN: PLACES + 1, "net": PLACES})
    assert Engine(done_dir=folder / "done").count_finished() == n + 1
    assert np.array_equal(before.local["net"], after.local["net"], equal_nan=True)
    assert not np.array_equal(before.local[HUMAN], after.local[HUMAN], equal_nan=True)
    assert embedded(folder, {HUMAN: PLACES + 1, "net": PLACES})[0].scene.tolist() == after.scene.tolist()
    assert Engine(done_dir=folder / "done").count_finished() == n + 1


def test_where_people_alone_look_nothing_is_pooled(folder: Path) -> None:
    (one,) = embedded(folder, {HUMAN: PLACES})
    assert one.pooled == {HUMAN: None}
    assert list(one.local) == [HUMAN]
