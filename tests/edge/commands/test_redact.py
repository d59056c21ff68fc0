"""`emogaze redact` on real stills and clips: what must be covered is covered, and bad input ends in one line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from edge.capture.images import read_picture
from edge.cli import main
from edge.commands.redact import _print_reports
from edge.metadata import of_clip, of_still
from edge.records import Box, RedactedFrame
from edge.redaction import Audio, Report
from edge.sinks.video import VideoWriter

ROOT = Path(__file__).parents[3]


def redact(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge.cli", "redact", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def result(*args: str | Path) -> dict[str, Any]:
    done = redact(*args, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def required_faces(data: Path) -> dict[str, list[Box]]:
    faces: dict[str, list[Box]] = {}
    with (data / "faces" / "faces_gt.csv").open() as file:
        for row in csv.DictReader(file):
            if row["use"] == "required":
                box = (float(row["x"]), float(row["y"]), float(row["w"]), float(row["h"]))
                faces.setdefault(row["image"], []).append(box)
    return faces


def changed_share(before: np.ndarray, after: np.ndarray, box: Box) -> float:
    x, y, w, h = box
    part = np.s_[max(0, round(y)) : max(0, round(y + h)), max(0, round(x)) : max(0, round(x + w))]
    return float((before[part] != after[part]).any(axis=2).mean())


def decoded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [f.to_ndarray(format="bgr24") for f in container.decode(video=0)]


@pytest.fixture(scope="module")
def stills(data: Path, artefacts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of real stills, redacted as lossless copies so that a changed pixel is a covered one."""
    source, output = tmp_path_factory.mktemp("stills"), tmp_path_factory.mktemp("covered")
    for name in required_faces(data):
        cv2.imwrite(str(source / f"{Path(name).stem}.png"), read_picture(data / "faces" / name).image)
    return output, result(source, "-o", output)


def test_every_required_face_is_covered_at_default_settings(data: Path, stills: tuple[Path, dict[str, Any]]) -> None:
    output, _ = stills
    missed = []
    for name, boxes in required_faces(data).items():
        before = read_picture(data / "faces" / name).image
        after = read_picture(output / f"{Path(name).stem}.png").image
        shares = [changed_share(before, after, box) for box in boxes]
        missed += [(name, box, share) for box, share in zip(boxes, shares, strict=True) if share < 0.95]
        assert changed_share(before, after, (0, 0, before.shape[1], before.shape[0])) < 0.8, name
    assert missed == []


def test_the_json_of_a_folder(stills: tuple[Path, dict[str, Any]]) -> None:
    _, document = stills
    assert (document["schema"], document["version"]) == ("emogaze.redact", 1)
    assert document["options"]["redact"]["cover"] == "blur"
    assert (document["audio"], document["frames_withheld"]) == ("none", 0)
    frames = document["frames"]
    assert len(frames) == 4
    assert document["faces_covered"] == sum(len(frame["faces"]) for frame in frames)
    assert set(frames[0]) == {"frame_id", "t_ns", "width", "height", "withheld", "faces"}
    assert set(frames[0]["faces"][0]) == {"box", "score", "track_id", "covered", "fixated", "origin"}
    names = [Path(file["source"]).stem for file in document["files"]]
    partial = frames[names.index("obama_partial_face")]
    assert [face["box"][0] < 0 for face in partial["faces"]] == [True]


def test_the_egocentric_clip_shows_two_faces_in_every_frame(data: Path, artefacts: Path, tmp_path: Path) -> None:
    output = tmp_path / "covered.mp4"
    source = data / "faces" / "egoblur_test_face_video.mp4"
    document = result(source, "-o", output)
    assert [len(frame["faces"]) for frame in document["frames"]] == [2] * 14
    assert {face["track_id"] for frame in document["frames"] for face in frame["faces"]} == {0, 1}
    assert document["audio"] == "dropped"
    with av.open(str(output)) as container:
        assert [s.type for s in container.streams] == ["video"]
        assert "creation_time" not in container.metadata
    after = decoded(output)
    assert len(after) == 14
    box = document["frames"][7]["faces"][0]["box"]
    change = cv2.absdiff(decoded(source)[7], after[7]).mean(axis=2)
    x, y, w, h = (round(v) for v in box)
    assert change[y : y + h, x : x + w].mean() > 4 * np.median(change)


def test_the_clip_without_faces_has_none(data: Path, artefacts: Path, tmp_path: Path) -> None:
    document = result(data / "faces" / "no_face_caminandes.mp4", "-o", tmp_path / "covered.mp4")
    assert len(document["frames"]) == 95
    assert document["faces_covered"] == sum(len(frame["faces"]) for frame in document["frames"]) == 0
    assert "98 pictures declared, 95 decoded" in document["files"][0]["note"]


def gaze_file(folder: Path, rows: list[tuple[float, float, float]]) -> list[str]:
    """Write a gaze table in scene pixels and return the options that declare it."""
    table, geometry = folder / "gaze.csv", folder / "geometry.toml"
    table.write_text("t,x,y\n" + "".join(f"{t},{x},{y}\n" for t, x, y in rows))
    geometry.write_text("[camera]\nwidth_px = 640\nheight_px = 360\nhfov_deg = 60\n")
    settings = ["gaze.time_unit=s", "gaze.units=px", "gaze.frame=scene_px", f"gaze.geometry='{geometry}'"]
    columns = ["gaze.columns.t=t", "gaze.columns.x=x", "gaze.columns.y=y"]
    return ["--gaze", str(table), *(part for setting in (*settings, *columns) for part in ("--set", setting))]


def test_the_face_that_is_looked_at_is_clear_and_covered_again_without_gaze(
    data: Path, artefacts: Path, tmp_path: Path
) -> None:
    source = data / "faces" / "WolfgangLanger_Pexels.mp4"
    first = result(source, "-o", tmp_path / "a.mp4", "--set", "scene.end_s=0.1")["frames"][0]["faces"][0]["box"]
    x, y = first[0] + first[2] / 2, first[1] + first[3] / 2
    looking = [(i / 100, x, y) for i in range(50)]  # half a second; then the recording ends
    document = result(source, "-o", tmp_path / "b.mp4", "--set", "scene.end_s=1", *gaze_file(tmp_path, looking))
    faces = [(frame["t_ns"] / 1e9, frame["faces"][0]) for frame in document["frames"]]
    assert all(face["fixated"] and not face["covered"] for t, face in faces if 0.25 <= t <= 0.5)
    assert all(face["covered"] and not face["fixated"] for t, face in faces if t >= 0.75)


@pytest.mark.parametrize(
    ("audio", "said"), [("dropped", "sound was dropped"), ("kept", "sound was kept"), ("none", "")]
)
def test_what_became_of_the_sound_is_printed(capsys, audio: Audio, said: str) -> None:
    _print_reports([Report(Path("a.mp4"), Path("b.mp4"), audio=audio)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ([f"  the {said}"] if said else [])


@pytest.mark.parametrize(
    ("keep", "audio"), [pytest.param([], "dropped", id="dropped"), pytest.param(["--keep-audio"], "kept", id="kept")]
)
def test_sound_is_dropped_unless_asked_for(
    data: Path, artefacts: Path, tmp_path: Path, keep: list[str], audio: str
) -> None:
    output = tmp_path / "covered.mp4"
    source = data / "faces" / "WolfgangLanger_Pexels.mp4"
    done = redact(source, "-o", output, "--set", "scene.end_s=0.5", "--json", *keep)
    assert json.loads(done.stdout)["audio"] == audio
    assert ("voice" in done.stderr) is bool(keep)
    with av.open(str(output)) as container:
        assert len(container.streams.audio) == len(keep)
        if keep:
            assert sum(f.samples for f in container.decode(audio=0)) > 0.4 * container.streams.audio[0].rate


def test_transparency_is_kept_and_exif_is_not(data: Path, artefacts: Path, tmp_path: Path) -> None:
    image = read_picture(data / "faces" / "biden.jpg").image[100:600:2, 300:800:2]
    alpha = np.full(image.shape[:2], 77, np.uint8)
    source = tmp_path / "a.png"
    cv2.imwrite(str(source), np.dstack([image, alpha]))
    result(source, "-o", tmp_path / "b.png")
    after = read_picture(tmp_path / "b.png")
    assert after.alpha is not None
    covered = (after.image != image).any(axis=2)
    assert (after.alpha[covered] == 255).all(), "alpha can hold a face too"
    assert set(np.unique(after.alpha)) == {77, 255}
    portrait = data / "faces" / "portrait_exif_pexels3763152.jpg"
    result(portrait, "-o", tmp_path / "c.jpg")
    assert b"Exif" in portrait.read_bytes()
    assert b"Exif" not in (tmp_path / "c.jpg").read_bytes()


def test_metadata_is_left_behind_and_named(data: Path, artefacts: Path, tmp_path: Path) -> None:
    source = data / "faces" / "portrait_exif_pexels3763152.jpg"
    removed = result(source, "-o", tmp_path / "a.jpg")["files"][0]["removed"]
    assert {"GPS position", "device serial number", "date and time"} <= set(removed)
    assert of_still(tmp_path / "a.jpg") == []
    clip = data / "faces" / "WolfgangLanger_Pexels.mp4"
    removed = result(clip, "-o", tmp_path / "a.mp4", "--set", "scene.end_s=0.2")["files"][0]["removed"]
    assert "tag creation_time" in removed
    assert [name for name in of_clip(tmp_path / "a.mp4") if "handler" not in name and "language" not in name] == []


@pytest.mark.parametrize("cover", ["blur", "mosaic"])
def test_a_covered_face_is_no_longer_detected(data: Path, artefacts: Path, tmp_path: Path, cover: str) -> None:
    """Re-detection: at the same threshold the recall detector finds no face where one was covered."""
    source, covered = tmp_path / "face.png", tmp_path / "covered.png"
    cv2.imwrite(str(source), cv2.resize(read_picture(data / "faces" / "biden.jpg").image, None, fx=0.25, fy=0.25))
    assert len(result(source, "-o", covered, "--cover", cover)["frames"][0]["faces"]) == 1
    again = result(covered, "-o", tmp_path / "again.png", "--set", "redact.turned=never")
    assert again["frames"][0]["faces"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["nothing.mp4", "-o", "out.mp4"], "nothing.mp4: no such file", id="missing-clip"),
        pytest.param(["nothing.jpg", "-o", "out.jpg"], "nothing.jpg: no such file", id="missing-still"),
        pytest.param(["broken.mp4", "-o", "out.mp4"], "can't be read as a clip", id="unreadable-clip"),
        pytest.param(["broken.jpg", "-o", "out.jpg"], "can't be read as a picture", id="unreadable-still"),
        pytest.param(["empty", "-o", "out"], "holds no pictures", id="empty-folder"),
        pytest.param(["a.png", "-o", "a.png"], "is the source itself", id="onto-itself"),
        pytest.param(["b.part.mp4", "-o", "b.mp4"], "is the source itself", id="onto-its-part"),
        pytest.param(["a.png", "-o", "out.xyz"], "a.png can't be of kind '.xyz'", id="unknown-kind"),
        pytest.param(["a.heic", "-o", "out"], "a.heic: is of unknown kind '.heic'", id="unknown-source"),
        pytest.param(["a.gif", "-o", "b.gif"], "the clip a.gif can't be of kind '.gif'", id="clip-as-gif"),
        pytest.param(["a.png", "-o", "broken.jpg/out.png"], "can't be written", id="unwritable"),
        pytest.param(["a.png", "-o", "out.png", "--cover", "fog"], "redact.cover", id="unknown-cover"),
        pytest.param(["a.png", "-o", "out.png", "--gaze", "g.csv"], "a still has none", id="gaze-for-a-still"),
    ],
)
def test_bad_input_ends_in_one_line_and_leaves_no_output(
    artefacts: Path, tmp_path: Path, args: list[str], message: str
) -> None:
    for name in ("broken.mp4", "broken.jpg", "b.part.mp4"):
        (tmp_path / name).write_text("nothing of the kind")
    (tmp_path / "empty").mkdir()
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((40, 40, 3), np.uint8))
    for name in ("a.heic", "a.gif"):
        (tmp_path / name).write_bytes(b"x")
    there = set(tmp_path.rglob("*"))
    done = redact(*(tmp_path / a if "." in a or a in {"empty", "out"} else a for a in args))
    assert done.returncode == 1
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("INFO:")]) == 1  # TensorFlow Lite's
    assert set(tmp_path.rglob("*")) - there == set()


def test_a_folder_goes_on_past_what_fails_and_lists_it(
    artefacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    gray = np.full((40, 48, 3), 90, np.uint8)
    (source / "a.jpg").write_text("broken")
    cv2.imwrite(str(source / "b.png"), gray.astype(np.uint16) * 257)
    cv2.imwritemulti(str(source / "c.tiff"), [gray, gray, gray])
    (source / "notes.txt").write_text("hello")
    (source / "more").mkdir()
    (source / "clip.mp4").write_text("")
    monkeypatch.setattr(sys, "argv", ["emogaze", "redact", str(source), "-o", str(output), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert ended.value.code == 1
    assert sorted(p.name for p in output.iterdir()) == ["b.png", "c.tiff"]
    assert [Path(f["source"]).name for f in document["failed"]] == ["a.jpg"]
    assert "can't be read as a picture" in document["failed"][0]["reason"]
    assert {Path(f["source"]).name: f["reason"] for f in document["skipped"]} == {
        "clip.mp4": "a clip (give clips one at a time)",
        "more": "a folder",
        "notes.txt": "not a known kind of picture (.txt)",
    }
    assert [f["note"] for f in document["files"]] == ["16 bits a channel became 8", "the first of 3 pages alone"]
    assert told.err.count("skipped") == 3
    assert "a.jpg: can't be read as a picture" in told.err


def test_an_odd_size_is_said(artefacts: Path, tmp_path: Path) -> None:
    frame = RedactedFrame(0, 0, np.zeros((35, 49, 3), np.uint8), "clip", "scene", ())
    writer = VideoWriter(tmp_path / "a.mp4")
    writer.write(frame)
    writer.close()
    assert decoded(tmp_path / "a.mp4")[0].shape == (36, 50, 3)
    assert writer.note.startswith("the clip is 50x36")


def test_gaze_of_another_time_is_refused(data: Path, artefacts: Path, tmp_path: Path) -> None:
    later = [(1000 + i / 100, 320, 180) for i in range(50)]
    source = data / "faces" / "WolfgangLanger_Pexels.mp4"
    done = redact(source, "-o", tmp_path / "a.mp4", "--set", "scene.end_s=0.2", *gaze_file(tmp_path, later))
    assert done.returncode == 1
    assert "no sample within the time of" in done.stderr
    assert not list(tmp_path.glob("*.mp4"))
