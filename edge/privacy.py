"""Frame -> RedactedFrame: the only place that makes a picture which a sink accepts.

A picture waits for the next pass of the recall detector and is covered with what the passes before and after it found.
Whatever goes wrong, it fails closed: the whole picture is covered and says why.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from edge.config import Config, RedactConfig
from edge.cuts import SceneCut
from edge.gaze.sources import may_uncover
from edge.records import Box, Face, Frame, Image, RedactedFrame
from edge.tracking import FaceTracker, distinct, grow, interpolate, merge, usable

#: Blur and mosaic leave this many effective pixels across a face, whatever its size: at 8 a face detector still finds
#: the blurred face of a portrait, at 4 it doesn't.
MAX_CELLS = 4
MIN_CELL_PX = 4.0  #: and a small face gets fewer, so that each of them hides several pixels
_SAMPLES = 12  #: both ways, at least, that the mean of a large cell is taken over: reading all its pixels tells no more
WITHHELD = 0  #: value of a picture that is covered whole
_CADENCE_SLACK_NS = 1_000_000  #: a pass that is due within a millisecond is taken now, not a picture later

Gaze = tuple[float, float]


@dataclass(slots=True)
class RedactionCounts:
    """What redaction has done so far.

    `suspected_leaks` counts faces that the recall detector found inside a picture, away from its edges, though its
    pass before, already published, had no face there: they may have been visible and missed. `postponed` counts
    pictures that were due for a pass and left it to a later one, since more waited for redaction.
    """

    pictures: int = 0
    withheld: int = 0
    faces_covered: int = 0
    bad_boxes: int = 0
    suspected_leaks: int = 0
    recalls: int = 0
    postponed: int = 0


@dataclass(slots=True)
class _Waiting:
    frame: Frame
    fast: list[Face]
    gaze: Gaze | None


class Redactor:
    """Cover faces in a stream of pictures.

    Parameters
    ----------
    settings : RedactConfig
    px_per_deg : float, optional
        Picture pixels in a degree of gaze. Without it nobody can say whether gaze is near a face, and all are covered.
    recall : bool
        Whether there is a recall detector. Without one, pictures don't wait and only what the fast one sees is covered.
    """

    def __init__(self, settings: RedactConfig, px_per_deg: float | None = None, *, recall: bool = True) -> None:
        self.counts = RedactionCounts()
        self._settings = settings
        known = px_per_deg is not None and math.isfinite(px_per_deg) and px_per_deg > 0
        self._margin_px = settings.calibration_deg * px_per_deg if px_per_deg and known else None
        self._recall = recall
        self._waiting: deque[_Waiting] = deque()
        self._pass_ns: int | None = None
        self._subjects: set[int] = set()
        self._cut = SceneCut()
        self._restart()

    def _restart(self) -> None:
        start_score = self._settings.fast_start_score if self._recall else self._settings.fast_score
        self._tracker = FaceTracker(self._settings.hold_ms, start_score)
        self._seen: tuple[int, dict[int, Face]] | None = None

    def wants_recall(self, frame: Frame, next_ns: int | None = None) -> bool:
        """Tell whether a picture is due for a pass of the recall detector.

        It is on a fixed grid of `recall_hz`, and at a cut: else a face that shows for a few pictures between two passes
        would be left to the fast detector. Ask once a picture, in order.

        `next_ns` is the time of a picture that already waits behind this one: redaction is late. Its pass can then
        serve this one too, unless a picture would wait for it longer than `max_wait_ms`. So a slow machine makes fewer
        passes before it loses pictures. A cut is not put off.
        """
        if not self._recall:
            return False
        hz = self._settings.recall_hz
        if (hz <= 0 and next_ns is None) or self._cut(frame.image):
            return True
        due = self._pass_ns is None or hz <= 0 or _slot(frame.t_ns, hz) > _slot(self._pass_ns, hz)
        if due and next_ns is not None:
            oldest_ns = self._waiting[0].frame.t_ns if self._waiting else frame.t_ns
            due = next_ns - oldest_ns > self._settings.max_wait_ms * 1_000_000
            self.counts.postponed += not due
        return due

    @property
    def last_waiting(self) -> Frame | None:
        """The newest picture that waits. At the end of a clip it is owed a pass: see `flush`."""
        return self._waiting[-1].frame if self._waiting else None

    def push(
        self, frame: Frame, fast: Sequence[Face], recall: Sequence[Face] | None, gaze: Gaze | None
    ) -> list[RedactedFrame]:
        """Take a picture, and return those that may leave.

        Parameters
        ----------
        frame : Frame
            Later than the one before.
        fast : sequence of Face
            What the fast detector found in it.
        recall : sequence of Face, optional
            What the recall detector found in it; None where it made no pass, or has not finished (see `recalled`).
        gaze : (x, y), optional
            Where the person looks, in pixels; None where there is no fresh valid gaze: then every face is covered.
        """
        self._waiting.append(_Waiting(frame, list(fast), gaze))
        if recall is not None:
            self._pass_ns = frame.t_ns
            return self.recalled(frame.t_ns, recall)
        if not self._recall:
            return self._closed(lambda: self._resolve(frame.t_ns, None), frame.t_ns)
        return self._expire(frame.t_ns)

    def recalled(self, t_ns: int, faces: Sequence[Face]) -> list[RedactedFrame]:
        """Take the recall detector's result for the picture at `t_ns`, pushed before, and return what may now leave."""
        self._pass_ns = max(t_ns, self._pass_ns or 0)
        self.counts.recalls += 1
        return self._closed(lambda: self._resolve(t_ns, faces), t_ns)

    def flush(self, recall: Sequence[Face] | None = None) -> list[RedactedFrame]:
        """Return the pictures that still wait, at the end of the stream.

        `recall` is a pass over `last_waiting`; without it nothing shows that no face was missed, and they are withheld.
        """
        if recall is not None and self._waiting:
            return self.recalled(self._waiting[-1].frame.t_ns, recall)
        waiting, self._waiting = list(self._waiting), deque()
        return [self._withhold(w.frame, "no recall pass after it") for w in waiting]

    def _closed(self, cover: Callable[[], list[RedactedFrame]], t_ns: int) -> list[RedactedFrame]:
        """Run `cover`; on any error every picture it was about is covered whole, and tracking starts afresh."""
        due = [w.frame for w in self._waiting if w.frame.t_ns <= t_ns]
        try:
            done = cover()
        except Exception as error:  # noqa: BLE001 - whatever went wrong, nothing may leave uncovered
            self._restart()
            done = [self._withhold(frame, f"{type(error).__name__}: {error}") for frame in due]
        for _ in due:
            self._waiting.popleft()
        return done

    def _expire(self, now_ns: int) -> list[RedactedFrame]:
        """Withhold the pictures that have waited too long."""
        limit_ns = self._settings.max_wait_ms * 1_000_000
        done = []
        while self._waiting and now_ns - self._waiting[0].frame.t_ns > limit_ns:
            late = self._waiting.popleft()
            done.append(self._withhold(late.frame, f"no recall pass within {self._settings.max_wait_ms} ms"))
        return done

    def _resolve(self, t_ns: int, recall: Sequence[Face] | None) -> list[RedactedFrame]:
        """Cover the waiting pictures up to `t_ns`, where `recall` was found."""
        span = [w for w in self._waiting if w.frame.t_ns <= t_ns]
        if not span:
            return []
        times = [w.frame.t_ns for w in span]
        seen: list[dict[int, Face]] = []
        for waiting in span:
            faces = self._usable(waiting.fast, self._settings.fast_score)
            if recall is not None and waiting.frame.t_ns == t_ns:
                faces = merge(distinct(self._usable(recall, self._settings.recall_score)), faces)
            seen.append({f.track_id: f for f in self._tracker.update(waiting.frame.t_ns, faces)})
        before = self._seen or (times[0] - 1, {})
        if recall is not None and self._seen is not None:
            self._suspect(span[-1].frame, seen[-1], before[1])
        self._seen = (times[-1], seen[-1])
        filled = interpolate([before[0], *times], [before[1], *seen])
        return [self._cover(w, faces) for w, faces in zip(span, filled, strict=True)]

    def _usable(self, faces: Sequence[Face], min_score: float) -> list[Face]:
        """Drop boxes that can't be covered (counted) and faces of low score; a bad box doesn't shield the next."""
        good = [f for f in faces if usable(f)]
        self.counts.bad_boxes += len(faces) - len(good)
        return [f for f in good if f.score >= min_score]

    def _suspect(self, frame: Frame, now: dict[int, Face], before: dict[int, Face]) -> None:
        for track, face in now.items():
            x, y, w, h = face.box
            inside = x > w / 2 and y > h / 2 and x + 1.5 * w < frame.width and y + 1.5 * h < frame.height
            if face.origin == "recall" and track not in before and inside:
                self.counts.suspected_leaks += 1

    def _cover(self, waiting: _Waiting, faces: Sequence[Face]) -> RedactedFrame:
        chosen = self._choose(faces, waiting.gaze)
        frame = waiting.frame
        image = frame.image.copy()
        for face in chosen:
            if face.covered:
                cover_face(image, face.box, self._settings.cover, self._settings.margin)
        image.flags.writeable = False
        self.counts.pictures += 1
        self.counts.faces_covered += sum(f.covered for f in chosen)
        return RedactedFrame(frame.frame_id, frame.t_ns, image, frame.source, frame.role, tuple(chosen))

    def _choose(self, faces: Sequence[Face], gaze: Gaze | None) -> list[Face]:
        """Mark which face is looked at and which faces are covered."""
        near = near_gaze(faces, gaze, self._margin_px)
        fixated = near[0] if len(near) == 1 else None
        mode = self._settings.mode
        if mode == "subject-only":
            self._subjects.update(faces[i].track_id for i in near)
        chosen = []
        for index, face in enumerate(faces):
            if mode == "outside-fixation":
                covered = index != fixated
            elif mode == "subject-only":
                covered = gaze is None or self._margin_px is None or face.track_id in self._subjects
            else:
                covered = True
            chosen.append(replace(face, fixated=index == fixated, covered=covered))
        return chosen

    def _withhold(self, frame: Frame, reason: str) -> RedactedFrame:
        self.counts.pictures += 1
        self.counts.withheld += 1
        return withhold(frame, reason)


def cautions(config: Config) -> list[str]:
    """Say what these settings leave recognisable, a sentence each."""
    redact = config.redact
    found = []
    if redact.cover != "solid":
        found.append(
            f"redact.cover = {redact.cover}: who can cover pictures of suspects alike recognises most faces "
            "(python -m benchmarks reidentify); only solid is irreversible"
        )
    if redact.mode == "subject-only":
        found.append("redact.mode = subject-only: everyone but the person looked at stays recognisable")
    if not config.models.face_recall:
        found.append("models.face_recall is empty: small, turned and partly hidden faces are missed")
    if redact.mode != "all" and not may_uncover(config.gaze.source):
        found.append(
            f"gaze.source = {config.gaze.source}: uncovers nothing, since it isn't pinned to its sender; "
            "add source_id=...,hostname=..."
        )
    if config.preset == "clinical" and config.sinks.allow_plaintext:
        found.append("sinks.allow_plaintext = true: files are in the clear, which the preset alone would refuse")
    return found


def withhold(frame: Frame, reason: str) -> RedactedFrame:
    """Return the picture covered whole."""
    image = np.full_like(frame.image, WITHHELD)
    image.flags.writeable = False
    return RedactedFrame(frame.frame_id, frame.t_ns, image, frame.source, frame.role, (), withheld=True, reason=reason)


def near_gaze(faces: Sequence[Face], gaze: Gaze | None, margin_px: float | None) -> list[int]:
    """Return the indices of the faces whose box the gaze hits or misses by at most `margin_px`, the nearest first."""
    if gaze is None or margin_px is None or not all(math.isfinite(v) for v in gaze):
        return []
    distances = [(_distance(gaze, face.box), index) for index, face in enumerate(faces)]
    return [index for distance, index in sorted(distances) if distance <= margin_px]


def cover_face(image: Image, box: Box, cover: str, margin: float) -> None:
    """Cover a face in place: its box and `margin` of its size on each side, as far as that lies in the picture.

    Parameters
    ----------
    image : uint8 (h, w, c)
    box : Box
        Unclipped; the size of the face, not of the part inside, sets the strength of blur and mosaic.
    cover : {"blur", "mosaic", "solid"}
        `solid` paints it black. The others average it over cells, at most 4 across the face, of at least 4 px; `blur`
        then joins them smoothly.
    margin : float
    """
    x, y, w, h = grow(box, margin)
    left, top = max(0, math.floor(x)), max(0, math.floor(y))
    right, bottom = min(image.shape[1], math.ceil(x + w)), min(image.shape[0], math.ceil(y + h))
    if left >= right or top >= bottom:
        return
    region = image[top:bottom, left:right]
    if cover == "solid":
        region[:] = 0
        return
    cells = (_cells(right - left, box[2]), _cells(bottom - top, box[3]))
    step = max(1, min((right - left) // cells[0], (bottom - top) // cells[1]) // _SAMPLES)
    small = cv2.resize(np.ascontiguousarray(region[::step, ::step]), cells, interpolation=cv2.INTER_AREA)
    method = cv2.INTER_NEAREST if cover == "mosaic" else cv2.INTER_LINEAR
    region[:] = cv2.resize(small, (right - left, bottom - top), interpolation=method).reshape(region.shape)


def _cells(region_px: int, face_px: float) -> int:
    return max(1, int(region_px / max(face_px / MAX_CELLS, MIN_CELL_PX)))


def _distance(point: Gaze, box: Box) -> float:
    x, y, w, h = box
    return math.hypot(max(x - point[0], 0.0, point[0] - x - w), max(y - point[1], 0.0, point[1] - y - h))


def _slot(t_ns: int, hz: float) -> int:
    return math.floor((t_ns + _CADENCE_SLACK_NS) * hz / 1e9)
