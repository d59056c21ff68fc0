"""Pictures handed from one process to another in shared memory: three slots, the newest wins, nobody waits.

The memory is an anonymous file that both processes map; it goes when both have ended, however they end. Who works in a
slot holds a POSIX lock on it, and the kernel frees that lock when a process dies. The writer never touches the
newest slot, nor one that the reader is copying, so with three slots there is always a free one.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.records import Image

SLOTS = 3
_PAGE = 4096
_INDEX = SLOTS  #: number of the lock that guards which slot is newest


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture out of the ring. `changed_ns`: when the content last differed from the picture before."""

    frame_id: int
    t_ns: int
    changed_ns: int
    image: Image


class Ring:
    """One end of the ring over file descriptor `fd`; each process uses its end from one thread only."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map: mmap.mmap | None = None
        self._heads: npt.NDArray[np.int64] = np.zeros((SLOTS + 1, 8), np.int64)
        self._capacity = 0

    @classmethod
    def create(cls) -> Ring:
        """Make an empty ring; the writer gives it its size with `allocate`."""
        return cls(os.memfd_create("emogaze-frames"))

    @property
    def allocated(self) -> bool:
        return self._map is not None

    def allocate(self, n_bytes: int) -> None:
        """Give each slot room for pictures of `n_bytes` (the writer, once)."""
        size = -(-n_bytes // _PAGE) * _PAGE
        os.ftruncate(self.fd, _PAGE + SLOTS * size)
        self._attach()

    def write(self, image: Image, frame_id: int, t_ns: int, changed_ns: int) -> bool:
        """Publish a picture. False if it is larger than a slot."""
        if self._map is None or image.nbytes > self._capacity:
            return False
        newest = int(self._heads[_INDEX, 0])  # counted from 1: 0, as fresh memory reads, is none
        for slot in range(SLOTS):
            if slot + 1 == newest or not self._lock(slot, wait=False):
                continue
            try:
                height, width = image.shape[:2]
                self._heads[slot, :5] = frame_id, t_ns, changed_ns, height, width
                self._pixels(slot, height, width)[...] = image
            finally:
                self._unlock(slot)
            with self._locked(_INDEX):
                self._heads[_INDEX, 0] = slot + 1
            return True
        return False

    def newest(self, after_id: int) -> Picture | None:
        """Copy out the newest picture if its id is above `after_id`."""
        if self._map is None:
            self._attach()
            if self._map is None:
                return None
        with self._locked(_INDEX):
            slot = int(self._heads[_INDEX, 0]) - 1
            if slot < 0 or int(self._heads[slot, 0]) <= after_id:
                return None
            self._lock(slot, wait=True)  # the writer stays away from the newest slot: no wait
        try:
            frame_id, t_ns, changed_ns, height, width = (int(v) for v in self._heads[slot, :5])
            return Picture(frame_id, t_ns, changed_ns, self._pixels(slot, height, width).copy())
        finally:
            self._unlock(slot)

    def close(self) -> None:
        """Unmap and close this end. May be called twice."""
        if self._map is not None:
            self._heads = np.zeros((SLOTS + 1, 8), np.int64)  # drop the view, or the map can't be closed
            self._map.close()
            self._map = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _attach(self) -> None:
        size = os.fstat(self.fd).st_size
        if size > _PAGE:
            self._map = mmap.mmap(self.fd, size)
            self._heads = np.frombuffer(self._map, np.int64, (SLOTS + 1) * 8).reshape(SLOTS + 1, 8)
            self._capacity = (size - _PAGE) // SLOTS

    def _pixels(self, slot: int, height: int, width: int) -> Image:
        assert self._map is not None
        n = height * width * 3
        return np.frombuffer(self._map, np.uint8, n, _PAGE + slot * self._capacity).reshape(height, width, 3)

    def _lock(self, number: int, *, wait: bool) -> bool:
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(self, number: int) -> None:
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, number)

    @contextmanager
    def _locked(self, number: int) -> Iterator[None]:
        self._lock(number, wait=True)
        try:
            yield
        finally:
            self._unlock(number)
