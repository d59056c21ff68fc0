"""The machine that a benchmark ran on: a figure without it means nothing."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

RUNTIMES = (
    "numpy",
    "opencv-python-headless",
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "ai-edge-litert",
    "faiss-cpu",
)


def describe() -> dict[str, object]:
    """Return processor, cores, memory, kernel, Python and the versions of what computes."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in RUNTIMES if _version(name)},
    }


def _processor() -> str:
    for path, key in (("/proc/device-tree/model", ""), ("/proc/cpuinfo", "model name")):
        file = Path(path)
        if file.is_file():
            lines = file.read_text(errors="replace").splitlines()
            found = [line.partition(":")[2].strip() for line in lines if line.startswith(key)] if key else lines
            if found:
                return found[0].strip("\0")
    return platform.processor()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
