"""A recording played on an injected clock."""

from __future__ import annotations

import pytest

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.sources import open_gaze
from edge.gaze.sources.paced import PacedGaze

MS = 1_000_000


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "gaze.csv"
    rows = "".join(f"{2.0 + k * 0.01:.2f},{k},0\n" for k in range(5))
    path.write_text(f"# hz: 100\nt,x,y\n{rows}")
    return GazeConfig(source=str(path), time_unit="s", units="px", frame="scene_px")


def test_samples_come_when_they_are_due(recording):
    now = [1000 * MS]
    gaze = PacedGaze(open_gaze(recording), clock=lambda: now[0])
    assert gaze.info.live
    assert [(s.t_ns, s.x) for s in gaze.read_until(2000 * MS)] == [(1000 * MS, 0.0)]
    now[0] = 1025 * MS
    assert [s.t_ns // MS for s in gaze.read_until(2000 * MS)] == [1010, 1020]
    assert gaze.read_until(1030 * MS) == [] and not gaze.ended
    now[0] = 1100 * MS
    assert [s.seq for s in gaze.read_until(2000 * MS)] == [3, 4]
    assert gaze.ended


def test_a_loop_goes_on_without_a_jump(recording):
    now = [0]
    gaze = PacedGaze(open_gaze(recording), recording, clock=lambda: now[0])
    stamps = []
    for now[0] in range(0, 120 * MS, 5 * MS):
        stamps += [s.t_ns // MS for s in gaze.read_until(now[0])]
    assert stamps == list(range(0, 120, 10))
    gaze.close()
    assert gaze.ended


def test_a_missing_recording_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"missing\.csv"):
        open_gaze(GazeConfig(source=f"paced:{tmp_path}/missing.csv"))
