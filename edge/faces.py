"""Face detection: a picture in, boxes out. Decoders of full-range BlazeFace (fast) and CenterFace (misses least)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, Tensors, new_batch
from edge.errors import ModelError
from edge.preprocess import fill_input, resize_smooth
from edge.records import Box, Face, FaceOrigin, Image

Boxes = npt.NDArray[np.float64]  #: (n, 4): x, y, width, height
MAX_IOU = 0.3  #: of two boxes that overlap more, the one of lower score goes


class FaceDetector:
    """Find faces with one artefact.

    Parameters
    ----------
    model : Model
        An artefact whose manifest names one of the decoders of this module.
    origin : {"fast", "recall"}, optional
        What its faces are marked with; by default `recall` for CenterFace, else `fast`.

    Raises
    ------
    ModelError
        The artefact is no face detector that is known here.
    """

    def __init__(self, model: Model, origin: FaceOrigin | None = None) -> None:
        decoders = {"blazeface_full": self._blazeface, "centerface": self._centerface, "boxes": self._boxes}
        name = model.manifest.decoder
        if name not in decoders:
            known = ", ".join(decoders)
            raise ModelError(f"model {model.manifest.name}", f"no face decoder {name!r}", expected=f"one of {known}")
        self.model = model
        self._spec = model.manifest.input()
        self._decode = decoders[name]
        self._memory = self._batch = np.empty(0, np.float32)
        self._place = ((0, 0), (0, 0), (0, 0))
        self.origin: FaceOrigin = origin or ("recall" if name == "centerface" else "fast")

    def detect(self, image: Image, min_score: float, long_side_px: int | None = None) -> list[Face]:
        """Find faces.

        Parameters
        ----------
        image : uint8 (h, w, 3) BGR
        min_score : float
            Faces below are dropped, 0..1.
        long_side_px : int, optional
            The picture is scaled so that its longer side has this length; by default it is taken as it is. A model
            of fixed size always scales to that.

        Returns
        -------
        list of Face
            By falling score; boxes in pixels of `image`, not clipped to it.
        """
        if image.size == 0:
            return []
        boxes, scores = self._decode(image, min_score, long_side_px)
        keep = suppress(boxes, scores)
        return [Face(_box(boxes[i]), float(scores[i]), origin=self.origin) for i in keep]

    def detect_turned(self, image: Image, min_score: float, long_side_px: int | None = None) -> list[Face]:
        """Find faces in the picture turned by 90, 180 and 270 degrees: detectors learn from upright faces.

        Parameters and result are those of `detect`; the faces come turn by turn.
        """
        found = []
        for turns in (1, 2, 3):
            turned = np.ascontiguousarray(np.rot90(image, turns))
            for face in self.detect(turned, min_score, long_side_px):
                found.append(replace(face, box=turn_back(face.box, turns, (image.shape[1], image.shape[0]))))
        return found

    def landmarks(self, image: Image, near: tuple[float, float], long_side_px: int) -> npt.NDArray | None:
        """Return the five landmarks of the best face that holds the point `near`: eyes, nose, corners of the mouth.

        CenterFace alone gives them. float64 (5, 2): x, y in pixels of `image`; None where there is no such face.
        """
        if self.model.manifest.decoder != "centerface" or image.size == 0:
            return None
        scale = long_side_px / max(image.shape[:2])
        out = self._infer(self._to_stride(image, scale), ("heatmap", "scale", "offset", "landmarks"))
        boxes, scores = decode_centerface(out["heatmap"][0, 0], out["scale"][0], out["offset"][0], 0.2)
        rows, columns = np.nonzero(out["heatmap"][0, 0] >= 0.2)
        best = None
        for i in np.argsort(-scores):
            x, y, w, h = boxes[i]
            if x <= near[0] * scale <= x + w and y <= near[1] * scale <= y + h:
                best = i
                break
        if best is None:
            return None
        yx = out["landmarks"][0, :, rows[best], columns[best]].reshape(5, 2).astype(np.float64)
        return (yx[:, ::-1] * boxes[best, 2:] + boxes[best, :2]) / scale

    def _blazeface(self, image: Image, min_score: float, long_side_px: int | None) -> tuple[Boxes, npt.NDArray]:
        side, _ = self._spec.size()
        scale = side / max(image.shape[:2])
        batch, left, top = self._letterbox(image, scale, (side, side), centred=True)
        out = self._infer(batch, ("boxes", "scores"))
        boxes, scores = decode_blazeface(out["boxes"][0], out["scores"][0], side, min_score)
        return (boxes - (left, top, 0, 0)) / scale, scores

    def _centerface(self, image: Image, min_score: float, long_side_px: int | None) -> tuple[Boxes, npt.NDArray]:
        scale = (long_side_px or max(image.shape[:2])) / max(image.shape[:2])
        out = self._infer(self._to_stride(image, scale), ("heatmap", "scale", "offset"))
        boxes, scores = decode_centerface(out["heatmap"][0, 0], out["scale"][0], out["offset"][0], min_score)
        return boxes / scale, scores

    def _boxes(self, image: Image, min_score: float, long_side_px: int | None) -> tuple[Boxes, npt.NDArray]:
        """Take boxes and scores as the network decodes them itself."""
        side, _ = self._spec.size()
        scale = side / max(image.shape[:2])
        batch, _, _ = self._letterbox(image, scale, (side, side), centred=False)
        out = self._infer(batch, ("boxes", "scores"))
        found = np.flatnonzero(out["scores"][0] >= min_score)
        return out["boxes"][0, found].astype(np.float64) / scale, out["scores"][0, found].astype(np.float64)

    def _infer(self, batch: npt.NDArray[np.float32], outputs: tuple[str, ...]) -> Tensors:
        return self.model.infer({self._spec.name: batch}, outputs, trusted=True)

    def _to_stride(self, image: Image, scale: float) -> npt.NDArray[np.float32]:
        """Scale a picture into the input, filled up to sides that are multiples of CenterFace's stride of 32."""
        height, width = (max(1, round(side * scale)) for side in image.shape[:2])
        return self._letterbox(image, scale, (-(-width // 32) * 32, -(-height // 32) * 32), centred=False)[0]

    def _letterbox(
        self, image: Image, scale: float, size: tuple[int, int], *, centred: bool
    ) -> tuple[npt.NDArray[np.float32], int, int]:
        """Scale a picture into an input of `size` (width, height), black around it; also return its left and top edge.

        The memory of the input is kept, and for pictures of one size the black too.
        """
        height, width = (max(1, round(side * scale)) for side in image.shape[:2])
        left, top = ((size[0] - width) // 2, (size[1] - height) // 2) if centred else (0, 0)
        place = (size, (left, top), (width, height))
        if place != self._place:
            self._batch, self._place = self._black(size), place
        rows, columns = slice(top, top + height), slice(left, left + width)
        item = self._batch[0]
        inside = item[:, rows, columns] if self._spec.layout == "NCHW" else item[rows, columns]
        fill_input(resize_smooth(image, (width, height)), self._spec, inside)
        return self._batch, left, top

    def _black(self, size: tuple[int, int]) -> npt.NDArray[np.float32]:
        """Return a black input of `size` in the memory that is kept, which grows to the largest."""
        sides = size[::-1]
        shape = (1, 3, *sides) if self._spec.layout == "NCHW" else (1, *sides, 3)
        needed = math.prod(shape)
        if self._memory.size < needed:
            self._memory = np.empty(needed, np.float32)
        batch = self._memory[:needed].reshape(shape)
        pixel = new_batch(self._spec, 1, (1, 1))
        fill_input(np.zeros((1, 1, 3), np.uint8), self._spec, pixel[0])
        batch[:] = pixel
        return batch


def turn_back(box: Box, turns: int, size: tuple[int, int]) -> Box:
    """Return where a box of a picture that was turned by `turns` quarters counter-clockwise lay in the picture.

    `size` is the width and height of the picture before it was turned.
    """
    if turns == 0:
        return box
    x, y, w, h = turn_back(box, turns - 1, (size[1], size[0]))
    return size[0] - y - h, x, h, w


def decode_blazeface(
    raw: npt.NDArray, logits: npt.NDArray, side_px: int, min_score: float
) -> tuple[Boxes, npt.NDArray[np.float64]]:
    """Read full-range BlazeFace: one anchor in the middle of each cell of a square grid (48 x 48 for 192 px).

    Parameters
    ----------
    raw : (n, >= 4)
        Centre relative to the anchor, width and height, in pixels of the network's square input.
    logits : (n, 1) or (n,)
    side_px : int
        Side of that input.
    min_score : float
        Least sigmoid of the logit.

    Returns
    -------
    boxes : float64 (m, 4)
        In pixels of the network's input.
    scores : float64 (m,)
    """
    flat = logits.reshape(-1)
    least = math.log(min_score / (1 - min_score)) if 0 < min_score < 1 else -math.inf if min_score <= 0 else math.inf
    (found,) = (flat >= least).nonzero()  # few, so that the rest is cheap
    scores = 1 / (1 + np.exp(np.minimum(-flat[found].astype(np.float64), 80)))
    boxes = raw[found, :4].astype(np.float64)
    boxes[:, :2] += _anchors(len(flat), side_px)[found] - boxes[:, 2:] / 2
    return boxes, scores


@lru_cache(maxsize=8)
def _anchors(n: int, side_px: int) -> npt.NDArray[np.float64]:
    """Return the middles (n, 2) of the cells of a square grid over a square input, row by row."""
    cells = round(math.sqrt(n))
    rows, columns = np.divmod(np.arange(n), cells)
    return (np.stack([columns, rows], axis=1) + 0.5) * (side_px / cells)


def decode_centerface(
    heatmap: npt.NDArray, scale: npt.NDArray, offset: npt.NDArray, min_score: float
) -> tuple[Boxes, npt.NDArray[np.float64]]:
    """Read CenterFace (Xu et al. 2019): a face where the heatmap is high, in cells of 4 px.

    Parameters
    ----------
    heatmap : (rows, columns)
    scale, offset : (2, rows, columns)
        Logarithm of height and width in cells; the centre's shift in y and x within a cell.
    min_score : float

    Returns
    -------
    boxes : float64 (m, 4)
        In pixels of the network's input.
    scores : float64 (m,)
    """
    rows, columns = np.nonzero(heatmap >= min_score)
    sizes = 4 * np.exp(scale[::-1, rows, columns].astype(np.float64)).T
    cells = np.stack([columns, rows], axis=1)
    centres = 4 * (cells + offset[::-1, rows, columns].T + 0.5)
    return np.concatenate([centres - sizes / 2, sizes], axis=1), heatmap[rows, columns].astype(np.float64)


def suppress(boxes: Boxes, scores: npt.NDArray[np.float64], max_iou: float = MAX_IOU) -> list[int]:
    """Non-maximum suppression: return indices by falling score, without boxes that overlap a better one."""
    if len(boxes) < 2:
        return list(range(len(boxes)))
    return [int(i) for i in cv2.dnn.NMSBoxes(boxes, scores, 0.0, max_iou)]  # type: ignore[arg-type] # arrays do


def _box(row: npt.NDArray) -> Box:
    x, y, w, h = (float(v) for v in row)
    return x, y, w, h
