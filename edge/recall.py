"""The recall detector on a stream: only what changed since it was last searched is searched again.

Most of a picture stands still for most of the time, and a search costs in proportion to its area. Where the mean
brightness of a block moved by less than 2 of 255, the faces found there before are taken to be there still. Once a
second the whole picture is searched.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from edge.faces import FaceDetector
from edge.preprocess import block_means
from edge.records import Box, Face, Frame, Image
from edge.tracking import distinct, hull, intersection, merge

BLOCKS = 64  #: along the longer side of a picture: the usual sizes divide into them, which is three times as fast
CHANGED = 2.0  #: of 255
CONTEXT_PX = 32  #: the detector also sees this much around what changed, in pixels of its own scale
WHOLE_NS = 1_000_000_000
WHOLE_SHARE = 0.8  #: if more than this has changed, the whole is searched

_Blocks = npt.NDArray[np.float32]


class RecallSearch:
    """Find the faces of a stream's pictures with a detector that misses least. Call it with a Frame.

    Parameters
    ----------
    detector : FaceDetector
    min_score : float
        Faces below are dropped.
    long_side_px : int
        The longer side that the detector sees; a smaller picture is not enlarged.
    turned : bool
        Also search turned by 90, 180 and 270 degrees, for faces that lie or hang: four times the work.
    """

    def __init__(self, detector: FaceDetector, min_score: float, long_side_px: int, *, turned: bool = False) -> None:
        self._detector, self._min_score, self._long_side_px = detector, min_score, long_side_px
        self._turned = turned
        self._blocks: _Blocks = np.zeros((0, 0, 3), np.float32)  # colour when each block was last searched
        self._whole_ns = 0
        self._faces: list[Face] = []

    def __call__(self, frame: Frame) -> list[Face]:
        """Return the faces of a picture; those where nothing changed are the ones found before."""
        blocks = block_means(frame.image, BLOCKS)
        whole = (0.0, 0.0, float(frame.width), float(frame.height))
        fresh = blocks.shape == self._blocks.shape and 0 <= frame.t_ns - self._whole_ns < WHOLE_NS
        region = self._changed(blocks, frame) if fresh else whole
        if region is None:
            return self._faces
        if region[2] * region[3] >= WHOLE_SHARE * whole[2] * whole[3]:
            self._blocks, self._whole_ns = blocks, frame.t_ns
            self._faces = self._detect(frame.image, whole)
        else:
            inside = _part(region, frame, blocks)
            self._blocks[inside] = blocks[inside]
            elsewhere = [f for f in self._faces if intersection(f.box, region) < intersection(f.box, whole)]
            self._faces = merge(elsewhere, self._detect(frame.image, region))
        return self._faces

    def _changed(self, blocks: _Blocks, frame: Frame) -> Box | None:
        """Return the box of what changed, with known faces that it touches and some context; None if nothing did."""
        rows, columns = np.nonzero(np.abs(blocks - self._blocks).max(axis=2) >= CHANGED)
        if not len(rows):
            return None
        width, height = frame.width / blocks.shape[1], frame.height / blocks.shape[0]
        left, top = columns.min() * width, rows.min() * height
        region = (left, top, (columns.max() + 1) * width - left, (rows.max() + 1) * height - top)
        region = hull([region, *(f.box for f in self._faces if intersection(f.box, region))])
        context = CONTEXT_PX * max(1.0, max(frame.width, frame.height) / self._long_side_px)
        x, y = max(0, int(region[0] - context)), max(0, int(region[1] - context))
        right = min(frame.width, int(region[0] + region[2] + context))
        bottom = min(frame.height, int(region[1] + region[3] + context))
        return float(x), float(y), float(right - x), float(bottom - y)

    def _detect(self, image: Image, region: Box) -> list[Face]:
        """Search a part of the picture, at the scale at which the whole is searched."""
        x, y, w, h = (int(v) for v in region)
        side = max(1, round(max(w, h) * min(1.0, self._long_side_px / max(image.shape[:2]))))
        part = image[y : y + h, x : x + w]
        found = self._detector.detect(part, self._min_score, side)
        if self._turned:
            found = distinct([*found, *self._detector.detect_turned(part, self._min_score, side)])
        return [replace(f, box=(f.box[0] + x, f.box[1] + y, f.box[2], f.box[3])) for f in found]


def _part(region: Box, frame: Frame, blocks: _Blocks) -> tuple[slice, slice]:
    """Return the blocks that lie wholly in a region; those at its rim stay changed until they are searched whole."""
    width, height = frame.width / blocks.shape[1], frame.height / blocks.shape[0]
    left, top = math.ceil(region[0] / width), math.ceil(region[1] / height)
    right, bottom = math.floor((region[0] + region[2]) / width), math.floor((region[1] + region[3]) / height)
    return slice(top, bottom), slice(left, right)
