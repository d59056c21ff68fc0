"""The contract of gaze sources, for every plug-in; and what the table reader decides."""

from __future__ import annotations

from dataclasses import asdict
from operator import length_hint
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edge import plugins
from edge.config import FixationConfig, GazeConfig
from edge.errors import ConfigError, EmoGazeError, SourceError
from edge.events import gaze_to_plain
from edge.gaze.fixations import detect
from edge.gaze.geometry import Camera
from edge.gaze.mapping import open_mapping
from edge.gaze.simulator import Look, free_looks, saccade_s, simulate, write_csv
from edge.gaze.sources import open_gaze
from edge.gaze.sources.base import GazeInfo
from edge.records import NAN, Event, GazeSample, RawGaze

END = 2**63 - 1
LIVE = ("lsl", "paced", "pupil_labs")  #: each has a test file of its own
SCREEN = "screen = {width_mm = 510, height_mm = 287, width_px = 1920, height_px = 1080, distance_mm = 650}"
TABLE = "# time_unit: s\n# units: deg\n# hz: 100\nt,x,y,valid\n" + "".join(f"{i / 100},{i},0,1\n" for i in range(10))


def config_of(name: str, data: Path, folder: Path) -> GazeConfig:
    """A real or written source for each plug-in."""
    if name == "csv":
        file = folder / "gaze.csv"
        file.write_text(TABLE)
        return GazeConfig(source=str(file))
    if name == "tobii":
        return GazeConfig(source=str(data / "gaze" / "tobii_tx300_300hz" / "participant2_3.tsv"), geometry=SCREEN)
    if name == "eyelink":
        return GazeConfig(source=str(data / "gaze" / "eyelink_asc" / "eyelink_binocular_example.asc"), geometry=SCREEN)
    if name == "xdf":
        columns = {"x": "0", "y": "1"}  # no gaze stream lies in these files; numbers are numbers
        return GazeConfig(source=str(data / "xdf" / "minimal.xdf") + "#SendDataC", columns=columns, units="deg")
    if name == "neon":
        return GazeConfig(source=str(data / "gaze" / "neon_demo_recording"))
    pytest.fail(f"give gaze source {name!r} a recording in this test")


def record_session(study: Any) -> str:
    """Record ten gaze samples, two a frame."""
    info = GazeInfo("tracker", "direction", "deg", "top-left", live=True)
    with study.open() as sink:
        sink.event(Event(0, 0, 0, "session", {"gaze": asdict(info)}))
        for i in range(5):
            samples = [RawGaze(2 * i + k, i * 20_000_000 + k * 10_000_000, float(i), 0.0) for k in range(2)]
            sink.event(Event(1 + i, i * 20_000_000, i * 20_000_000, "score", {"gaze": gaze_to_plain(samples)}))
    return f"session:{next(study.recordings.glob('*Z-*'))}?identity={study.identity}"


@pytest.fixture(params=[name for name in plugins.names("edge.gaze.sources") if name not in LIVE])
def config(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> GazeConfig:
    if request.param == "session":
        return GazeConfig(source=record_session(request.getfixturevalue("study")))
    return config_of(request.param, data, tmp_path)


def test_contract(config: GazeConfig) -> None:
    with open_gaze(config) as source:
        assert source.info.source == config.source
        mapping = open_mapping(source, config)
        first = source.read_until(END)
        assert source.read_until(END) == []
        assert source.ended
    source.close()  # twice is fine
    assert len(first) >= 2
    assert [raw.seq for raw in first] == list(range(len(first)))
    assert all(isinstance(raw.t_ns, int) for raw in first)
    assert any(np.isfinite(mapping(raw).x_deg) for raw in first)


def test_contract_reads_in_steps(config: GazeConfig) -> None:
    with open_gaze(config) as whole, open_gaze(config) as steps:
        everything = whole.read_until(END)
        middle = everything[len(everything) // 2].t_ns
        before = steps.read_until(middle)
        assert before[-1].t_ns <= middle
        assert not steps.ended
        assert repr(before + steps.read_until(END)) == repr(everything)  # as text: nan is not nan


def test_contract_offset(config: GazeConfig) -> None:
    moved = msgspec.structs.replace(config, offset_ms=12.5)
    with open_gaze(config) as a, open_gaze(moved) as b:
        assert b.read_until(END)[0].t_ns - a.read_until(END)[0].t_ns == 12_500_000


@pytest.mark.parametrize(
    "text",
    [
        "\ufefft;x;y\n0;1,5;2\n10;2,5;3\n",
        "t\tx\ty\n0\t1.5\t2\n10\t2.5\t3\n",
        "extra,y,x,t\nq,2,1.5,0\nq,3,2.5,10\n",
        "t,x,y\r\n0,1.5,2\r\n\r\n10,2.5,3\r\n",
        '"t", "x", "y"\n0, 1.5, 2\n10, "2.5", 3\n',
    ],
    ids=["mark, semicolons, decimal commas", "tabs", "other order", "windows line ends", "spaces and quotes"],
)
def test_tables_of_all_kinds(tmp_path: Path, text: str) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text(text, encoding="utf-8", newline="")
    with open_gaze(GazeConfig(source=str(file), time_unit="ms", units="deg")) as source:
        assert length_hint(source) == 2
        assert [(r.t_ns, r.x, r.y) for r in source.read_until(END)] == [(0, 1.5, 2.0), (10_000_000, 2.5, 3.0)]
        assert length_hint(source) == 0


def test_missing_values_are_invalid_samples(tmp_path: Path) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("t,x,y,ok\n0,1,2,true\n1,,2,true\n2,NaN,2,1\n3,1,2,false\n")
    config = GazeConfig(source=str(file), time_unit="s", units="deg", columns={"valid": "ok"})
    with open_gaze(config) as source:
        assert [r.valid for r in source.read_until(END)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ("t,x,y\n0,1,2\n", {"units": "deg"}, "add --set gaze.time_unit=s"),
        ("t,x,y\n0,1,2\n", {"time_unit": "s"}, "add --set gaze.frame=scene_px .*--set gaze.geometry="),
        ("t,x,y\n0,1,2\n", {"time_unit": "s", "units": "px"}, "add --set gaze.frame=scene_px"),
        ("t,x,y\n0,1,2\n", {"time_unit": "s", "frame": "direction"}, "add --set gaze.units=deg"),
        (
            "time,x,y\n0,1,2\n",
            {"time_unit": "s", "units": "deg"},
            "column of t .there are time, x, y.*gaze.columns.t=",
        ),
        ("t,x,y\n0,1,2\n", {"time_unit": "s", "units": "deg", "columns": {"valid": "ok"}}, "no column 'ok'"),
        ("t,x,y\n0,1,2\n", {"time_unit": "s", "units": "deg", "columns": {"z": "ok"}}, "there is no 'z'"),
        ("t,x,y\n0,1,2\n0,one,2\n", {"time_unit": "s", "units": "deg"}, "line 3 column 'x': 'one' is no number"),
        ("t,x,y\n,1,2\n", {"time_unit": "s", "units": "deg"}, "1 of 1 samples have no time"),
        ("t,x,y\n1e300,1,2\n", {"time_unit": "s", "units": "deg"}, "have a time more than 140 years from 0"),
        ("t,x,y\n", {"time_unit": "s", "units": "deg"}, "no gaze sample"),
        ("", {"time_unit": "s", "units": "deg"}, "is empty"),
        ("0,1.5,-2e1\n1,1,2\n", {"time_unit": "s", "units": "deg"}, "has no header line; expected names such as t,x,y"),
        ("t,x,y\n2,1,2\n1,1,2\n", {"time_unit": "s", "units": "deg"}, "times don't increase"),
        ("t,x,y\n1,1,2\n1,1,2\n", {"time_unit": "s", "units": "deg"}, "times don't increase"),
        (
            "a,b\n0,1\n",
            {},
            r"unit of the times, the column of t, x, y \(there are a, b\), the frame of x and y and the geometry are "
            r"undeclared; add --set gaze.time_unit=s .* --set gaze.columns.t=NAME .* --set gaze.frame=.*gaze.geometry",
        ),
    ],
    ids=[
        *("time unit", "frame", "frame of px", "unit of direction", "column", "declared column"),
        *("unknown meaning", "no number", "no time", "no such time", "header only", "empty", "no header"),
        *("backwards", "one time", "nothing is declared"),
    ],
)
def test_what_is_undeclared_or_wrong_is_refused(tmp_path: Path, text: str, settings: dict, words: str) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text(text)
    with pytest.raises(EmoGazeError, match=words):
        open_gaze(GazeConfig(source=str(file), **settings))


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("", ConfigError, "empty"),
        ("absent.csv", SourceError, "no such file"),
        ("picture.png", SourceError, "set gaze.format to one of"),
    ],
    ids=["no name", "no file", "unknown kind"],
)
def test_sources_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: type, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(error, match=words):
        open_gaze(GazeConfig(source=source))


def test_npy_with_named_fields(data: Path) -> None:
    file = data / "gaze" / "irf_eyelink_1000hz" / "lookAtPoint_EL_S1.npy"
    with open_gaze(GazeConfig(source=str(file), time_unit="s", units="deg", columns={"valid": "status"})) as source:
        read = source.read_until(END)
    assert len(read) == 81003
    assert sum(not raw.valid for raw in read) == 1862
    assert [raw.t_ns for raw in read[:3]] == [0, 1_000_000, 2_000_000]


def test_neon_times_start_at_the_first_scene_picture(data: Path) -> None:
    folder = data / "gaze" / "neon_demo_recording"
    config = GazeConfig(source=str(folder))
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        read = source.read_until(END)
    assert len(read) == 1788
    assert read[0].t_ns == 1760676790465965534 - 1760676789685918534
    assert (read[0].x, read[0].y) == pytest.approx((719.7832, 749.7763), abs=1e-3)
    assert source.info.hz_declared == 200
    assert mapping.nominal
    assert "nominal" in source.info.note
    # The device names two blinks; 235.129 and 255.254 ms at 200 Hz hold 48 and 52 samples.
    assert sum(not raw.valid for raw in read) == 100


def test_neon_intrinsics_come_from_its_calibration(data: Path, tmp_path: Path) -> None:
    for file in (data / "gaze" / "neon_demo_recording").iterdir():
        (tmp_path / file.name).symlink_to(file)
    matrix = np.array([[900.0, 0, 790], [0, 901, 610], [0, 0, 1]])
    record = b"\x01" + b"123456" + matrix.tobytes() + np.zeros(8).tobytes() + bytes(660)
    (tmp_path / "calibration.bin").write_bytes(record)
    config = GazeConfig(source=str(tmp_path))
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        camera = source.geometry.camera if source.geometry else None
    assert not mapping.nominal
    assert camera is not None
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (900, 901, 790, 610)


@pytest.mark.parametrize("as_pixels", [False, True], ids=["degrees", "pixels"])
def test_simulated_gaze_says_so_and_comes_back(tmp_path: Path, as_pixels: bool) -> None:
    camera = Camera(width_px=640, height_px=360, hfov_deg=60).complete() if as_pixels else None
    gaze = simulate(free_looks(5.0, seed=2), 200, seed=2)
    file = tmp_path / "gaze.csv"
    write_csv(file, gaze, seed=2, hz=200, camera=camera)
    config = GazeConfig(source=str(file))
    with open_gaze(config) as source:
        mapping = open_mapping(source, config)
        read = [mapping(raw) for raw in source.read_until(END)]
    assert source.info.simulated
    assert source.info.hz_declared == 200
    assert [s.x_deg for s in read] == pytest.approx(gaze.x_deg.tolist(), abs=1e-4)
    assert [s.y_deg for s in read] == pytest.approx(gaze.y_deg.tolist(), abs=1e-4)
    assert np.isfinite(read[0].x_px) == as_pixels


def test_simulation_is_seeded_and_keeps_the_main_sequence() -> None:
    looks = [Look(0, 1, 0, 0), Look(1.1, 2, 10, 0)]
    one, two = simulate(looks, 1000, seed=4), simulate(looks, 1000, seed=4)
    assert np.array_equal(one.x_deg, two.x_deg)
    assert not np.array_equal(one.x_deg, simulate(looks, 1000, seed=5).x_deg)
    assert saccade_s(10) == pytest.approx(0.043)  # 2.2 * 10 + 21 ms
    assert one.fixations == [(0, pytest.approx(1.057)), (pytest.approx(1.1), 2)]


def test_simulated_blinks_are_found_again() -> None:
    gaze = simulate([Look(0, 60, 0, 0)], 200, seed=1)
    samples = [
        GazeSample(i, round(float(t) * 1e9), NAN, NAN, float(x), float(y), 1.0, bool(v))
        for i, (t, x, y, v) in enumerate(zip(gaze.t_s, gaze.x_deg, gaze.y_deg, gaze.valid, strict=True))
    ]
    found = detect(samples, FixationConfig()).blinks
    assert len(found) == len(gaze.blinks) >= 5
    for blink, (start, end) in zip(found, gaze.blinks, strict=True):
        assert blink.start_ns / 1e9 == pytest.approx(start, abs=0.05)
        assert blink.end_ns / 1e9 == pytest.approx(end, abs=0.05)


@pytest.mark.parametrize(
    "times",
    [
        [*range(0, 50, 5), *range(10**7, 10**7 + 50, 5)],
        [*range(10**8, 10**8 + 50, 5), *range(0, 50, 5)],
        [burst + i / 100 for burst in range(0, 3000, 60) for i in range(12)],
    ],
    ids=["a long pause", "a clock that starts anew", "bursts"],
)
def test_odd_times_raise_no_doubt_of_their_unit(tmp_path: Path, times: list[float]) -> None:
    file = tmp_path / "gaze.csv"
    file.write_text("t,x,y\n" + "".join(f"{t},1,2\n" for t in times))
    with open_gaze(GazeConfig(source=str(file), time_unit="ms", units="deg")) as source:
        assert source.doubt == ""
