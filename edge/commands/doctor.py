"""`emogaze doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from edge.commands.base import Json, emit_json


@dataclass(frozen=True, slots=True)
class Component:
    """One thing that the runtime can use, and whether it is here."""

    name: str
    ok: bool
    version: str
    needed_for: str
    how: str


#: distribution, module, what it is needed for, extra that brings it ("" = base install)
PACKAGES = [
    ("numpy", "numpy", "everything", ""),
    ("opencv-python-headless", "cv2", "pictures", ""),
    ("faiss-cpu", "faiss", "environment cache", ""),
    ("msgspec", "msgspec", "settings", ""),
    ("pyzmq", "zmq", "publishing", ""),
    ("cryptography", "cryptography", "keys and signatures", ""),
    ("prometheus-client", "prometheus_client", "metrics", ""),
    ("onnxruntime", "onnxruntime", "inference on CPU", "cpu"),
    ("onnxruntime-gpu", "onnxruntime", "inference on NVIDIA GPUs", "gpu"),
    ("openvino", "openvino", "inference on Intel CPUs", "openvino"),
    ("tensorrt", "tensorrt", "inference with TensorRT", "tensorrt"),
    ("pycuda", "pycuda", "device memory for TensorRT", "tensorrt"),
    ("av", "av", "MP4 output", "video"),
    ("pyrage", "pyrage", "encrypted recording", "record"),
    ("mcap", "mcap", "encrypted recording", "record"),
    ("opendp", "opendp", "differential privacy", "privacy"),
]


def add(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(json: Json = False) -> None:
    """Say what this machine has, what is missing and how to get it."""
    components = examine()
    if json:
        emit_json("doctor", {}, {"components": [asdict(c) for c in components]})
        return
    width = max(len(c.name) for c in components)
    for c in components:
        state = "ok     " if c.ok else "missing"
        print(f"{state} {c.name:<{width}}  {c.version or c.needed_for}{'' if c.ok else f' -> {c.how}'}")


def examine() -> list[Component]:
    """Return every component, checked in turn."""
    found = [
        Component(
            "python", sys.version_info >= (3, 10), platform.python_version(), "everything", "install Python 3.10+"
        )
    ]
    found += [_package(*entry) for entry in PACKAGES]
    checks: list[Callable[[], Component]] = [
        _litert,
        _runtimes_apart,
        _liblsl,
        _models,
        _cuda,
        _cameras,
        _gstreamer,
        _battery,
        _swap,
        _keys,
    ]
    return found + [check() for check in checks]


def _package(distribution: str, module: str, needed_for: str, extra: str) -> Component:
    from importlib import metadata

    how = f"pip install 'emogaze-edge[{extra}]'" if extra else "reinstall emogaze-edge"
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return Component(distribution, False, "", needed_for, how)
    if importlib.util.find_spec(module) is None:
        return Component(distribution, False, version, needed_for, f"its module {module} is gone: reinstall it")
    return Component(distribution, True, version, needed_for, how)


def _litert() -> Component:
    needed_for = "inference of .tflite files"
    litert = _package("ai-edge-litert", "ai_edge_litert", needed_for, "litert")
    before = _package("tflite-runtime", "tflite_runtime", needed_for, "legacy-tflite")
    return before if before.ok and not litert.ok else litert


def _runtimes_apart() -> Component:
    from importlib import metadata

    both = {d.metadata["Name"] for d in metadata.distributions()} >= {"onnxruntime", "onnxruntime-gpu"}
    how = "both are installed and overwrite each other: uninstall both, then install [cpu] or [gpu]"
    return Component("one onnxruntime", not both, "", "a predictable inference runtime", how)


def _liblsl() -> Component:
    how = "x86-64: reinstall pylsl; aarch64: install liblsl from its releases or Debian and set PYLSL_LIB to its path"
    try:
        number = importlib.import_module("pylsl").library_version()
    except (ImportError, RuntimeError, OSError):
        return Component("liblsl", False, "", "gaze and other streams over LSL", how)
    # Whoever is on its network can read and forge what LSL carries: hence off by default, and this machine alone.
    trust = "not encrypted, not authenticated: keep it on this machine or a network of its own"
    version = f"{number // 100}.{number % 100}; {trust}"
    return Component("liblsl", True, version, "gaze and other streams over LSL", how)


def _models() -> Component:
    from edge.manifest import models_dir

    folder = models_dir("")
    names = sorted(path.parent.name for path in folder.glob("*/model.json"))
    how = f"`python -m models fetch default` on a workstation, then `emogaze model add FOLDER` (looked in {folder})"
    return Component("models", bool(names), ", ".join(names), "scores, redaction, emotion", how)


def _cuda() -> Component:
    driver = Path("/proc/driver/nvidia/version")
    jetson = Path("/etc/nv_tegra_release")
    version = next((p.read_text(errors="replace").splitlines()[0] for p in (driver, jetson) if p.is_file()), "")
    return Component(
        "nvidia driver", bool(version), version, "TensorRT and CUDA", "install the vendor's driver or JetPack"
    )


def _cameras() -> Component:
    devices = ", ".join(sorted(str(p) for p in Path("/dev").glob("video*")))
    return Component(
        "cameras", bool(devices), devices, "live pictures from USB or V4L2", "plug one in; check group `video`"
    )


def _gstreamer() -> Component:
    path = shutil.which("gst-launch-1.0") or ""
    return Component(
        "gst-launch-1.0", bool(path), path, "csi:// and GStreamer sources", "apt install gstreamer1.0-tools"
    )


def _battery() -> Component:
    supplies = [p.parent.name for p in Path("/sys/class/power_supply").glob("*/capacity")]
    how = "none is reported: the governor then treats the battery as unknown, never as empty"
    return Component("battery", bool(supplies), ", ".join(supplies), "adaptive precision", how)


def _keys() -> Component:
    from edge.errors import KeyFileError
    from edge.keys import KeyRing, keys_dir

    purpose = "encrypted recording, publishing beyond this machine"
    try:
        infos = list(KeyRing(keys_dir()).list())
    except KeyFileError as error:
        return Component("keys", False, "", purpose, str(error))
    fine = ", ".join(f"{i.use} {i.name or i.fingerprint}" for i in infos if not i.problem)
    problems = "; ".join(i.problem for i in infos if i.problem)
    return Component("keys", not problems, fine, purpose, problems)


def _swap() -> Component:
    lines = Path("/proc/swaps").read_text().splitlines()[1:] if Path("/proc/swaps").is_file() else []
    plain = [line.split()[0] for line in lines if "zram" not in line and "/dm-" not in line]
    where = ", ".join(plain) or "none"
    how = f"swap that may not be encrypted ({where}) can keep pictures in the clear: swapoff, or encrypt it"
    return Component("no plain swap", not plain, "", "privacy", how)
