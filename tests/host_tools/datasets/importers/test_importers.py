from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from edge import plugins
from edge.errors import ConfigError, DataError
from edge.events import SCHEMA, VERSION, encode
from edge.records import Event
from host_tools.__main__ import app
from host_tools.datasets.importers import seedv, xdf
from host_tools.datasets.importers.base import PACKAGE, Imported, importer
from host_tools.datasets.layout import load
from host_tools.tables import read_table


def convert(name: str, source: Path, out: Path, **options: str) -> Imported:
    done: Imported = importer(name).convert(source, out, options)
    done.write(out)
    return done


def picture(path: Path, size: tuple[int, int] = (40, 20)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.zeros((size[1], size[0], 3), np.uint8))


@pytest.mark.parametrize("name", plugins.names(PACKAGE), ids=str)
def test_contract(name: str, tmp_path: Path) -> None:
    module = importer(name)
    assert module.ABOUT
    assert isinstance(module.OPTIONS, Mapping)
    with pytest.raises(DataError, match="doesn't know colour"):
        module.convert(tmp_path, tmp_path / "out", {"colour": "red"})
    with pytest.raises(DataError):  # an empty folder is told, whatever was expected in it
        convert(name, tmp_path, tmp_path / "out")


def test_unknown_importer_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="affectnet, emogaze360, events, generic, seedv, xdf"):
        importer("deap")


def test_generic_with_a_table(tmp_path: Path) -> None:
    source = tmp_path / "in"
    for name in ("a", "b", "c"):
        picture(source / "pictures" / f"{name}.png")
    (source / "gaze").mkdir()
    (source / "gaze" / "a-P1.csv").write_text("t,x,y\n0,1,1\n")
    (source / "labels.csv").write_text("file;emotion;participant\na.png;joy;P1\nb.png;sad;P2\nz.png;sad;P2\n")
    done = convert("generic", source, tmp_path / "out", label="emotion", labels="happy,sad", units="px")
    data = load(tmp_path / "out")
    assert [(s.sample_id, s.label, s.gaze) for s in data.samples] == [
        ("a-P1", "happy", "gaze/a-P1.csv"),
        ("b-P2", "sad", ""),
    ]
    assert done.findings == [
        "1 left out: labels without their picture",
        "1 left out: pictures without a label",
        "1 of 2 samples have no gaze: their FCC is undefined",
    ]


def test_generic_by_folders(tmp_path: Path) -> None:
    picture(tmp_path / "in" / "pictures" / "happy" / "a.png")
    picture(tmp_path / "in" / "pictures" / "Sadness" / "a.png")
    done = convert("generic", tmp_path / "in", tmp_path / "out", labels="happy,sad")
    assert [(s.sample_id, s.label) for s in load(tmp_path / "out").samples] == [
        ("Sadness-a", "sad"),
        ("happy-a", "happy"),
    ]
    assert done.info.lacks == ("gaze",)


def test_affectnet_codes_and_what_is_no_emotion(tmp_path: Path) -> None:
    for i, code in enumerate((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0)):
        if i < 11:
            picture(tmp_path / "in" / "val_set" / "images" / f"{i}.jpg")
        (tmp_path / "in" / "val_set" / "annotations").mkdir(exist_ok=True)
        np.save(tmp_path / "in" / "val_set" / "annotations" / f"{i}_exp.npy", str(code))
    done = convert("affectnet", tmp_path / "in", tmp_path / "out")
    data = load(tmp_path / "out")
    assert [s.label for s in sorted(data.samples, key=lambda s: int(s.sample_id.split("-")[-1]))] == [
        *("neutral", "happy", "sad", "surprise", "fear", "disgust", "angry", "contempt")
    ]
    assert data.info.projection == "face"
    assert len(done.findings) == 4
    assert "1 left out: its picture is missing" in done.findings


def test_affectnet_table(tmp_path: Path) -> None:
    picture(tmp_path / "in" / "Manually_Annotated_Images" / "1" / "a.jpg")
    (tmp_path / "in" / "validation.csv").write_text("subDirectory_filePath,expression\n1/a.jpg,6\n")
    importer("affectnet").convert(tmp_path / "in", tmp_path / "out", {})
    (sample,) = importer("affectnet").convert(tmp_path / "in", tmp_path / "out", {}).samples
    assert (sample.label, sample.split, sample.face) == ("angry", "test", "faces/Manually_Annotated_Images/1/a.jpg")


def seed_file(path: Path, labels: dict[int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {trial: np.zeros((3, 310)) for trial in labels}
    codes = {trial: np.full(3, float(code)) for trial, code in labels.items()}
    np.savez(path, data=pickle.dumps(data), label=pickle.dumps(codes))


def test_seedv_trials(tmp_path: Path) -> None:
    for folder in seedv.FOLDERS:
        seed_file(tmp_path / "in" / folder / "1_123.npz", {i: i % 5 for i in range(45)})
    done = convert("seedv", tmp_path / "in", tmp_path / "out")
    data = load(tmp_path / "out")
    assert len(data) == 45
    assert data.label_set.name == "seedv5"
    assert (data.samples[0].label, data.samples[44].label, data.samples[44].scene_type) == (
        "disgust",
        "happy",
        "session 3",
    )
    assert done.findings == ["1 people; its description says 16"]
    assert "FCC is undefined" in done.info.lacks[0]


class Evil:
    def __reduce__(self) -> Any:
        return print, ("called",)


def test_a_pickle_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in" / "EEG_DE_features" / "1_123.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, data=b"", label=pickle.dumps({0: Evil()}))
    with pytest.raises(DataError, match=r"asks for builtins\.print"):
        seedv.read_labels(path)
    with pytest.raises(pickle.UnpicklingError, match="not a dictionary"):
        seedv.load_arrays(pickle.dumps([1]))


@pytest.mark.parametrize(
    ("marker", "stimulus"),
    [("img1", "img1"), ("onset img1.jpg", "img1"), ('{"stim": "a/img2.png"}', "img2"), ("end", ""), ("img12", "")],
    ids=["name", "word", "path", "none", "longer"],
)
def test_markers_name_stimuli(marker: str, stimulus: str) -> None:
    assert xdf.stimulus_of(marker, {"img1": 0, "img2": 0}) == stimulus


def recording(write_xdf: Any, path: Path, hz: float = 100.0) -> None:
    t = 50 + np.arange(int(3 * hz)) / hz
    gaze = [(10.0 + k, 20.0) for k in range(len(t))]
    markers = ("Markers", "Markers", ["m"], [50.5, 51.5, 52.0], ["img1.jpg", "pause", "img2"])
    eeg = ("EEG", "EEG", [str(k) for k in range(8)], t.tolist(), [[0.0] * 8] * len(t))
    write_xdf(path, [("Eyes", "Gaze", ["x", "y"], t.tolist(), gaze), markers, eeg])


def test_xdf_is_cut_at_its_markers(tmp_path: Path, write_xdf: Any) -> None:
    (tmp_path / "in").mkdir()
    recording(write_xdf, tmp_path / "in" / "P1.xdf")
    picture(tmp_path / "in" / "pictures" / "img1.jpg")
    (tmp_path / "in" / "labels.csv").write_text("stimulus,label\nimg1.jpg,joy\nimg2.jpg,sad\n")
    done = convert("xdf", tmp_path / "in", tmp_path / "out", labels="happy,sad")
    one, two = load(tmp_path / "out").samples
    assert (one.label, one.participant, one.media, float(one.t_s)) == ("happy", "P1", "media/img1.jpg", 0.5)
    assert (two.label, two.media) == ("sad", "")
    table = read_table(tmp_path / "out" / one.gaze)
    assert len(table) == 100
    assert table.numbers("x")[0] == 60
    assert table.numbers("t")[[0, 99]] == pytest.approx([0, 0.99])
    assert done.info.gaze.frame == "screen_px"
    assert done.findings == ["1 left out: markers that name no stimulus", "1 samples have no picture"]


def test_emogaze360_lists_what_differs_from_its_description(tmp_path: Path, write_xdf: Any) -> None:
    source = tmp_path / "in"
    picture(source / "images" / "img1.jpg", (80, 40))
    picture(source / "images" / "img2.jpg", (80, 60))
    (source / "labels.csv").write_text("stimulus,label,split\nimg1,happy,train\nimg2,sad,test\n")
    (source / "xdf").mkdir()
    recording(write_xdf, source / "xdf" / "P7.xdf")
    done = importer("emogaze360").convert(source, tmp_path / "out", {})
    assert [(s.sample_id, s.media, s.split) for s in done.samples] == [
        ("P7-0000", "media/img1.jpg", "train"),
        ("P7-0001", "media/img2.jpg", "test"),
    ]
    assert done.info.projection == "panorama"
    assert done.info.lacks == ("face video",)
    for finding in (
        "2 pictures; its description says 1000",
        "1 stimuli of split train; its description says 700",
        "gaze is declared at 100 Hz; its description says 600",
        "EEG has 8 channels; its description says 14",
    ):
        assert finding in done.findings
    assert any("not two to one" in finding for finding in done.findings)


def test_emogaze360_with_gaze_already_cut(tmp_path: Path) -> None:
    source = tmp_path / "in"
    picture(source / "images" / "img1.jpg", (80, 40))
    (source / "labels.csv").write_text("stimulus,label,split\nimg1,happy,train\n")
    (source / "gaze" / "P1").mkdir(parents=True)
    (source / "gaze" / "P1" / "img1.csv").write_text("t,x,y\n0,0,0\n")
    done = convert("emogaze360", source, tmp_path / "out")
    assert done.samples[0].gaze == "gaze/P1/img1.csv"
    assert done.info.lacks == ("face video", "EEG")


def event(seq: int, t_s: float, kind: str, payload: dict[str, Any]) -> bytes:
    return encode(Event(seq, round(t_s * 1e9), 0, kind, payload))


def test_events_become_samples_with_the_runtimes_answers(tmp_path: Path) -> None:
    def step(seq: int, t: float, fixation: int, fcc: float | None, happy: float) -> bytes:
        emotion = {"label": "happy", "subject": "wearer", "probabilities": {"happy": happy, "sad": 1 - happy}}
        look = {
            "fixation_id": fixation,
            "x_px": 5.0,
            "y_px": 6.0,
            "start_ns": int(t * 1e9),
            "end_ns": int(t * 1e9) + 100,
        }
        score = {"fixation_id": fixation, "fcc_now": fcc}
        return event(seq, t, "score", {"score": score, "emotion": emotion, "fixation": look})

    source = tmp_path / "in"
    (source / "P1").mkdir(parents=True)
    lines = [event(0, 0, "session", {"schema": SCHEMA, "version": VERSION, "scene": {"source": "/x/drive.mp4"}})]
    lines += [
        step(1, 1.0, 0, 0.8, 0.9),
        step(2, 1.1, 0, 0.6, 0.8),
        step(3, 1.5, 1, 0.4, 0.4),
        step(4, 9.0, 2, 0.1, 0.1),
    ]
    (source / "P1" / "events.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    (source / "labels.csv").write_text("start_s,end_s,label\n1,2,joy\n3,4,sad\n")
    done = convert("events", source, tmp_path / "out", labels="happy,sad")
    table = read_table(tmp_path / "out" / "predictions" / "runtime.csv")
    assert table.text("pred") == ["happy", ""]
    # fixation 0: (0.8 + 0.6) / 2; fixation 1: 0.4
    np.testing.assert_allclose(table.numbers("fcc"), [(0.7 + 0.4) / 2, np.nan])
    np.testing.assert_allclose(table.numbers("p_happy"), [0.7, np.nan])
    assert len(read_table(tmp_path / "out" / "fixations.csv")) == 2
    assert done.findings == ["1 left out: scores in no labelled window", "P1-0001 has no score"]
    assert done.info.source == "event logs of drive.mp4"


def test_command_lists_importers_and_prints_findings(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["import-dataset", "list"], catch_exceptions=False)
    assert "seedv: SEED-V" in listed.output
    picture(tmp_path / "in" / "pictures" / "happy" / "a.png")
    command = [
        "import-dataset",
        "generic",
        str(tmp_path / "in"),
        "-o",
        str(tmp_path / "out"),
        "--set",
        "labels=happy,sad",
    ]
    document = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).output)
    assert (document["n_samples"], document["lacks"]) == (1, ["gaze"])
