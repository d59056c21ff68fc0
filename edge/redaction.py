"""Redact files: stills, folders of stills and clips in, covered copies and a list of the faces out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np

from edge import metadata
from edge.audit import Auditor
from edge.backends.base import open_model
from edge.capture import open_capture
from edge.capture.file import SUFFIXES as CLIP_SUFFIXES
from edge.capture.file import import_av
from edge.capture.file import matches as is_clip
from edge.capture.images import SUFFIXES as PICTURE_SUFFIXES
from edge.capture.images import list_pictures, read_picture
from edge.clock import NS_PER_S
from edge.config import FixationConfig, GazeConfig, ModelsConfig, RedactConfig, SceneConfig
from edge.errors import SinkError, SourceError
from edge.faces import FaceDetector
from edge.files import refuse_source, write_atomic
from edge.gaze.fixations import FixationDetector, usable
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import open_gaze
from edge.output_file import part_of
from edge.privacy import Gaze, Redactor
from edge.recall import RecallSearch
from edge.records import Face, Frame, Image, RedactedFrame
from edge.sinks.video import VideoWriter
from edge.tracking import distinct

STILL_SIDES_PX = (640, 320)  #: beside full size, for faces that fill the picture
FULL_SIDE_PX = 4096  #: a larger still is searched at this size, since memory grows with the area
TURNED_SIDE_PX = 1280  #: turned by 90, 180 and 270 degrees it is searched at most at this size
JPEG_QUALITY = 95
JPEG_SUFFIXES = {".jpg", ".jpeg"}

Audio = Literal["none", "dropped", "kept"]


@dataclass(frozen=True, slots=True)
class Detectors:
    """The two face detectors of redaction."""

    fast: FaceDetector
    recall: FaceDetector | None

    @classmethod
    def open(cls, models: ModelsConfig) -> Detectors:
        """Open the artefacts that the settings name."""
        recall = FaceDetector(open_model(models.face_recall, models), "recall") if models.face_recall else None
        return cls(FaceDetector(open_model(models.face_fast, models), "fast"), recall)

    def warm(self, long_side_px: int) -> None:
        """Run the recall detector once on an empty picture of 16:9: the first run takes the memory of its tensors."""
        if self.recall is not None:
            self.recall.detect(np.zeros((long_side_px * 9 // 16, long_side_px, 3), np.uint8), 1.0)

    def on_stream(self, settings: RedactConfig) -> RecallSearch | None:
        """Return the recall detector for the pictures of one stream; None where there is none."""
        if self.recall is None:
            return None
        return RecallSearch(
            self.recall, settings.recall_score, settings.recall_size_px, turned=settings.turned == "always"
        )

    def on_still(self, image: Image, settings: RedactConfig) -> list[Face]:
        """Run the recall detector on a still at full size and smaller ones; a small still also at twice its size."""
        detector = self.recall or self.fast
        score = settings.recall_score if self.recall else settings.fast_score
        full = min(FULL_SIDE_PX, max(image.shape[:2]))
        sides = [full, *(s for s in STILL_SIDES_PX if s < full)]
        if full <= max(STILL_SIDES_PX):
            sides.append(2 * full)
        faces = [face for side in sides for face in detector.detect(image, score, side)]
        if settings.turned != "never":
            turned = dict.fromkeys(min(side, TURNED_SIDE_PX) for side in sides)
            faces += [face for side in turned for face in detector.detect_turned(image, score, side)]
        return distinct(faces)


@dataclass(slots=True)
class Report:
    """What was done to one file: its covered copy, the pictures with their faces, and what became of its sound."""

    source: Path
    output: Path
    audio: Audio = "none"
    note: str = ""
    removed: list[str] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    withheld_reasons: Counter[str] = field(default_factory=Counter)
    suspected_leaks: int = 0

    def add(self, picture: RedactedFrame) -> None:
        """Note a picture that left."""
        self.frames.append(describe(picture))
        if picture.withheld:
            self.withheld_reasons[picture.reason] += 1

    @property
    def faces_covered(self) -> int:
        return sum(face["covered"] for frame in self.frames for face in frame["faces"])

    @property
    def frames_withheld(self) -> int:
        return sum(frame["withheld"] for frame in self.frames)


def describe(picture: RedactedFrame) -> dict[str, Any]:
    """Return a picture's faces as they stand in JSON: box [x, y, w, h] in pixels, unclipped."""
    faces = [
        {
            "box": [round(v, 2) for v in face.box],
            "score": round(face.score, 4),
            "track_id": face.track_id,
            "covered": face.covered,
            "fixated": face.fixated,
            "origin": face.origin,
        }
        for face in picture.faces
    ]
    return {
        "frame_id": picture.frame_id,
        "t_ns": picture.t_ns,
        "width": int(picture.image.shape[1]),
        "height": int(picture.image.shape[0]),
        "withheld": picture.withheld,
        "faces": faces,
    }


def plan(source: Path, output: Path) -> list[tuple[Path, Path]]:
    """Pair each still or clip of `source` with the file to write; an output without a suffix is a folder.

    Raises
    ------
    SourceError
        There is nothing to redact, or nobody knows its kind.
    SinkError
        An output would overwrite its source, or is of an unknown kind.
    """
    folder = output.is_dir() or not output.suffix
    clip = is_clip(str(source)) and not source.is_dir()
    if clip:
        pairs = [(source, output / f"{source.stem}.mp4" if folder else output)]
    elif source.is_dir():
        pairs = [(p, output / p.name) for p in list_pictures(source)]
    else:
        pairs = [(p, output / p.name if folder else output) for p in list_pictures(source)]
    kinds = {".mp4"} if clip else PICTURE_SUFFIXES
    for one, other in pairs:
        if not clip and one.suffix.lower() not in PICTURE_SUFFIXES:
            known = f"a picture ({', '.join(sorted(PICTURE_SUFFIXES))}) or a clip ({', '.join(sorted(CLIP_SUFFIXES))})"
            raise SourceError(str(one), f"is of unknown kind {one.suffix!r}", expected=known)
        refuse_source(other, one)
        if clip:
            refuse_source(part_of(other), one)  # what a killed run left of the same clip
        if other.suffix.lower() not in kinds:
            what = f"the covered copy of {'the clip' if clip else 'a picture'} {one.name}"
            problem = f"{what} can't be of kind {other.suffix!r}"
            raise SinkError(str(other), problem, expected="a name that ends in " + ", ".join(sorted(kinds)))
    return pairs


def redact_still(
    source: Path,
    output: Path,
    detectors: Detectors,
    settings: RedactConfig,
    *,
    frame_id: int = 0,
    auditor: Auditor | None = None,
) -> Report:
    """Write a covered copy of a still. Transparency is kept outside the covers; EXIF and other metadata stay behind."""
    picture = read_picture(source)
    redacted = cover_still(Frame(frame_id, 0, picture.image, str(source)), detectors, settings)
    alpha = None if picture.alpha is None else opaque_where_covered(picture.alpha, picture.image, redacted.image)
    write_still(output, redacted, alpha)
    if auditor:
        auditor.compare(source.name, picture.image, redacted)
    report = Report(source, output, note=picture.note, removed=metadata.of_still(source))
    report.add(redacted)
    return report


def cover_still(frame: Frame, detectors: Detectors, settings: RedactConfig) -> RedactedFrame:
    """Cover every face of a still: nothing is known of where anyone looks in it."""
    (redacted,) = Redactor(settings).push(frame, [], detectors.on_still(frame.image, settings), None)
    return redacted


def opaque_where_covered(alpha: Image, before: Image, after: Image) -> Image:
    """Return the transparency with every covered pixel, and those around it, made opaque: alpha can hold a face too."""
    changed = (before != after).any(axis=2).astype(np.uint8)
    closed = cv2.morphologyEx(changed, cv2.MORPH_CLOSE, np.ones((15, 15), np.uint8))
    opaque = cv2.dilate(closed, np.ones((5, 5), np.uint8)) > 0
    return np.where(opaque, np.uint8(255), alpha)


def write_still(path: Path, picture: RedactedFrame, alpha: Image | None = None) -> None:
    """Write a redacted picture in the format that the name ends in.

    Raises
    ------
    SinkError
        The format can't hold the picture, or the file can't be written.
    """
    suffix = path.suffix.lower()
    image = picture.image
    if alpha is not None:
        if suffix in JPEG_SUFFIXES:
            raise SinkError(str(path), "JPEG holds no transparency", fix="write a .png")
        image = np.dstack([image, np.zeros_like(alpha) if picture.withheld else alpha])
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if suffix in JPEG_SUFFIXES else []
    try:
        _, data = cv2.imencode(suffix, image, options)
    except cv2.error as error:
        raise SinkError(str(path), f"can't be encoded: {error.err}") from error
    try:
        write_atomic(path, data.tobytes())
    except OSError as error:
        raise SinkError(str(path), f"can't be written: {error.strerror}") from error


def redact_clip(
    scene: SceneConfig,
    output: Path,
    detectors: Detectors,
    settings: RedactConfig,
    fixated: FixationTrack | None = None,
    *,
    keep_audio: bool = False,
    auditor: Auditor | None = None,
    watch: Callable[[Iterator[RedactedFrame], int | None], Iterator[RedactedFrame]] | None = None,
) -> Report:
    """Write a covered copy of a clip, picture by picture at its own times. The container's tags stay behind.

    Parameters
    ----------
    scene : SceneConfig
        The clip, and what part of it.
    output : Path
        Ends in ``.mp4``. It appears once it is whole.
    detectors : Detectors
    settings : RedactConfig
    fixated : FixationTrack, optional
        Where someone looks; without it every face is covered.
    keep_audio : bool
        Copy the sound. A voice tells who someone is, so it is left out by default.
    auditor : Auditor, optional
        Checks one picture a second.
    watch : callable, optional
        Wraps the pictures and their expected number, e.g. to show progress.

    Raises
    ------
    SourceError, SinkError
        The clip can't be read, gaze and clip don't overlap, or the output can't be written; no output is left.
    """
    report = Report(Path(scene.source), output)
    unchecked: dict[int, Image] = {}
    with (
        open_capture(scene, "scene") as source,
        closing(_Sound(Path(scene.source), source.info.zero_s, scene.start_s)) as sound,
    ):
        size = (source.info.width, source.info.height)
        px_per_deg = fixated.start(size, round(scene.start_s * NS_PER_S)) if fixated else None
        redactor = Redactor(settings, px_per_deg, recall=detectors.recall is not None)
        writer = VideoWriter(output, sound.stream if keep_audio else None)

        def read() -> Frame | None:
            frame = source.read()
            if auditor and frame is not None and auditor.is_due(frame.t_ns):
                unchecked[frame.frame_id] = frame.image
            return frame

        try:
            pictures = _redacted(read, detectors, redactor, settings, fixated)
            for picture in watch(pictures, source.info.n_frames) if watch else pictures:
                writer.write(picture)
                if keep_audio:
                    sound.copy_until(picture.t_ns / NS_PER_S, writer)
                if auditor and picture.frame_id in unchecked:
                    auditor.compare(report.source.name, unchecked.pop(picture.frame_id), picture)
                report.add(picture)
            if fixated:
                fixated.check_overlap(str(source.info.source))
            if keep_audio and not scene.end_s:
                sound.copy_until(math.inf, writer)  # the last picture is shown for a while
            writer.close()
        finally:
            writer.close(whole=False)
        report.note = "; ".join(filter(None, (source.info.note, writer.note)))
        report.removed = metadata.of_clip(report.source)
        report.audio = "none" if sound.stream is None else "kept" if keep_audio else "dropped"
    report.suspected_leaks = redactor.counts.suspected_leaks
    return report


def _redacted(
    read: Callable[[], Frame | None],
    detectors: Detectors,
    redactor: Redactor,
    settings: RedactConfig,
    fixated: FixationTrack | None,
) -> Iterator[RedactedFrame]:
    search = detectors.on_stream(settings)
    while (frame := read()) is not None:
        recall = search(frame) if search and redactor.wants_recall(frame) else None
        fast = detectors.fast.detect(frame.image, settings.fast_score) if recall is None else []
        yield from redactor.push(frame, fast, recall, fixated.at(frame.t_ns) if fixated else None)
    last = redactor.last_waiting
    yield from redactor.flush(search(last) if search and last is not None else None)


class FixationTrack:
    """Where a recording's person looks at a picture's time: the fixation that goes on then.

    Parameters
    ----------
    gaze : GazeConfig
    fixations : FixationConfig
    """

    def __init__(self, gaze: GazeConfig, fixations: FixationConfig) -> None:
        self._config = gaze
        self._source = open_gaze(gaze)
        self._detector = FixationDetector(fixations, self._source.info.hz_declared)
        self._fresh_ns: int | None = None
        self._overlaps = False

    def start(self, frame_size: tuple[int, int], start_ns: int = 0) -> float:
        """Map gaze onto pictures of this (width, height), from `start_ns` on; return the pixels in a degree."""
        self._start_ns = start_ns
        self._mapping = open_mapping(self._source, self._config, frame_size)
        return self._mapping.px_per_deg

    def at(self, t_ns: int) -> Gaze | None:
        """Return the fixated place in pixels; None in a saccade, a blink, or when gaze is older than `silent_ms`."""
        for raw in self._source.read_until(t_ns):
            sample = self._mapping(raw)
            self._detector.add(sample)
            self._overlaps = self._overlaps or sample.t_ns >= self._start_ns
            if usable(sample):
                self._fresh_ns = sample.t_ns
        fixation = self._detector.current
        if fixation is None or self._fresh_ns is None or t_ns - self._fresh_ns > self._config.silent_ms * 1_000_000:
            return None
        return fixation.x_px, fixation.y_px

    def check_overlap(self, clip: str) -> None:
        """Raise SourceError if no gaze sample lay within the clip's time."""
        if not self._overlaps:
            raise SourceError(
                self._source.info.source, f"has no sample within the time of {clip}", fix="set gaze.offset_ms"
            )


class _Sound:
    """A clip's sound from `start_s` on, packet by packet, on the pictures' clock: its 0 is the container's `zero_s`."""

    def __init__(self, path: Path, zero_s: float, start_s: float) -> None:
        av = import_av()
        try:
            self._container = av.open(str(path))
        except (OSError, av.error.FFmpegError) as error:
            raise SourceError(str(path), f"can't be read as a clip: {error.strerror}") from error
        self.stream = self._container.streams.audio[0] if self._container.streams.audio else None
        self._zero_s, self._start_s = zero_s, start_s
        self._packets = self._read()
        self._next = next(self._packets, None)

    def _read(self) -> Iterator[tuple[float, Any]]:
        for packet in self._container.demux(self.stream) if self.stream is not None else ():
            if packet.pts is None or packet.dts is None:
                continue
            shift = round(self._zero_s / packet.time_base)
            packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
            t_s = float(packet.dts * packet.time_base)
            if t_s >= self._start_s or not self._start_s:  # an encoder's lead-in lies before 0
                yield t_s, packet

    def copy_until(self, t_s: float, writer: VideoWriter) -> None:
        while self._next is not None and self._next[0] <= t_s:
            writer.copy(self._next[1])
            self._next = next(self._packets, None)

    def close(self) -> None:
        self._container.close()
