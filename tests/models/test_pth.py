"""State dicts are read without PyTorch, and a pickle that wants more is refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge.errors import ModelError
from models.pth import read_state_dict

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
COUNT = np.array(7, dtype=np.int64)


class _Global:
    """Pickles as a bare name of a module that isn't installed here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Call:
    def __init__(self, function: _Global, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments


class _Storage:
    def __init__(self, kind: str, key: str, size: int) -> None:
        self.pid = ("storage", _Global("torch", kind), key, "cpu", size)


class _Writer(pickle._Pickler):  # the Python one: it can be taught to write names of absent modules
    def persistent_id(self, item: Any) -> Any:
        return (*item.pid, None) if isinstance(item, _Storage) else None

    def save(self, item: Any, save_persistent_id: bool = True) -> None:
        if isinstance(item, _Global):
            self.write(pickle.GLOBAL + f"{item.module}\n{item.name}\n".encode())
        elif isinstance(item, _Call):
            self.save(item.function)
            self.save(item.arguments)
            self.write(pickle.REDUCE)
        else:
            super().save(item, save_persistent_id)


def pickled(item: Any) -> bytes:
    buffer = io.BytesIO()
    _Writer(buffer, protocol=2).dump(item)
    return buffer.getvalue()


def tensor(kind: str, key: str, array: np.ndarray, strides: tuple[int, ...] | None = None) -> _Call:
    steps = strides if strides is not None else tuple(s // array.itemsize for s in array.strides)
    rebuild = _Global("torch._utils", "_rebuild_tensor_v2")
    return _Call(rebuild, _Storage(kind, key, array.size), 0, array.shape, steps, False, OrderedDict())


def state() -> OrderedDict:
    return OrderedDict(w=tensor("FloatStorage", "10", WEIGHT), n=tensor("LongStorage", "11", COUNT))


def legacy(items: Any) -> bytes:
    head = pickled(0x1950A86A20F9469CFC6C) + pickled(1001) + pickled({"little_endian": True})
    data = b"".join(struct.pack("<q", a.size) + a.tobytes() for a in (WEIGHT, COUNT))
    return head + pickled(items) + pickled(["10", "11"]) + data


def zipped(items: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model/data.pkl", pickled(items))
        archive.writestr("model/data/10", WEIGHT.tobytes())
        archive.writestr("model/data/11", COUNT.tobytes())
    return buffer.getvalue()


@pytest.mark.parametrize("layout", [legacy, zipped], ids=["legacy", "zip"])
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "under state_dict"])
def test_reads_both_layouts(tmp_path: Path, layout: Any, nested: bool) -> None:
    if nested and layout is legacy:
        pytest.skip("the old layout is written for plain state dicts")
    file = tmp_path / "w.pth"
    file.write_bytes(layout({"state_dict": state()} if nested else state()))
    read = read_state_dict(file)
    assert list(read) == ["w", "n"]
    np.testing.assert_array_equal(read["w"], WEIGHT)
    assert read["n"] == 7 and read["n"].dtype == np.int64


def test_strides_are_followed(tmp_path: Path) -> None:
    items = state()
    items["w"] = tensor("FloatStorage", "10", WEIGHT.T, (1, 3))
    (tmp_path / "w.pth").write_bytes(legacy(items))
    np.testing.assert_array_equal(read_state_dict(tmp_path / "w.pth")["w"], WEIGHT.T)


class _Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch evil",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(legacy({"w": _Evil()}), "system has no place in a state dict", id="code in a legacy file"),
        pytest.param(zipped({"w": _Evil()}), "system has no place in a state dict", id="code in a zip"),
        pytest.param(legacy(state())[:-4], "is cut", id="cut"),
        pytest.param(
            zipped({"w": tensor("FloatStorage", "10", WEIGHT, (3, 2))}), "beyond its storage", id="beyond its storage"
        ),
        pytest.param(b"", "no state dict", id="empty"),
        pytest.param(b"hello", "no state dict", id="text"),
    ],
)
def test_what_is_no_state_dict_is_refused(tmp_path: Path, content: bytes, says: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(ModelError) as error:
        read_state_dict(tmp_path / "w.pth")
    assert says in str(error.value)
    assert not (tmp_path / "evil").exists()
