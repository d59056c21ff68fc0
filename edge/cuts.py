"""Notice that a picture shows another scene than the one before: a cut, a flash, a covered lens.

Cheap enough for every picture. Blocks, not pixels, are compared, so noise and small movements don't count.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge.preprocess import block_means
from edge.records import Image

SAMPLED = 4  #: every fourth pixel both ways is looked at, of pictures that are large enough
BLOCKS = 32  #: along the longer side
CHANGED = 20.0  #: of 255, by which a block's mean moved
SHARE = 0.25  #: of the blocks


class SceneCut:
    """Call it with each picture of a stream, in order."""

    def __init__(self) -> None:
        self._blocks: npt.NDArray[np.float32] | None = None

    def __call__(self, image: Image) -> bool:
        """Tell whether the scene of `image`, uint8 (h, w, 3), is another than that of the picture before."""
        before, self._blocks = self._blocks, _blocks(image)
        if before is None or before.shape != self._blocks.shape:
            return True
        changed = np.abs(self._blocks - before).max(axis=2) >= CHANGED
        return bool(changed.mean() >= SHARE)


def _blocks(image: Image) -> npt.NDArray[np.float32]:
    height, width = image.shape[:2]
    if min(height, width) >= SAMPLED * BLOCKS:
        size = (width // SAMPLED, height // SAMPLED)
        image = cast(Image, cv2.resize(image, size, interpolation=cv2.INTER_NEAREST))
    return block_means(image, BLOCKS)
