"""Runs many jobs on one machine or a cluster, and never runs a finished one again.

Jobs are plain values and are cut by the caller, so that their number doesn't depend on how many run at once; results
come back in the order of the jobs. So any sum over them is the same for any number of processes and either engine. A
result is stored under the hash of what it depends on (version, worker, context, job) as soon as it is there: after a
kill the same call goes on where it stopped. A key that begins with an underscore (where a file lies, whose content is
named by another key) is not part of the hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import edge
from edge.errors import ConfigError
from edge.files import write_atomic

Job = dict[str, Any]  #: plain values (JSON): everything that the result depends on, beside the context
Work = Callable[[Job], Any]
MakeWorker = Callable[[dict[str, Any], str], Work]  #: (context, device) -> what turns a job into a result

NAMES = ("local", "ray")
_ARRAY = 1  # code of a numpy array in stored results


@dataclass(frozen=True, slots=True)
class Engine:
    """Where jobs run: `local` processes or a `ray` cluster, how many at once, and the devices they are dealt to.

    Results are kept in `done_dir`; without it nothing is.
    """

    name: str = "local"
    n_jobs: int = 1
    devices: tuple[str, ...] = ("cpu",)
    done_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ConfigError("engine", f"there is no {self.name!r}", expected="one of " + ", ".join(NAMES))
        if self.n_jobs < 1 or not self.devices:
            raise ConfigError("engine", f"{self.n_jobs} jobs on {len(self.devices)} devices", expected="at least one")
        if unclear := [name for name in self.devices if not re.fullmatch(r"[a-z]+(:\d+)?", name)]:
            raise ConfigError("--devices", f"{unclear[0]!r} names no device", expected="cpu, cuda:0, ...")

    @classmethod
    def of(cls, name: str, n_jobs: int, devices: str) -> Engine:
        """Return the engine for devices that are named with commas between; each gets a job at least."""
        names = tuple(device.strip() for device in devices.split(",") if device.strip())
        return cls(name, max(n_jobs, len(names)), names)

    def count_finished(self) -> int:
        """Return how many results are kept, of whatever call."""
        return sum(1 for _ in self.done_dir.rglob("*.msgpack")) if self.done_dir else 0


def run(
    jobs: Iterable[Job], make_worker: MakeWorker, context: dict[str, Any], *, engine: Engine = Engine()
) -> Iterator[Any]:
    """Give the result of each job, in order.

    Parameters
    ----------
    jobs : iterable of dict
        Plain values; they are taken as they are needed, a few beyond those that run.
    make_worker : callable
        A function of a module: ``make_worker(context, device)`` is called once in each process (it loads the model) and
        returns the function that is called with each job. Results are plain values, bytes and numpy arrays.
    context : dict
        Plain values that hold for all jobs. A file that a result depends on belongs here by its content's hash.
    engine : Engine
        Where, and where results are kept.

    Raises
    ------
    Exception
        What a job raises; jobs that are finished by then stay finished.
    """
    call = _Call(make_worker, context, engine.done_dir)
    if engine.name == "ray":
        yield from _run_ray(jobs, call, engine)
    elif engine.n_jobs == 1:
        worker = _Worker(call, engine.devices[0])
        for job in jobs:
            yield worker(job)
    else:
        yield from _run_processes(jobs, call, engine)


@dataclass(frozen=True)
class _Call:
    make_worker: MakeWorker
    context: dict[str, Any]
    done_dir: Path | None

    def path(self, job: Job) -> Path | None:
        if self.done_dir is None:
            return None
        name = f"{self.make_worker.__module__}.{self.make_worker.__qualname__}"
        parts = [edge.__version__, name, _without_private(self.context), _without_private(job)]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(text.encode()).hexdigest()
        return self.done_dir / key[:2] / f"{key[2:]}.msgpack"

    def stored(self, job: Job) -> tuple[Any] | None:
        """Return the stored result in a tuple, or None if there is none yet."""
        path = self.path(job)
        return (_decode(path.read_bytes()),) if path and path.exists() else None

    def store(self, job: Job, result: Any) -> None:
        if path := self.path(job):
            write_atomic(path, _encode(result))


def _without_private(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if not key.startswith("_")}


class _Worker:
    """One process's share: makes the work at the first job that isn't stored, and stores each result at once."""

    def __init__(self, call: _Call, device: str) -> None:
        self._call, self._device = call, device
        self._work: Work | None = None

    def __call__(self, job: Job) -> Any:
        if stored := self._call.stored(job):
            return stored[0]
        if self._work is None:
            self._work = self._call.make_worker(self._call.context, self._device)
        result = self._work(job)
        self._call.store(job, result)
        return result


_worker: _Worker | None = None  # of this process, where it is one of a pool


def _start_process(call: _Call, devices: Any) -> None:
    global _worker  # noqa: PLW0603 (a pool's initialiser has no other place)
    _worker = _Worker(call, devices.get())


def _in_process(job: Job) -> Any:
    if _worker is None:
        raise RuntimeError("this process was not started by the pool")
    return _worker(job)


def _run_processes(jobs: Iterable[Job], call: _Call, engine: Engine) -> Iterator[Any]:
    from multiprocessing import get_context

    spawn = get_context("spawn")  # forking a process that runs inference threads can hang
    devices = spawn.Queue()
    for i in range(engine.n_jobs):
        devices.put(engine.devices[i % len(engine.devices)])
    pool = ProcessPoolExecutor(engine.n_jobs, spawn, initializer=_start_process, initargs=(call, devices))
    try:
        yield from _in_order(jobs, lambda job: pool.submit(_in_process, job).result, ahead=4 * engine.n_jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _run_ray(jobs: Iterable[Job], call: _Call, engine: Engine) -> Iterator[Any]:
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    gpus = 0 if engine.devices == ("cpu",) else 1
    remote: Any = ray.remote(num_cpus=1, num_gpus=gpus)(_RayWorker)
    # The driver stores: a node of the cluster need not see its disk.
    local = _Call(call.make_worker, call.context, None)
    actors = [remote.remote(local, engine.devices[i % len(engine.devices)]) for i in range(engine.n_jobs)]
    turn = 0

    def submit(job: Job) -> Callable[[], Any]:
        nonlocal turn
        if stored := call.stored(job):
            return lambda: stored[0]
        reference = actors[turn % len(actors)].work.remote(job)
        turn += 1

        def collect() -> Any:
            result = _decode(ray.get(reference))
            call.store(job, result)
            return result

        return collect

    try:
        yield from _in_order(jobs, submit, ahead=4 * engine.n_jobs)
    finally:
        for actor in actors:
            ray.kill(actor)


class _RayWorker:
    def __init__(self, call: _Call, device: str) -> None:
        self._worker = _Worker(call, device)

    def work(self, job: Job) -> bytes:
        return _encode(self._worker(job))


def _in_order(jobs: Iterable[Job], submit: Callable[[Job], Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """Keep at most `ahead` jobs submitted, and give their results in order."""
    waiting: deque[Callable[[], Any]] = deque()
    for job in jobs:
        waiting.append(submit(job))
        if len(waiting) >= ahead:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def _encode(result: Any) -> bytes:
    import msgspec
    import numpy as np

    def pack(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            head = json.dumps([value.dtype.str, list(value.shape)]).encode()
            return msgspec.msgpack.Ext(_ARRAY, head + b"\n" + np.ascontiguousarray(value).tobytes())
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"a result holds a {type(value).__name__}; expected plain values, bytes and numpy arrays")

    return msgspec.msgpack.encode(result, enc_hook=pack)


def _decode(content: bytes) -> Any:
    import msgspec
    import numpy as np

    def unpack(code: int, data: memoryview) -> Any:
        head, _, body = bytes(data).partition(b"\n")
        dtype, shape = json.loads(head)
        return np.frombuffer(body, dtype=np.dtype(dtype)).reshape(shape)

    return msgspec.msgpack.decode(content, ext_hook=unpack)
