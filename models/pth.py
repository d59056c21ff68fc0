"""Reads PyTorch state dicts without PyTorch and without running what a pickle could hold.

Only the four names that a state dict of plain tensors needs are let through; anything else is refused by name.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import ModelError

_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


@dataclass(frozen=True)
class _Storage:
    dtype: type
    key: str
    size: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, data: npt.NDArray) -> npt.NDArray:
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        if 0 in self.shape:
            return np.empty(self.shape, dtype=data.dtype)
        if self.offset < 0 or min(self.strides, default=0) < 0 or last >= len(data):
            raise ValueError("a tensor reaches beyond its storage")
        steps = tuple(s * data.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(data[self.offset :], self.shape, steps).copy()


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: _Tensor(storage, offset, tuple(shape), tuple(strides))
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a state dict")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, size = pid[:5]
        if kind != "storage" or dtype not in _STORAGES.values():
            raise pickle.UnpicklingError("unknown storage")
        return _Storage(dtype, str(key), int(size))


def read_state_dict(path: Path) -> dict[str, npt.NDArray]:
    """Read a state dict of plain tensors, in the zip layout or the one before it.

    Returns
    -------
    dict of str to array
        In the order of the file. A dict nested under ``state_dict`` is taken.

    Raises
    ------
    ModelError
        The file is cut, is none, or holds more than tensors.
    """
    try:
        tensors, data = _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)
        return {k: t.array(data[t.storage.key]) for k, t in tensors.items() if isinstance(t, _Tensor)}
    except FileNotFoundError:
        raise ModelError(str(path), "no such file") from None
    except (pickle.UnpicklingError, EOFError, KeyError, ValueError, TypeError, AttributeError, struct.error) as error:
        fix = "save it with torch.save(model.state_dict(), FILE)"
        raise ModelError(str(path), f"is no state dict of plain tensors: {error}", fix=fix) from error


def _unnest(items: Any) -> dict[str, Any]:
    """Return the dict of tensors, also where a training script kept it under ``state_dict``."""
    nested: dict[str, Any] = items.get("state_dict", items)
    return nested


def _read_legacy(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray]]:
    """Magic number, protocol, machine, state dict, storage keys: five pickles; then each storage's size and bytes."""
    with path.open("rb") as file:
        if _Reader(file).load() != _MAGIC:
            raise ValueError("wrong magic number")
        _Reader(file).load()
        _Reader(file).load()
        tensors = _unnest(_Reader(file).load())
        keys = _Reader(file).load()
        dtypes = {t.storage.key: t.storage.dtype for t in tensors.values() if isinstance(t, _Tensor)}
        data: dict[str, npt.NDArray] = {}
        for key in map(str, keys):
            (size,) = struct.unpack("<q", file.read(8))
            dtype = np.dtype(dtypes[key])
            content = file.read(size * dtype.itemsize)
            if len(content) != size * dtype.itemsize:
                raise ValueError("the file is cut")
            data[key] = np.frombuffer(content, dtype=dtype)
    return tensors, data


def _read_zip(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray]]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        pickled = next(name for name in [*names, ""] if name.endswith("data.pkl") or not name)
        tensors = _unnest(_Reader(io.BytesIO(archive.read(pickled))).load())
        root = pickled[: -len("data.pkl")]
        storages = [t.storage for t in tensors.values() if isinstance(t, _Tensor)]
        return tensors, {s.key: np.frombuffer(archive.read(f"{root}data/{s.key}"), dtype=s.dtype) for s in storages}
