"""Reading saliency maps, pictures and fixations, and checking that they belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools.metrics.saliency import Array, as_map, from_fixation_map
from host_tools.tables import read_table


def read_map(path: Path) -> Array:
    """Read a saliency map (h, w) from ``.npy`` or a gray picture.

    Raises
    ------
    DataError
        If it can't be read, is not two-dimensional or holds a value that is no number.
    """
    try:
        return as_map(_load(path) if path.suffix == ".npy" else read_picture(path, gray=True))
    except ValueError as error:
        raise DataError(str(path), str(error)) from None


def read_picture(path: Path, *, gray: bool = False) -> npt.NDArray[np.uint8]:
    """Read a picture as uint8, BGR (h, w, 3) or gray (h, w). Raises DataError if it can't be read."""
    import cv2

    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise DataError(str(path), f"can't be read: {error.strerror}") from error
    picture = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE if gray else cv2.IMREAD_COLOR) if len(content) else None
    if picture is None:
        raise DataError(str(path), "is no picture that OpenCV can decode")
    return picture.astype(np.uint8, copy=False)


def check_size(picture: Path, shape: Sequence[int], map_name: str) -> None:
    """Raise DataError if the map doesn't have the picture's size."""
    height, width = read_picture(picture, gray=True).shape
    if (height, width) != tuple(shape):
        raise DataError(
            map_name,
            f"has another size than {picture}",
            expected=f"{width}x{height}",
            got=f"{shape[1]}x{shape[0]}",
            fix="resize the map to the picture",
        )


def read_fixations(
    path: Path, shape: Sequence[int], columns: Mapping[str, str] = MappingProxyType({})
) -> tuple[Array, Array]:
    """Read x and y (n,) in pixels of the map from a table, or from a fixation map ``.npy`` of counts with `shape`.

    Parameters
    ----------
    path : Path
        A table of one row per fixation, or the ``.npy``.
    shape : sequence of int
        (h, w) of the saliency map.
    columns : mapping of str to str
        What the table's columns of `x` and `y` are called, where they have other names.

    Raises
    ------
    DataError
        A column is missing, `columns` names more than x and y, or the map is a density or has another shape.
    """
    if path.suffix != ".npy":
        table = read_table(path)
        if unknown := sorted(set(columns) - {"x", "y"}):
            raise DataError("--columns", f"there is no {unknown[0]!r}", expected="x=NAME,y=NAME")
        return table.numbers(columns.get("x", "x")), table.numbers(columns.get("y", "y"))
    counts = _load(path)
    if counts.shape != tuple(shape):
        raise DataError(
            str(path), "has another shape than the saliency map", expected=f"{tuple(shape)}", got=f"{counts.shape}"
        )
    try:
        row, column = from_fixation_map(counts)
    except ValueError as error:
        raise DataError(str(path), str(error)) from None
    return column.astype(np.float64) + 0.5, row.astype(np.float64) + 0.5


def _load(path: Path) -> npt.NDArray:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except OSError as error:
        raise DataError(str(path), f"can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(str(path), f"is no numpy array: {error}") from None
