"""XDF: clock offsets and resets applied, the right stream picked; and what descriptions declare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.config import GazeConfig
from edge.errors import SourceError
from edge.gaze.description import channels_of, choose_channels, declared_by, plain_xml
from edge.gaze.sources.xdf import open_source, read_streams
from tests.conftest import need

need("pyxdf")
PUPIL = """<desc><channels>
<channel><label>confidence</label><eye>both</eye><type>Confidence</type><unit>normalized</unit></channel>
<channel><label>norm_pos_x</label><type>ScreenX</type><unit>normalized</unit><coordinate_system>world</coordinate_system>
</channel><channel><label>norm_pos_y</label><type>ScreenY</type><unit>normalized</unit></channel>
</channels></desc>"""
OWN = """<desc><emogaze><frame>scene_px</frame><units>px</units><simulated>yes</simulated>
<geometry>camera = {width_px = 640, height_px = 360, hfov_deg = 90}</geometry></emogaze>
<channels><channel><label>x</label></channel><channel><label>y</label></channel><channel><label>valid</label></channel>
</channels></desc>"""


def test_clock_offsets_shift_the_stream(data: Path) -> None:
    by_name = {stream.name: stream for stream in read_streams(data / "xdf" / "minimal.xdf")}
    numbers, texts = by_name["SendDataC"], by_name["SendDataString"]
    assert numbers.t_ns[0] == pytest.approx(5.0e9, abs=1e6)  # 5.1 s in the file
    assert (numbers.hz, numbers.n_channels, numbers.is_text) == (10, 3, False)
    assert texts.is_text


def test_clock_resets_are_undone(data: Path) -> None:
    markers = next(s for s in read_streams(data / "xdf" / "clock_resets.xdf") if s.name == "MyMarkerStream")
    assert len(markers.t_ns) == 175
    assert markers.t_ns[0] / 1e9 == pytest.approx(812.93, abs=0.01)
    assert markers.t_ns[-1] / 1e9 == pytest.approx(1380.82, abs=0.01)
    assert np.all(np.diff(markers.t_ns) > 0)


@pytest.mark.parametrize(
    ("stream", "columns", "words"),
    [
        ("", {}, r"no such stream.*SendDataC \(EEG\)"),
        ("#nothing", {}, "no such stream"),
        ("#SendDataString", {}, "is text"),
        ("#SendDataC", {}, "doesn't say which channels are x and y"),
        ("#EEG", {"x": "0", "y": "7"}, "no channel '7'"),
    ],
    ids=["no gaze", "unknown name", "text", "no labels", "no such channel"],
)
def test_streams_that_are_no_gaze(data: Path, stream: str, columns: dict, words: str) -> None:
    source = str(data / "xdf" / "minimal.xdf") + stream
    with pytest.raises(SourceError, match=words):
        open_source(GazeConfig(source=source, columns=columns, units="deg"))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "gaze.xdf"
    file.write_bytes(b"not an XDF file at all")
    with pytest.raises(SourceError, match="can't be read as XDF"):
        open_source(GazeConfig(source=str(file)))


def test_gaze_metadata_of_pupil_capture() -> None:
    desc = plain_xml(PUPIL)
    channels = channels_of(desc)
    chosen = choose_channels("stream", channels, 3, {})
    assert chosen == {"x": 1, "y": 2, "confidence": 0}
    declared = declared_by(desc, channels, chosen, 120.0)
    assert (declared.frame, declared.units, declared.origin) == ("scene_norm", "norm", "bottom-left")


def test_metadata_of_our_own_outlets() -> None:
    desc = plain_xml(OWN)
    channels = channels_of(desc)
    declared = declared_by(desc, channels, choose_channels("stream", channels, 3, {}), 200.0)
    assert (declared.frame, declared.units, declared.hz, declared.simulated) == ("scene_px", "px", 200.0, True)
    assert declared.geometry is not None
    assert declared.geometry.camera is not None
    assert declared.geometry.camera.fx == pytest.approx(320)


def test_declared_channels_win() -> None:
    channels = channels_of(plain_xml(PUPIL))
    assert choose_channels("stream", channels, 3, {"x": "confidence", "y": "2"}) == {"x": 0, "y": 2, "confidence": 0}
