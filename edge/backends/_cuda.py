"""The little of CUDA that an engine needs: memory, one stream and graphs, through PyCUDA or cuda-python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib.util import find_spec
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edge.errors import BackendError

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def missing() -> str:
    """Return why there is no working CUDA device, or "".

    Asked of the driver itself: TensorRT's Runtime looks sound without one, and then crashes the process.
    """
    try:
        driver = _driver()
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "the NVIDIA driver finds no GPU"
    if not (find_spec("pycuda") or find_spec("cuda")):
        return "neither PyCUDA nor cuda-python is installed: pip install 'emogaze-edge[tensorrt]'"
    return ""


def gpu_name() -> str:
    """Return the first GPU's name and compute capability, e.g. ``"Orin (8.7)"``."""
    driver, device, name = _driver(), ctypes.c_int(), ctypes.create_string_buffer(256)
    _check(driver.cuInit(0))
    _check(driver.cuDeviceGet(ctypes.byref(device), 0))
    _check(driver.cuDeviceGetName(name, len(name), device))
    capability = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
        capability.append(str(value.value))
    return f"{name.value.decode()} ({'.'.join(capability)})"


class Memory(Protocol):
    """Pinned and device memory and one stream. Sizes in bytes, pointers as int."""

    stream: int

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray: ...
    def device(self, nbytes: int) -> int: ...
    def upload(self, pointer: int, array: npt.NDArray) -> None: ...
    def download(self, array: npt.NDArray, pointer: int) -> None: ...
    def synchronise(self) -> None: ...
    def close(self) -> None: ...


class PyCudaMemory:
    """Through PyCUDA, in the device's primary context, which TensorRT uses too."""

    def __init__(self) -> None:
        import pycuda.driver as cuda

        self._cuda, self._stream = cuda, cuda.Stream()
        self.stream = int(self._stream.handle)
        self._kept: list[Any] = []

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray:
        array: npt.NDArray = self._cuda.pagelocked_empty(shape, dtype)
        return array

    def device(self, nbytes: int) -> int:
        self._kept.append(self._cuda.mem_alloc(nbytes))
        return int(self._kept[-1])

    def upload(self, pointer: int, array: npt.NDArray) -> None:
        self._cuda.memcpy_htod_async(pointer, array, self._stream)

    def download(self, array: npt.NDArray, pointer: int) -> None:
        self._cuda.memcpy_dtoh_async(array, pointer, self._stream)

    def synchronise(self) -> None:
        self._stream.synchronize()

    def close(self) -> None:
        for allocation in self._kept:
            allocation.free()
        self._kept = []


class CudaPythonMemory:
    """Through cuda-python's runtime API."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import runtime as cudart
        except ImportError:  # before cuda-python 12.6
            from cuda import cudart
        self._rt = cudart
        self.stream = int(self._call(cudart.cudaStreamCreate()))
        self._devices: list[int] = []
        self._hosts: list[int] = []

    def _call(self, result: tuple[Any, ...]) -> Any:
        _check(int(result[0]))
        return result[1] if len(result) > 1 else None

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray:
        nbytes = max(prod(shape), 1) * np.dtype(dtype).itemsize
        pointer = int(self._call(self._rt.cudaHostAlloc(nbytes, 0)))
        self._hosts.append(pointer)
        block = np.ctypeslib.as_array((ctypes.c_byte * nbytes).from_address(pointer))
        return block.view(dtype)[: prod(shape)].reshape(shape)

    def device(self, nbytes: int) -> int:
        self._devices.append(int(self._call(self._rt.cudaMalloc(nbytes))))
        return self._devices[-1]

    def upload(self, pointer: int, array: npt.NDArray) -> None:
        kind = self._rt.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._call(self._rt.cudaMemcpyAsync(pointer, array.ctypes.data, array.nbytes, kind, self.stream))

    def download(self, array: npt.NDArray, pointer: int) -> None:
        kind = self._rt.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self._call(self._rt.cudaMemcpyAsync(array.ctypes.data, pointer, array.nbytes, kind, self.stream))

    def synchronise(self) -> None:
        self._call(self._rt.cudaStreamSynchronize(self.stream))

    def close(self) -> None:
        for pointer in self._devices:
            self._rt.cudaFree(pointer)
        for pointer in self._hosts:
            self._rt.cudaFreeHost(pointer)
        self._devices, self._hosts = [], []


def open_memory() -> Memory:
    """Return the memory layer of whichever package is installed, PyCUDA first."""
    return PyCudaMemory() if find_spec("pycuda") else CudaPythonMemory()


class Graph:
    """Work recorded once on a stream and launched as one. Through the driver: PyCUDA has no graphs."""

    def __init__(self, stream: int, work: Callable[[], None]) -> None:
        self._stream, self._exec = ctypes.c_void_p(stream), ctypes.c_void_p()
        driver, graph = _driver(), ctypes.c_void_p()
        _check(driver.cuStreamBeginCapture_v2(self._stream, _RELAXED))
        try:
            work()
        finally:
            ended = driver.cuStreamEndCapture(self._stream, ctypes.byref(graph))
        _check(ended)
        _check(driver.cuGraphInstantiateWithFlags(ctypes.byref(self._exec), graph, ctypes.c_ulonglong(0)))
        driver.cuGraphDestroy(graph)

    def launch(self) -> None:
        _check(_driver().cuGraphLaunch(self._exec, self._stream))


def _check(code: int) -> None:
    if code:
        raise BackendError("CUDA", f"failed with error {code}", fix="see `emogaze doctor`")
