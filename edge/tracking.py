"""Faces over time: the same person keeps one id, and a face that the detectors lose for a moment stays covered.

Pure arithmetic on boxes and times; no pictures, no clock. Detections of high score start tracks and detections of low
score only continue them, as in ByteTrack (Zhang et al. 2022): a low threshold then costs no false faces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edge.records import Box, Face

GROWTH_PER_S = 1.0  #: a held box grows by its own size in a second, since where the face went is less and less known
MIN_IOU = 0.2  #: the two detectors frame one face differently; their boxes of one face overlap by 0.3 to 0.8
MAX_IOU = 0.4  #: boxes of one detector that overlap more show one face
INSIDE = 0.7  #: a box of which this share lies in another shows the same face
MAX_SHIFT = 1.0  #: a sure detection may continue a track from as far away as this many face sizes
VELOCITY_GAIN = 0.5


def usable(face: Face) -> bool:
    """Tell whether a detector's box can be covered: finite numbers and an area."""
    return all(math.isfinite(v) for v in (*face.box, face.score)) and face.box[2] > 0 and face.box[3] > 0


def intersection(one: Box, other: Box) -> float:
    """Return the area in px² that two boxes share."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


def iou(one: Box, other: Box) -> float:
    """Return intersection over union of two boxes, 0..1."""
    shared = intersection(one, other)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared) if shared else 0.0


def hull(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that holds all `boxes`."""
    corners = [(x, y, x + w, y + h) for x, y, w, h in boxes]
    left, top = min(c[0] for c in corners), min(c[1] for c in corners)
    return left, top, max(c[2] for c in corners) - left, max(c[3] for c in corners) - top


def grow(box: Box, share: float) -> Box:
    """Return `box` with `share` of its width and height added on each side."""
    x, y, w, h = box
    return x - share * w, y - share * h, w * (1 + 2 * share), h * (1 + 2 * share)


def between(before: Box, after: Box, share: float) -> Box:
    """Return the box `share` (0..1) of the way from `before` to `after`."""
    x, y, w, h = (a + share * (b - a) for a, b in zip(before, after, strict=True))
    return x, y, w, h


def distinct(faces: Iterable[Face]) -> list[Face]:
    """Return one face for each that was found several times: the largest box, with the best score.

    What lies mostly inside a larger box (a part of a face that fills the picture) goes: the larger one covers it.
    """
    kept: list[Face] = []
    for face in sorted(faces, key=lambda f: -f.box[2] * f.box[3]):
        for index, larger in enumerate(kept):
            inside = intersection(face.box, larger.box) >= INSIDE * face.box[2] * face.box[3]
            if inside or iou(face.box, larger.box) >= MAX_IOU:
                kept[index] = replace(larger, score=max(larger.score, face.score))
                break
        else:
            kept.append(face)
    return sorted(kept, key=lambda f: -f.score)


def merge(sure: Sequence[Face], other: Iterable[Face]) -> list[Face]:
    """Return `sure` and those of `other` that show no face of `sure` a second time."""
    return [*sure, *(f for f in other if not any(same_face(f.box, s.box) for s in sure))]


def same_face(one: Box, other: Box) -> bool:
    """Tell whether two boxes frame one face: they overlap enough, or most of the smaller lies in the larger."""
    shared = intersection(one, other)
    return iou(one, other) >= MIN_IOU or shared >= INSIDE * min(one[2] * one[3], other[2] * other[3])


@dataclass(slots=True)
class _Track:
    face: Face
    seen_ns: int
    velocity: tuple[float, float] = (0.0, 0.0)
    last: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def predicted(self, t_ns: int) -> Box:
        x, y, w, h = self.face.box
        seconds = (t_ns - self.seen_ns) * 1e-9
        return x + self.velocity[0] * seconds, y + self.velocity[1] * seconds, w, h

    def see(self, t_ns: int, face: Face) -> None:
        """Take a detection. Speed is measured between detections of one detector, since each frames a face its way."""
        x, y = face.box[0] + face.box[2] / 2, face.box[1] + face.box[3] / 2
        earlier = self.last.get(face.origin)
        if earlier and t_ns > earlier[0]:
            seconds = (t_ns - earlier[0]) * 1e-9
            measured = ((x - earlier[1]) / seconds, (y - earlier[2]) / seconds)
            vx, vy = (v + VELOCITY_GAIN * (m - v) for v, m in zip(self.velocity, measured, strict=True))
            self.velocity = (vx, vy)
        self.last[face.origin] = (t_ns, x, y)
        self.seen_ns = t_ns
        self.face = replace(face, track_id=self.face.track_id)


class FaceTracker:
    """Give faces stable ids, and keep those that are lost for a while.

    Parameters
    ----------
    hold_ms : float
        A face that no detector sees any more is kept this long, moved on at its last speed and grown.
    start_score : float
        A face of the fast detector starts a track from this score on; one of the recall detector always does.
    """

    def __init__(self, hold_ms: float = 500.0, start_score: float = 0.8) -> None:
        self._hold_ns = round(hold_ms * 1e6)
        self._start_score = start_score
        self._tracks: list[_Track] = []
        self._next_id = 0
        self._now_ns: int | None = None

    def update(self, t_ns: int, faces: Sequence[Face]) -> list[Face]:
        """Take the detections of one picture and return its faces: detected ones, then held ones (origin `track`).

        Raises
        ------
        ValueError
            `t_ns` is not later than the last one.
        """
        if self._now_ns is not None and t_ns <= self._now_ns:
            raise ValueError(f"faces at {t_ns} ns come after those at {self._now_ns} ns; pictures must be in order")
        self._now_ns = t_ns
        faces = [f for f in faces if usable(f)]
        matched = self._match(t_ns, faces)
        seen = []
        for index, face in enumerate(faces):
            track = matched.get(index)
            if track is None and self._may_start(face):
                track = _Track(replace(face, track_id=self._next_id), t_ns)
                self._tracks.append(track)
                self._next_id += 1
            if track is not None:
                track.see(t_ns, face)
                seen.append(track.face)
        return seen + self._held(t_ns, seen)

    def _may_start(self, face: Face) -> bool:
        return face.origin == "recall" or face.score >= self._start_score

    def _match(self, t_ns: int, faces: Sequence[Face]) -> dict[int, _Track]:
        """Pair detections with tracks, the best pairs first."""
        pairs = []
        for number, track in enumerate(self._tracks):
            expected = track.predicted(t_ns)
            for index, face in enumerate(faces):
                fit = _fit(expected, face.box, far=self._may_start(face))
                if fit > 0:
                    pairs.append((fit, index, number))
        matched: dict[int, _Track] = {}
        taken: set[int] = set()
        for _, index, number in sorted(pairs, key=lambda p: (-p[0], p[1], p[2])):
            if index not in matched and number not in taken:
                matched[index] = self._tracks[number]
                taken.add(number)
        return matched

    def _held(self, t_ns: int, seen: Sequence[Face]) -> list[Face]:
        """Return the faces that were lost a moment ago; drop those lost for too long or seen under another id."""
        held, alive = [], []
        for track in self._tracks:
            if track.seen_ns == t_ns:
                alive.append(track)
                continue
            box = track.predicted(t_ns)
            if t_ns - track.seen_ns > self._hold_ns or any(same_face(box, f.box) for f in seen):
                continue
            alive.append(track)
            wider = GROWTH_PER_S * (t_ns - track.seen_ns) * 1e-9 / 2
            held.append(replace(track.face, box=grow(box, wider), origin="track"))
        self._tracks = alive
        return held


def _fit(expected: Box, found: Box, *, far: bool) -> float:
    """Return how well a detection continues a track: its IoU, or less than any valid IoU if it lies near; 0 = not."""
    overlap = iou(expected, found)
    if overlap >= MIN_IOU:
        return overlap
    size = math.sqrt(expected[2] * expected[3])
    ratio = math.sqrt(found[2] * found[3]) / size
    if not far or not 0.5 <= ratio <= 2.0:
        return 0.0
    shift = math.hypot(
        found[0] + found[2] / 2 - expected[0] - expected[2] / 2, found[1] + found[3] / 2 - expected[1] - expected[3] / 2
    )
    return max(0.0, MIN_IOU * (1 - shift / (MAX_SHIFT * size)))


def interpolate(times_ns: Sequence[int], seen: Sequence[Mapping[int, Face]]) -> list[list[Face]]:
    """Fill in faces between the recall detector's passes.

    Parameters
    ----------
    times_ns : sequence of int
        Times of n pictures. The recall detector saw the first (already published) and the last one.
    seen : sequence of mappings
        For each picture its faces by track id, as `FaceTracker.update` gave them.

    Returns
    -------
    list of list of Face
        The faces of pictures 1 to n-1. A face seen in both passes lies between its two boxes and is joined with what
        the fast detector saw; one found only later is taken back to the first pass; one lost is held as it came.
    """
    filled: list[list[Face]] = [[] for _ in times_ns[1:]]
    for track in sorted({key for faces in seen for key in faces}):
        faces = [s.get(track) for s in seen]
        detected = [i for i, face in enumerate(faces) if face is not None and face.origin != "track"]
        for i in range(1, len(times_ns)):
            face = _filled(i, times_ns, faces, detected)
            if face is not None:
                filled[i - 1].append(face)
    return filled


def _filled(i: int, times_ns: Sequence[int], faces: Sequence[Face | None], detected: Sequence[int]) -> Face | None:
    own = faces[i]
    last = len(times_ns) - 1
    if i == last or i in detected:
        first_face, last_face = faces[0], faces[last]
        if own is None or i == last or first_face is None or last_face is None:
            return own
        path = between(first_face.box, last_face.box, _share(times_ns, 0, i, last))
        return replace(own, box=hull([own.box, path]))
    before = max((d for d in detected if d < i), default=None)
    after = min((d for d in detected if d > i), default=None)
    if after is None:
        return own
    later = faces[after]
    earlier = faces[before] if before is not None else None
    if later is None or before is None or earlier is None:
        return replace(later, origin="track") if later is not None else own
    return replace(later, box=between(earlier.box, later.box, _share(times_ns, before, i, after)), origin="track")


def _share(times_ns: Sequence[int], start: int, i: int, end: int) -> float:
    return (times_ns[i] - times_ns[start]) / (times_ns[end] - times_ns[start])
