"""EyeLink .asc: the counts in the files, lost eyes, pauses."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import GazeConfig
from edge.errors import ConfigError, SourceError
from edge.gaze.mapping import open_mapping
from edge.gaze.sources.eyelink import open_source, read_asc

HEAD = "MSG 1 GAZE_COORDS 0 0 1920 1080\nSTART 1000 LEFT RIGHT SAMPLES\nSAMPLES GAZE LEFT RIGHT RATE 500.00 TRACKING\n"


@pytest.mark.parametrize(
    ("name", "n_samples", "events", "hz"),
    [("binocular", 368, (4, 2, 2), 1000), ("monocular", 16, (2, 1, 0), 1000)],
    ids=["binocular", "monocular"],
)
def test_counts(data: Path, name: str, n_samples: int, events: tuple[int, int, int], hz: float) -> None:
    asc = read_asc(data / "gaze" / "eyelink_asc" / f"eyelink_{name}_example.asc")
    assert len(asc.times) == n_samples
    assert (len(asc.fixations), len(asc.saccades), len(asc.blinks)) == events
    assert asc.hz == hz


def test_places_times_and_lost_samples(data: Path) -> None:
    file = data / "gaze" / "eyelink_asc" / "eyelink_binocular_example.asc"
    with open_source(GazeConfig(source=str(file))) as source:
        read = list(source)
    # The first line: left (964.3, 541.5), right (960.5, 538.8) at the first START.
    assert (read[0].t_ns, read[0].x, read[0].y) == (0, pytest.approx(962.4), pytest.approx(540.15))
    # Both eyes are lost from 1408793 to 1408872, the blink of the right one.
    assert [raw.t_ns // 1_000_000 + 1408660 for raw in read if not raw.valid] == list(range(1408793, 1408873))
    assert "1920 x 1080" in source.info.note


def test_one_tracked_eye_is_enough_and_pauses_stay(tmp_path: Path) -> None:
    file = tmp_path / "two_blocks.asc"
    file.write_text(
        HEAD + "1000 10.0 20.0 300 30.0 40.0 310 .....\n1002 . . 0.0 31.0 41.0 310 .C...\nEND 1003 SAMPLES\n"
        "9999 1 2 3 4 5 6\nSTART 5000 LEFT RIGHT SAMPLES\n5000 . . 0 . . 0 .....\n"
    )
    with open_source(GazeConfig(source=str(file))) as source:
        read = list(source)
    assert [(r.t_ns, r.x, r.y, r.valid) for r in read[:2]] == [(0, 20, 30, True), (2_000_000, 31, 41, True)]
    assert [(r.t_ns, r.valid) for r in read[2:]] == [(4_000_000_000, False)]
    assert source.info.hz_declared == 500


@pytest.mark.parametrize(
    ("text", "words"),
    [(HEAD + "1000 ten 20 3 4 5 6\n", "line 4: is no sample"), ("MSG 1 hello\n", "no samples")],
    ids=["no number", "no samples"],
)
def test_wrong_files(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "gaze.asc"
    file.write_text(text)
    with pytest.raises(SourceError, match=words):
        open_source(GazeConfig(source=str(file)))


def test_the_screen_must_be_declared(data: Path) -> None:
    config = GazeConfig(source=str(data / "gaze" / "eyelink_asc" / "eyelink_binocular_example.asc"))
    with open_source(config) as source, pytest.raises(ConfigError, match=r"gaze.geometry=.*screen"):
        open_mapping(source, config)
