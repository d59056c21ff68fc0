"""Redaction's rules, each on the smallest picture that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edge.config import Config, GazeConfig, ModelsConfig, RedactConfig, load
from edge.privacy import Redactor, cautions, cover_face
from edge.records import Box, Face, FaceOrigin, Frame, Image, RedactedFrame

MS = 1_000_000
WIDTH, HEIGHT = 320, 240


def noise(width: int = WIDTH, height: int = HEIGHT) -> Image:
    return np.random.default_rng(7).integers(1, 256, (height, width, 3), dtype=np.uint8)


def frame(index: int, step_ms: int = 40) -> Frame:
    return Frame(index, index * step_ms * MS, noise(), "story")


def face(x: float, y: float = 60, size: float = 40, *, score: float = 0.9, origin: FaceOrigin = "recall") -> Face:
    return Face((x, y, size, size), score, origin=origin)


def redactor(px_per_deg: float | None = 10.0, **settings: Any) -> Redactor:
    return Redactor(RedactConfig(**settings), px_per_deg)


def changed(picture: RedactedFrame, box: Box) -> float:
    """Share of a box's pixels inside the picture that differ from the original."""
    x, y, w, h = box
    rows = slice(max(0, round(y)), max(0, round(y + h)))
    columns = slice(max(0, round(x)), max(0, round(x + w)))
    different = (picture.image != noise(picture.image.shape[1], picture.image.shape[0])).any(axis=2)
    return float(different[rows, columns].mean())


def test_a_picture_waits_for_the_next_pass_and_is_covered_between_the_passes() -> None:
    stream = redactor()
    assert len(stream.push(frame(0), [], [face(0)], None)) == 1
    assert stream.push(frame(1), [], None, None) == []
    middle, last = stream.push(frame(2), [], [face(24)], None)
    assert [f.box[0] for f in middle.faces] == [12]
    assert (middle.frame_id, last.frame_id) == (1, 2)
    assert changed(middle, (12, 60, 40, 40)) > 0.98
    assert changed(middle, (200, 60, 40, 40)) == 0


def test_a_face_found_only_later_is_extended_back_to_the_previous_pass() -> None:
    stream = redactor()
    stream.push(frame(0), [], [], None)
    stream.push(frame(1), [], None, None)
    early, late = stream.push(frame(2), [], [face(100)], None)
    assert changed(early, (100, 60, 40, 40)) > 0.98
    assert changed(late, (100, 60, 40, 40)) > 0.98
    assert stream.counts.suspected_leaks == 1  # picture 0 left with no face there


@pytest.mark.parametrize(
    ("first", "second", "leaks"),
    [
        pytest.param([], [face(-10)], 0, id="walks-in"),
        pytest.param([face(100)], [face(104)], 0, id="was-covered"),
        pytest.param([], [face(100)], 1, id="appears-inside"),
    ],
)
def test_suspected_leaks(first: list[Face], second: list[Face], leaks: int) -> None:
    stream = redactor()
    stream.push(frame(0), [], first, None)
    stream.push(frame(1), [], second, None)
    assert stream.counts.suspected_leaks == leaks


def test_two_misses_in_the_middle_of_a_track_stay_covered() -> None:
    stream = redactor(recall_hz=0, hold_ms=500)
    seen = [[face(100)], [], [], [face(100)]]
    pictures = [p for i, found in enumerate(seen) for p in stream.push(frame(i), [], found, None)]
    assert len(pictures) == 4
    assert all(changed(p, (100, 60, 40, 40)) > 0.98 for p in pictures)
    assert pictures[2].faces[0].box[2] > pictures[1].faces[0].box[2] > 40


def test_a_picture_that_waits_too_long_is_covered_whole() -> None:
    stream = redactor(max_wait_ms=100)
    out = [p for i in range(5) for p in stream.push(frame(i), [], None, None)]
    assert [(p.frame_id, p.withheld, p.reason) for p in out] == [
        (0, True, "no recall pass within 100 ms"),
        (1, True, "no recall pass within 100 ms"),
    ]
    assert not out[0].image.any()
    assert stream.counts.withheld == 2


def test_a_late_result_of_the_recall_detector_frees_the_pictures_up_to_it() -> None:
    stream = redactor()
    stream.push(frame(0), [], [face(0)], None)
    for i in (1, 2, 3):
        assert stream.push(frame(i), [], None, None) == []
    assert [p.frame_id for p in stream.recalled(frame(2).t_ns, [face(20)])] == [1, 2]
    assert stream.last_waiting is not None
    assert stream.last_waiting.frame_id == 3


def test_the_end_without_a_pass_is_withheld_and_with_one_it_is_not() -> None:
    stream = redactor()
    stream.push(frame(0), [], [face(0)], None)
    stream.push(frame(1), [], None, None)
    with_pass = stream.flush([face(10)])
    assert [p.withheld for p in with_pass] == [False]
    stream.push(frame(2), [], None, None)
    assert [(p.withheld, p.reason) for p in stream.flush()] == [(True, "no recall pass after it")]


def test_the_cadence_is_a_fixed_grid() -> None:
    stream = redactor(recall_hz=10)
    due = []
    for i in range(24):
        t_ns = round(i * 1e9 / 24)
        picture = Frame(i, t_ns, noise(), "story")
        due.append(stream.wants_recall(picture))
        stream.push(picture, [], [] if due[-1] else None, None)
    assert sum(due) == 10
    assert due[0]


def test_a_picture_of_another_scene_is_searched_at_once() -> None:
    stream = redactor(recall_hz=10)
    due = []
    for i in range(8):
        picture = Frame(i, i * 1_000_000, noise() // (2 if i == 5 else 1), "flash at 5")
        due.append(stream.wants_recall(picture))
        stream.push(picture, [], [] if due[-1] else None, None)
    assert due == [True, False, False, False, False, True, True, False]


@pytest.mark.parametrize("recall_hz", [pytest.param(10, id="on-a-grid"), pytest.param(0, id="every-picture")])
def test_of_pictures_that_pile_up_the_newest_gets_the_pass(recall_hz: float) -> None:
    stream = redactor(recall_hz=recall_hz, max_wait_ms=500)
    due, left = [], []
    for i in range(10):  # 40 ms apart, and up to picture 6 the next one waits already
        picture = frame(i)
        due.append(stream.wants_recall(picture, frame(i + 1).t_ns if i < 6 else None))
        left += stream.push(picture, [], [face(4 * i)] if due[-1] else None, None)
    assert [i for i, wanted in enumerate(due) if wanted][:2] == [0, 6]  # nothing is known of a first picture's scene
    assert [p.frame_id for p in left[:7]] == [0, 1, 2, 3, 4, 5, 6]
    assert [p.faces[0].box[0] for p in left[:7]] == [0, 4, 8, 12, 16, 20, 24]
    assert not any(p.withheld for p in left)
    assert stream.counts.postponed == (3 if recall_hz else 5)  # of the grid: pictures 3, 4 and 5


def test_a_pass_isnt_put_off_until_a_picture_has_waited_too_long_nor_at_a_cut() -> None:
    stream = redactor(recall_hz=10, max_wait_ms=200)
    due, withheld = [], 0
    for i in range(16):  # there is always a next one, and picture 13 shows another scene
        picture = Frame(i, i * 40 * MS, noise() // (2 if i == 13 else 1), "late")
        due.append(stream.wants_recall(picture, frame(i + 1).t_ns))
        withheld += sum(p.withheld for p in stream.push(picture, [], [] if due[-1] else None, None))
    assert [i for i, wanted in enumerate(due) if wanted] == [0, 6, 12, 13, 14]
    assert withheld == 0


GAZE = (120.0, 80.0)  # inside face(100); 10 px are the calibration margin of 1 degree


@pytest.mark.parametrize(
    ("mode", "faces", "gaze", "px_per_deg", "covered"),
    [
        pytest.param("outside-fixation", [100, 200], GAZE, 10.0, [False, True], id="looked-at-is-clear"),
        pytest.param("outside-fixation", [100, 200], None, 10.0, [True, True], id="no-gaze-covers-all"),
        pytest.param("outside-fixation", [100, 200], GAZE, None, [True, True], id="no-geometry-covers-all"),
        pytest.param("outside-fixation", [100, 200], GAZE, float("nan"), [True, True], id="nan-geometry-covers-all"),
        pytest.param("outside-fixation", [100, 200], (float("nan"), 5.0), 10.0, [True, True], id="nan-gaze-covers-all"),
        pytest.param("outside-fixation", [100, 145], (142.0, 80.0), 10.0, [True, True], id="two-within-margin"),
        pytest.param("outside-fixation", [100, 200], (149.0, 80.0), 10.0, [False, True], id="just-within-margin"),
        pytest.param("outside-fixation", [100, 200], (151.0, 80.0), 10.0, [True, True], id="just-outside-margin"),
        pytest.param("all", [100, 200], GAZE, 10.0, [True, True], id="all"),
        pytest.param("subject-only", [100, 200], GAZE, 10.0, [True, False], id="subject-only"),
        pytest.param("subject-only", [100, 200], None, 10.0, [True, True], id="subject-unknown-covers-all"),
    ],
)
def test_which_faces_are_covered(
    mode: str, faces: list[float], gaze: tuple[float, float] | None, px_per_deg: float | None, covered: list[bool]
) -> None:
    stream = redactor(px_per_deg, mode=mode)
    (picture,) = stream.push(frame(0), [], [face(x) for x in faces], gaze)
    assert [f.covered for f in picture.faces] == covered
    for mark, x in zip(covered, faces, strict=True):
        inner = changed(picture, (x + 12, 72, 16, 16))  # clear of the neighbour's margin
        assert inner > 0.98 if mark else inner == 0


def test_the_subject_stays_covered_when_it_is_no_longer_looked_at() -> None:
    stream = redactor(mode="subject-only")
    stream.push(frame(0), [], [face(100), face(200)], GAZE)
    (picture,) = stream.push(frame(1), [], [face(100), face(200)], (10.0, 200.0))
    assert [f.covered for f in picture.faces] == [True, False]


BOXES: list[tuple[str, Box]] = [
    ("outside-left-top", (-30, -30, 60, 60)),
    ("last-row-and-column", (WIDTH - 20, HEIGHT - 20, 20, 20)),
    ("over-the-corner", (WIDTH - 20, HEIGHT - 20, 90, 90)),
    ("one-pixel", (50, 50, 1, 1)),
    ("fills-the-picture", (-10, -10, WIDTH + 20, HEIGHT + 20)),
    ("fractional", (10.4, 10.6, 30.7, 41.3)),
]


@pytest.mark.parametrize("cover", ["blur", "mosaic", "solid"])
@pytest.mark.parametrize("box", [pytest.param(box, id=name) for name, box in BOXES])
def test_a_face_is_covered_to_the_edges(box: Box, cover: str) -> None:
    (picture,) = redactor(cover=cover).push(frame(0), [], [Face(box, 0.9, origin="recall")], None)
    assert changed(picture, box) >= 0.98


def test_a_face_wholly_outside_changes_nothing() -> None:
    (picture,) = redactor().push(frame(0), [], [Face((-100, -100, 20, 20), 0.9, origin="recall")], None)
    assert changed(picture, (0, 0, WIDTH, HEIGHT)) == 0
    assert not picture.withheld


def test_a_bad_box_is_counted_and_the_next_still_covered() -> None:
    stream = redactor()
    bad = [Face((float("nan"), 0, 10, 10), 0.9, origin="recall"), Face((5, 5, 0, 9), 0.9, origin="recall")]
    (picture,) = stream.push(frame(0), [], [*bad, face(100)], None)
    assert changed(picture, (100, 60, 40, 40)) > 0.98
    assert stream.counts.bad_boxes == 2


@pytest.mark.parametrize("size", [24, 80, 200])
@pytest.mark.parametrize("cover", ["blur", "mosaic"])
def test_what_is_left_of_a_face_is_at_most_four_by_four(cover: str, size: int) -> None:
    """Of 4 x 4 effective pixels, joined linearly or not, no more than four rows are independent."""
    image = noise()
    box = (20.0, 20.0, float(size), float(size))
    cover_face(image, box, cover, 0.0)
    crop = image[20 : 20 + size, 20 : 20 + size].reshape(size, -1)
    assert np.linalg.matrix_rank(crop - crop.mean(), tol=size * 2.0) <= 4


def test_an_error_masks_the_whole_picture_and_the_stream_goes_on() -> None:
    stream = redactor()
    broken = replace(face(100), box=("x", 0, 1, 1))  # type: ignore[arg-type]
    (picture,) = stream.push(frame(0), [], [broken], None)
    assert picture.withheld
    assert not picture.image.any()
    assert picture.reason.startswith("TypeError")
    (after,) = stream.push(frame(1), [], [face(100)], None)
    assert not after.withheld


def test_pictures_are_read_only_and_the_original_is_untouched() -> None:
    source = frame(0)
    (picture,) = redactor().push(source, [], [face(100)], None)
    assert not picture.image.flags.writeable
    assert (source.image == noise()).all()


def test_without_a_recall_detector_pictures_leave_at_once_with_what_the_fast_one_sees() -> None:
    stream = Redactor(RedactConfig(), 10.0, recall=False)
    (picture,) = stream.push(frame(0), [face(100, score=0.5, origin="fast")], None, None)
    assert not stream.wants_recall(frame(0))
    assert changed(picture, (100, 60, 40, 40)) > 0.98


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param(Config(), ["redact.cover = blur"], id="defaults"),
        pytest.param(load(preset="clinical"), [], id="clinical"),
        pytest.param(
            load(overrides=["sinks.allow_plaintext=true"], preset="clinical"),
            ["sinks.allow_plaintext = true"],
            id="clinical-in-the-clear",
        ),
        pytest.param(
            Config(
                redact=RedactConfig(cover="solid", mode="subject-only"),
                models=ModelsConfig(face_recall=""),
                gaze=GazeConfig(source="lsl:Gaze"),
            ),
            ["redact.mode = subject-only", "models.face_recall is empty", "gaze.source = lsl:Gaze"],
            id="everything-else",
        ),
    ],
)
def test_settings_that_leave_people_recognisable_are_named(config: Config, words: list[str]) -> None:
    found = cautions(config)
    assert len(found) == len(words)
    assert all(text.startswith(word) for text, word in zip(found, words, strict=True))
