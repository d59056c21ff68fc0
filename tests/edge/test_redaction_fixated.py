"""Where a recording's person looks while a part of a clip is redacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import FixationConfig, GazeConfig
from edge.errors import SourceError
from edge.redaction import FixationTrack

NS = 1_000_000_000


@pytest.mark.parametrize("start_s", [0, 3], ids=["whole clip", "from the third second on"])
def test_gaze_must_reach_into_the_part_that_is_redacted(tmp_path: Path, start_s: int) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("t,x,y\n" + "".join(f"{i / 100},32,18\n" for i in range(200)))  # two seconds
    geometry = "camera = {width_px = 64, height_px = 36, hfov_deg = 60}"
    track = FixationTrack(GazeConfig(source=str(file), time_unit="s", units="px", geometry=geometry), FixationConfig())
    track.start((64, 36), start_s * NS)
    seen = [track.at(start_s * NS + i * NS // 10) for i in range(5)]
    if start_s:
        assert seen == [None] * 5
        with pytest.raises(SourceError, match="has no sample within the time of clip"):
            track.check_overlap("clip")
    else:
        assert seen[-1] == pytest.approx((32, 18))
        track.check_overlap("clip")
