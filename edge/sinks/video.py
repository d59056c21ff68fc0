"""Redacted pictures as an H.264 MP4 that a browser plays.

The file is fragmented and flushed: it is written under `NAME.part.mp4` and takes its name once it is whole. A process
that is killed leaves the `.part.mp4`, which plays up to its last fragment (at most about a second before the end).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import cv2

from edge.config import Config
from edge.errors import SinkError
from edge.output_file import OutputFile, recipients_for
from edge.records import Event, Image, RedactedFrame
from edge.sinks.base import Sink, require_redacted

log = logging.getLogger(__name__)

TIME_BASE = Fraction(1, 90_000)  #: seconds; the usual clock of MPEG containers
#: x264's cheapest preset, with the two of its tools that cost little and save much. Measured against `veryfast` at
#: crf 23: half the CPU time, no more noise, 0.95 to 2.3 times the size.
_OPTIONS = {"preset": "ultrafast", "crf": "24", "bf": "0", "x264-params": "cabac=1:deblock=1"}
_CONTAINER = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1", "fflags": "+bitexact"}


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    path = config.sinks.video
    return VideoSink(Path(path), recipients_for(path, config)) if path else None


class VideoWriter:
    """Write redacted pictures into one clip, at their own times.

    Parameters
    ----------
    path : Path
        Ends in ``.mp4``.
    audio : av.AudioStream, optional
        A stream whose packets will be given to `copy`, e.g. a source's sound.
    recipients : collection of str
        age recipients to encrypt the clip to; the name then ends in ``.mp4.age``.

    Raises
    ------
    SinkError
        The file can't be written, another run writes it, or PyAV is missing.
    """

    def __init__(self, path: Path, audio: Any = None, recipients: Collection[str] = ()) -> None:
        clip = path.with_suffix("") if recipients else path
        if clip.suffix.lower() != ".mp4":
            raise SinkError(str(path), "unknown kind of clip", expected="a name that ends in .mp4, or .mp4.age")
        self._av = _import_av()
        self._path = path
        # Not a name: PyAV doesn't tell of every write of FFmpeg's that fails while a file ends.
        self._file = OutputFile(path, recipients, flushed=True)
        try:
            self._container: Any = self._av.open(self._file, "w", format="mp4", options=_CONTAINER)
            self._audio = self._container.add_stream_from_template(audio) if audio is not None else None
        except (OSError, ValueError) as error:
            self._file.close(whole=False, keep=False)
            raise SinkError(str(path), f"can't be written: {error}") from error
        self._stream: Any = None
        self._size = (0, 0)
        self._last_pts = -1
        self.note = ""  #: what of the pictures the clip shows otherwise

    def write(self, frame: RedactedFrame) -> None:
        """Append a picture.

        Raises
        ------
        SinkError
            It has another size than the first, isn't later than the last, or the disk is full.
        """
        require_redacted(frame)
        size = (frame.image.shape[1], frame.image.shape[0])
        if self._stream is None:
            self._start(size)
        pts = round(frame.t_ns * 1e-9 / TIME_BASE)
        if size != self._size or pts <= self._last_pts:
            raise SinkError(
                str(self._path),
                f"picture {frame.frame_id} doesn't follow: {size}, {frame.t_ns} ns",
                expected=f"{self._size}, later than the last",
            )
        self._last_pts = pts
        image = frame.image
        if size[0] % 2 or size[1] % 2:  # 4:2:0 needs even sides: an odd picture's last row or column is doubled
            image = cast(Image, cv2.copyMakeBorder(image, 0, size[1] % 2, 0, size[0] % 2, cv2.BORDER_REPLICATE))
        # FFmpeg's own conversion costs more and is 1.5 dB worse on these pictures.
        planes = cv2.cvtColor(image, cv2.COLOR_BGR2YUV_I420)
        # Without a copy, which takes as long as encoding, PyAV finds the colours only where 4 divides the height.
        wrap = self._av.VideoFrame.from_ndarray if image.shape[0] % 4 else self._av.VideoFrame.from_numpy_buffer
        picture = wrap(planes, format="yuv420p")
        picture.pts, picture.time_base = pts, TIME_BASE
        self._mux(self._stream.encode(picture))

    def copy(self, packet: Any) -> None:
        """Append a packet of the `audio` stream, unchanged."""
        if packet.dts is not None:
            packet.stream = self._audio
            self._mux([packet])

    def close(self, *, whole: bool = True, keep: bool = False) -> None:
        """Finish the clip; if it is `whole` it takes its name, else its part is removed unless it is to be kept.

        May be called twice.
        """
        if self._container is None:
            return
        container, self._container = self._container, None
        empty = self._stream is None
        try:
            if not empty and (whole or keep):
                container.mux(self._stream.encode(None))
            container.close()
        except OSError as error:
            self._file.close(whole=False, keep=keep)
            if whole or keep:
                raise SinkError(str(self._path), f"can't be finished: {error.strerror}") from error
        self._file.close(whole=whole and not empty, keep=keep and not empty)

    def _start(self, size: tuple[int, int]) -> None:
        self._size = size
        stream = self._container.add_stream("libx264", rate=30, options=_OPTIONS)
        stream.width, stream.height = size[0] + size[0] % 2, size[1] + size[1] % 2
        if (stream.width, stream.height) != size:
            self.note = (
                f"the clip is {stream.width}x{stream.height}, since H.264 for browsers needs even sides: the last row "
                f"or column of its {size[0]}x{size[1]} pictures is doubled"
            )
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = TIME_BASE
        stream.codec_context.gop_size = 30
        stream.codec_context.thread_count = 1
        self._stream = stream

    def _mux(self, packets: Any) -> None:
        try:
            self._container.mux(packets)
        except OSError as error:
            raise SinkError(str(self._path), f"can't be written: {error.strerror}", fix="free some space") from error


class VideoSink(Sink):
    """The video of a run. An error is raised once more by each later picture."""

    name = "video"

    def __init__(self, path: Path, recipients: Collection[str] = ()) -> None:
        self._writer = VideoWriter(path, recipients=recipients)
        self._said = False
        self._error: SinkError | None = None

    def event(self, event: Event) -> None:
        """Events don't go into a video."""

    def picture(self, frame: RedactedFrame) -> None:
        if self._error:
            raise self._error
        try:
            self._writer.write(frame)
        except SinkError as error:
            self._error = error
            raise
        if self._writer.note and not self._said:
            self._said = True
            log.warning("video: %s", self._writer.note)

    def close(self) -> None:
        self._finish(whole=True)

    def __exit__(self, *raised: object) -> None:
        # A run that failed leaves the part, which plays, and nothing that looks whole.
        self._finish(whole=raised[0] is None)

    def _finish(self, *, whole: bool) -> None:
        self._writer.close(whole=whole and self._error is None, keep=True)


def _import_av() -> Any:
    try:
        import av
    except ImportError as error:
        raise SinkError("video", f"PyAV can't be used: {error}", fix="pip install 'emogaze-edge[video]'") from error
    return av
