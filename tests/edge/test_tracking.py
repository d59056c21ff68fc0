"""Tracking: a story told in boxes, every expected number worked out by hand."""

from __future__ import annotations

import pytest

from edge.records import Box, Face, FaceOrigin
from edge.tracking import FaceTracker, between, distinct, grow, hull, interpolate, iou, usable

MS = 1_000_000
NAN = float("nan")


def face(x: float, y: float = 100, size: float = 40, *, score: float = 0.9, origin: FaceOrigin = "recall") -> Face:
    return Face((x, y, size, size), score, origin=origin)


def test_box_arithmetic() -> None:
    assert iou((0, 0, 10, 10), (5, 0, 10, 10)) == pytest.approx(50 / 150)
    assert iou((0, 0, 10, 10), (10, 0, 10, 10)) == 0
    assert hull([(0, 0, 10, 10), (5, -5, 10, 10)]) == (0, -5, 15, 15)
    assert grow((10, 10, 20, 40), 0.25) == (5, 0, 30, 60)
    assert between((0, 0, 10, 10), (20, 40, 30, 10), 0.25) == (5, 10, 15, 10)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        pytest.param((0, 0, 1, 1), True, id="one-pixel"),
        pytest.param((-50, -50, 20, 20), True, id="outside"),
        pytest.param((0, 0, 0, 5), False, id="no-width"),
        pytest.param((0, 0, -3, 5), False, id="negative"),
        pytest.param((NAN, 0, 3, 5), False, id="nan"),
        pytest.param((0, 0, float("inf"), 5), False, id="infinite"),
    ],
)
def test_usable(box: Box, expected: bool) -> None:
    assert usable(Face(box, 0.9)) is expected


def test_ids_follow_faces_that_move_and_cross_no_other() -> None:
    tracker = FaceTracker()
    first = tracker.update(0, [face(0), face(200)])
    second = tracker.update(100 * MS, [face(190), face(10)])
    assert [f.track_id for f in first] == [0, 1]
    assert {f.track_id: f.box[0] for f in second} == {1: 190, 0: 10}


def test_a_lost_face_is_held_grown_and_moved_on() -> None:
    tracker = FaceTracker(hold_ms=500)
    tracker.update(0, [face(0)])
    tracker.update(100 * MS, [face(20)])  # 200 px/s measured, half of it believed: 100 px/s
    (held,) = tracker.update(200 * MS, [])
    # 100 ms later it is 10 px on, at 30, and 10 % larger: 2 px more on each side of 40
    assert held.origin == "track"
    assert held.box == pytest.approx((28, 98, 44, 44))
    assert tracker.update(600 * MS, [])[0].track_id == 0
    assert tracker.update(601 * MS, []) == []


def test_a_face_that_comes_back_within_the_hold_keeps_its_id() -> None:
    tracker = FaceTracker(hold_ms=500)
    tracker.update(0, [face(0)])
    tracker.update(200 * MS, [])
    assert [f.track_id for f in tracker.update(400 * MS, [face(5)])] == [0]


def test_a_weak_fast_detection_continues_a_track_but_starts_none() -> None:
    tracker = FaceTracker(start_score=0.8)
    weak = face(4, score=0.5, origin="fast")
    assert tracker.update(0, [weak]) == []
    tracker.update(10 * MS, [face(0)])
    (seen,) = tracker.update(20 * MS, [weak])
    assert (seen.track_id, seen.origin, seen.box[0]) == (0, "fast", 4)
    assert len(tracker.update(30 * MS, [face(4), face(300, score=0.8, origin="fast")])) == 2


def test_a_bad_box_is_skipped_and_the_next_still_tracked() -> None:
    bad = Face((NAN, 0, 10, 10), 0.9, origin="recall")
    assert [f.box[0] for f in FaceTracker().update(0, [bad, face(50)])] == [50]


def test_time_that_does_not_rise_is_refused() -> None:
    tracker = FaceTracker()
    tracker.update(5, [])
    with pytest.raises(ValueError, match="in order"):
        tracker.update(5, [])


def test_distinct_keeps_the_largest_box_of_each_face() -> None:
    part = Face((110, 110, 30, 30), 0.9)  # an eye inside a face that fills the picture
    whole = Face((0, 0, 300, 300), 0.6)
    twin = Face((10, 10, 290, 290), 0.8)
    apart = Face((400, 0, 50, 50), 0.5)
    assert distinct([part, whole, twin, apart]) == [Face((0, 0, 300, 300), 0.9), apart]


def test_between_two_passes_a_face_lies_between_its_boxes() -> None:
    seen = [{0: face(0)}, {}, {}, {0: face(40)}]
    filled = interpolate([0, 10 * MS, 30 * MS, 40 * MS], seen)
    assert [f[0].box[0] for f in filled] == [10, 30, 40]
    assert [f[0].origin for f in filled] == ["track", "track", "recall"]


def test_what_the_fast_detector_saw_between_widens_the_box() -> None:
    seen = [{0: face(0)}, {0: face(60, origin="fast")}, {0: face(40)}]
    ((middle,), _) = interpolate([0, 10 * MS, 20 * MS], seen)
    assert middle.box == (20, 100, 80, 40)  # from the path's 20 to the fast box's end at 100


def test_a_face_found_later_is_taken_back_to_the_pass_before() -> None:
    filled = interpolate([0, 10 * MS, 20 * MS, 30 * MS], [{}, {}, {}, {7: face(80)}])
    assert [[f.box[0] for f in faces] for faces in filled] == [[80], [80], [80]]


def test_a_face_lost_at_the_pass_stays_as_it_was_held() -> None:
    held = Face((1, 2, 50, 50), 0.9, 3, "track")
    filled = interpolate([0, 10 * MS], [{3: face(0)}, {3: held}])
    assert filled == [[held]]
