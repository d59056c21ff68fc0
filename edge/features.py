"""Frame and fixation -> embeddings of the window that is looked at and of the whole scene, in one batched inference."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge.backends.base import Model, new_batch
from edge.config import ScoreConfig
from edge.errors import ConfigError, ModelError
from edge.preprocess import fill_input
from edge.profiling import StageTimer
from edge.records import Features, Frame, Image, Vector

Matrix = npt.NDArray[np.float32]

_STEP_PX = 1000  #: pictures with a shorter side of at least this count as large
_AUTO_SHARE, _AUTO_RANGE_PX = 0.25, (150, 200)
_SHARES = (20.0, 30.0)
_BATCH = 8  #: pictures an inference where many wait; TensorRT engines have profiles for 1, 2, 4 and 8
_LOCAL, _GLOBAL = 0, 1  #: rows of the live batch


def window_px(width: int, height: int, window: str) -> int:
    """Return the side in pixels of the square window around a fixation.

    Parameters
    ----------
    width, height : int
        Size of the picture.
    window : str
        ``auto``, a share of the short side from ``20%`` to ``30%``, or a fixed side such as ``100px`` (at most the
        short side). ``auto`` is 25 % of the short side where that is below 1000 px, and 25 % held to 150..200 px from
        there on: the two published rules (a share, a range in pixels) disagree, so the side falls from 250 to 200 px
        at 1000.

    Raises
    ------
    ConfigError
        `window` can't be read or is out of bounds.

    Examples
    --------
    >>> [window_px(1920, short, "auto") for short in (720, 999, 1000, 1001)]
    [180, 250, 200, 200]
    """
    short = min(width, height)
    if window == "auto":
        side = max(1, round(_AUTO_SHARE * short))
        return side if short < _STEP_PX else min(max(side, _AUTO_RANGE_PX[0]), _AUTO_RANGE_PX[1])
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%|px)", window)
    if not match:
        raise ConfigError("score.window", "can't be read", expected="auto, 25% or 100px", got=window)
    value = float(match[1])
    if match[2] == "px":
        if value < 1:
            raise ConfigError("score.window", "must be at least 1px", got=window)
        return min(round(value), short)
    if not _SHARES[0] <= value <= _SHARES[1]:
        raise ConfigError(
            "score.window", "out of bounds", expected="20% to 30%", got=window, fix="or give a side: 100px"
        )
    return max(1, round(value / 100 * short))


def crop_window(image: Image, x_px: float, y_px: float, size: int) -> Image | None:
    """Return the square window of `size` pixels around a point, as a view.

    A window that would leave the picture is shifted inside, never padded. A point that isn't on the picture (or is
    nan) has no window: None.

    Raises
    ------
    ValueError
        If the window is larger than the picture.
    """
    height, width = image.shape[:2]
    if not 1 <= size <= min(width, height):
        raise ValueError(f"a window of {size} px doesn't fit a picture of {width}x{height}")
    if not (0 <= x_px < width and 0 <= y_px < height):
        return None
    left = min(max(math.floor(x_px - size / 2 + 0.5), 0), width - size)
    top = min(max(math.floor(y_px - size / 2 + 0.5), 0), height - size)
    return image[top : top + size, left : left + size]


class StillScene:
    """Tell whether a picture shows what the last accepted one showed.

    Both are reduced to means of 32 x 16 blocks (of a large picture over a grid of single pixels); the largest
    difference of a block decides. The comparison is with the picture whose result would be reused, not with the one
    before, so that slow changes add up.

    Parameters
    ----------
    tolerance : float
        Largest difference of a block, in grey levels of 255; 0 never calls a scene still.
    """

    _BLOCKS = (32, 16)  # a network's input of 224 px divides into them, which is three times as fast
    _PER_BLOCK = 8

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._reference: npt.NDArray[np.int16] | None = None
        self._size: tuple[int, ...] = ()

    def check(self, image: Image) -> bool:
        """Return whether `image` stands still; if not, it becomes the picture to compare with."""
        if self._tolerance <= 0:
            return False
        thumbnail = self._thumbnail(image)
        known = self._reference if image.shape == self._size else None
        if known is not None and int(np.abs(thumbnail - known).max()) <= self._tolerance:
            return True
        self._reference, self._size = thumbnail, image.shape
        return False

    def _thumbnail(self, image: Image) -> npt.NDArray[np.int16]:
        columns, rows = self._BLOCKS[0] * self._PER_BLOCK, self._BLOCKS[1] * self._PER_BLOCK
        large = image.shape[1] > columns
        grid = cv2.resize(image, (columns, rows), interpolation=cv2.INTER_NEAREST) if large else image
        return cv2.resize(grid, self._BLOCKS, interpolation=cv2.INTER_AREA).astype(np.int16)


class Embedder:
    """Turn pictures into embeddings with one loaded model.

    The model's outputs are `features` (n, d), used at both scales, or `local` and `global`, which may differ in size.
    The raw pooled features are returned: centring and projection belong to the environment.

    Parameters
    ----------
    model : Model
        An embedder.
    score : ScoreConfig
        `window` and `still_tolerance`.
    timer : StageTimer, optional
        Gets the stages `crop` (window, still test, resize into the input) and `embed` (the network).

    Raises
    ------
    ModelError
        The model is no embedder.
    """

    def __init__(self, model: Model, score: ScoreConfig, timer: StageTimer | None = None) -> None:
        self.model, self.manifest = model, model.manifest
        self._outputs = self._embedding_outputs()
        self._window, self._timer = score.window, timer or StageTimer()
        self._spec = self.manifest.input()
        self._batch: Matrix = new_batch(self._spec, max(_BATCH, 2))
        self._still = StillScene(score.still_tolerance)
        self._global: Vector = np.empty(0, dtype=np.float32)
        #: How many scenes were embedded, and how many stood still and reused the embedding before.
        self.n_scenes, self.n_still = 0, 0

    def embed(self, frame: Frame, x_px: float, y_px: float) -> Features | None:
        """Embed the window around a fixation and the whole scene; None for a fixation that isn't on the picture."""
        with self._timer.stage("crop"):
            window = crop_window(frame.image, x_px, y_px, window_px(frame.width, frame.height, self._window))
            if window is None:
                return None
            fill_input(window, self._spec, self._batch[_LOCAL])
            scene = cast(Image, cv2.resize(frame.image, self._spec.size(), interpolation=cv2.INTER_LINEAR))
            still = self._still.check(scene)
            if not still:
                fill_input(scene, self._spec, self._batch[_GLOBAL])
        with self._timer.stage("embed"):
            rows = self._infer(1 if still else 2)
        self.n_scenes, self.n_still = self.n_scenes + 1, self.n_still + int(still)
        if not still:
            self._global = rows[self._outputs[_GLOBAL]][_GLOBAL].copy()
            self._global.flags.writeable = False
        local = rows[self._outputs[_LOCAL]][_LOCAL].copy()
        return Features(
            frame.frame_id, frame.t_ns, local, self._global, self.manifest.model_id, self.manifest.precision
        )

    def local(self, windows: Sequence[Image]) -> Matrix:
        """Embed windows: float32 (n, d_l)."""
        return self._many(windows, self._outputs[_LOCAL])

    def scenes(self, images: Sequence[Image]) -> Matrix:
        """Embed whole scenes: float32 (n, d_g)."""
        return self._many(images, self._outputs[_GLOBAL])

    @property
    def dims(self) -> tuple[int, int]:
        """Sizes of the local and of the global embedding."""
        local, global_ = (self.manifest.output(name).shape[1] for name in self._outputs)
        return local, global_

    def _many(self, images: Sequence[Image], output: str) -> Matrix:
        result = np.empty((len(images), self.manifest.output(output).shape[1]), dtype=np.float32)
        for start in range(0, len(images), _BATCH):
            chunk = images[start : start + _BATCH]
            for row, image in enumerate(chunk):
                fill_input(image, self._spec, self._batch[row])
            result[start : start + len(chunk)] = self._infer(len(chunk), (output,))[output]
        return result

    def _infer(self, n: int, outputs: tuple[str, ...] | None = None) -> dict[str, Matrix]:
        """Run the first `n` rows of the batch, one by one where the model's batch is fixed to one."""
        wanted = tuple(dict.fromkeys(outputs or self._outputs))
        if self._spec.shape[0] in (-1, n):
            return self.model.infer({self._spec.name: self._batch[:n]}, wanted, trusted=True)
        parts = [self.model.infer({self._spec.name: self._batch[i : i + 1]}, wanted, trusted=True) for i in range(n)]
        return {name: np.concatenate([part[name] for part in parts]) for name in wanted}

    def _embedding_outputs(self) -> tuple[str, str]:
        shapes = {spec.name: spec.shape for spec in self.manifest.outputs}
        names = ("local", "global") if {"local", "global"} <= set(shapes) else ("features", "features")
        if any(name not in shapes or len(shapes[name]) != 2 or shapes[name][1] < 1 for name in names):
            have = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            expected = "an output `features` (n, d), or `local` and `global`"
            raise ModelError(f"model {self.manifest.name}", "is no embedder", expected=expected, got=have)
        return names
