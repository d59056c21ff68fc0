"""The redacted pictures of a recorded session, as ``session:FOLDER?identity=FILE``; time 0 is its first frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import cv2
import numpy as np

from edge.capture.base import FrameInfo, FrameSource
from edge.config import SceneConfig
from edge.errors import SourceError
from edge.records import Frame, Image, Role
from edge.session import SOURCE_PREFIX

if TYPE_CHECKING:
    from edge.session.segment import Picture


def matches(source: str) -> bool:
    return source.startswith(SOURCE_PREFIX)


def open_source(scene: SceneConfig, role: Role) -> FrameSource:
    return SessionFrames(scene, role)


class SessionFrames(FrameSource):
    """Pictures of one camera of a session. Faces in them are covered, and stay so.

    Raises
    ------
    SourceError
        It holds no pictures of that camera, or one can't be read.
    RecordingError
        The session can't be opened.
    """

    def __init__(self, scene: SceneConfig, role: Role) -> None:
        from edge.session.read import origin_ns, parse_source, read_items
        from edge.session.segment import Picture

        self._source, self._role = scene.source, role
        folder, identity = parse_source(scene.source)
        self._origin_ns = origin_ns(read_items(folder, identity))
        self._span_ns = round(scene.start_s * 1e9), round(scene.end_s * 1e9)
        items = read_items(folder, identity)
        self._pictures: Iterator[Picture] = (i for i in items if isinstance(i, Picture) and i.role == role)
        self._next = self._advance()
        if self._next is None:
            raise SourceError(scene.source, f"holds no pictures of the {role} camera in the given span")
        height, width = self._next.image.shape[:2]
        self.info = FrameInfo(scene.source, width, height, scene.rate_hz, live=False, note="redacted pictures")

    def read(self, timeout_s: float = 1.0) -> Frame | None:
        frame = self._next
        self._next = self._advance() if frame is not None else None
        return frame

    @property
    def ended(self) -> bool:
        return self._next is None

    def close(self) -> None:
        self._next = None
        self._pictures = iter(())

    def _advance(self) -> Frame | None:
        begin, end = self._span_ns
        for picture in self._pictures:
            t_ns = picture.t_ns - self._origin_ns
            if t_ns >= begin and (not end or t_ns < end):
                return Frame(picture.frame_id, t_ns, self._decode(picture), self._source, self._role)
        return None

    def _decode(self, picture: Picture) -> Image:
        image = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise SourceError(self._source, f"picture {picture.frame_id} is no JPEG")
        return np.asarray(image, np.uint8)
