"""Whatever a camera gives -> uint8 BGR: gray (near infrared), four channels, 10 to 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import SourceError
from edge.records import Image


def to_bgr(image: npt.NDArray[Any], source: str, bits: int = 0) -> Image:
    """Return `image` as uint8 (h, w, 3) in BGR.

    Parameters
    ----------
    image : uint8 or uint16, (h, w), (h, w, 1), (h, w, 3) BGR or (h, w, 4) BGRA
        Gray is repeated in all three channels, alpha is left out.
    source : str
        The source's name, for errors.
    bits : int
        Significant bits of a uint16 picture (10 in Y10, 16 in Y16); the lower ones are cut off. 0 = not known.

    Raises
    ------
    SourceError
        Another type or shape, or a uint16 picture whose depth isn't known.
    """
    if image.dtype == np.uint16:
        if not 8 <= bits <= 16:
            raise SourceError(
                source, "gives 16-bit pictures of unknown depth", fix="set pixel_format, such as Y10 or Y16"
            )
        image = np.minimum(image >> (bits - 8), 255).astype(np.uint8)
    channels = 1 if image.ndim == 2 else image.shape[-1]
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or channels not in (1, 3, 4):
        raise SourceError(
            source,
            "gives pictures of a kind that can't be used",
            expected="8 to 16 bits, gray, BGR or BGRA",
            got=f"{image.dtype} {image.shape}",
        )
    if channels == 1:
        return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(image[..., :3])
