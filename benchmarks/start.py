"""How long a device takes from nothing to all its networks open and warm: the first time, and every time after.

Each start is a process of its own. The first finds no compiled Python and no cache of an inference runtime (OpenVINO's
kernels, TensorRT's engines); those after it find what the first left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edge.manifest import models_dir

PARTS = ("python", "imports", "open", "warm")
_CHILD = """\
import time
born_ns = time.monotonic_ns()
import sys
from benchmarks.start import child
child(int(sys.argv[1]), born_ns, sys.argv[2:])
"""


def measure(folder: Path, overrides: Sequence[str], times: int) -> dict[str, Any]:
    """Start a device `1 + times` times in `folder`, an empty one, and return the seconds of each part.

    Returns
    -------
    dict
        ``machine``, ``models``; ``first`` and ``again`` (the medians of the later starts), each with ``python`` (the
        interpreter itself), ``imports``, ``open`` (the inference runtimes are imported, artefacts checked and opened),
        ``warm`` (each network runs on a picture) and ``total``; and ``samples``, the later starts one by one.
    """
    from benchmarks.machine import describe

    artefacts = folder / "models"
    artefacts.mkdir()
    for source in models_dir("").glob("[!.]*"):
        (artefacts / source.name).symlink_to(source.resolve())
    environment = {**os.environ, "EMOGAZE_MODELS": str(artefacts), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    first, *later = (_start(environment, overrides) for _ in range(1 + times))
    models = first["models"]
    samples = [{part: start[part] for part in (*PARTS, "total")} for start in (first, *later)]
    again = {part: float(np.median([sample[part] for sample in samples[1:]])) for part in samples[0]}
    return {"machine": describe(), "models": models, "first": samples[0], "again": again, "samples": samples[1:]}


def _start(environment: dict[str, str], overrides: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-c", _CHILD, str(time.monotonic_ns()), *overrides]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(start_ns: int, born_ns: int, overrides: Sequence[str]) -> None:
    """Open and warm what the settings name, and print how long each part took.

    `start_ns` is when the process was asked for, `born_ns` when it ran its first line.
    """
    marks = [start_ns, born_ns]
    import edge.app  # noqa: F401 - all that `emogaze run` imports
    from edge.config import load
    from edge.records import Frame
    from edge.stages import NetworkStages

    marks.append(time.monotonic_ns())
    stages = NetworkStages(load(None, overrides))
    marks.append(time.monotonic_ns())
    stages.warm(Frame(0, 0, np.zeros((720, 1280, 3), np.uint8), "start"))
    marks.append(time.monotonic_ns())
    parts = dict(zip(PARTS, (np.diff(marks) / 1e9).tolist(), strict=True))
    models = [f"{model.manifest.name} on {model.backend}" for model in stages.models]
    print(json.dumps({**parts, "total": (marks[-1] - start_ns) / 1e9, "models": models}))
