"""Imports run one way (the rule of the house), and `import edge` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: From the bottom up. A module may import what stands in its own row or in one before it; `live.x` is one of a folder.
LAYERS = [
    ["records", "errors", "clock", "files", "labels", "processes", "stopping", "__init__"],
    ["config_text", "config_files"],
    ["config", "ladder", "manifest", "plugins", "profiling", "preprocess"],
    ["events", "keys", "signatures", "session", "capture", "gaze", "backends"],
    [
        *("faces", "tracking", "recall", "cuts", "emotion", "features", "environment", "fcc", "attention"),
        *("embedding", "separation", "environment_build", "adaptive"),
        *("governor", "telemetry", "privacy", "sinks", "consent", "exports", "export_rows", "wire", "dp", "curve"),
        *("live.health", "live.monitor", "live.notify", "live.logs", "live.control", "live.remote", "live.queued_sink"),
        "output_file",
    ],
    ["pipeline", "stages", "redaction", "audit", "metadata", "tune", "model_check", "outputs", "summary"],
    ["app"],
    ["live.supervisor", "live.redact_worker", "live.aux_feed", "live.watch"],
    ["live"],
    ["commands", "cli"],
]
FOLDERS = ["edge", "models", "calibration", "benchmarks", "host_tools"]


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


RANK = {name: row for row, names in enumerate(LAYERS) for name in names}


def room(parts: list[str]) -> str:
    """Name the row's entry for a module inside `edge`: itself in its folder, or the folder."""
    inner = ".".join(parts[:2])
    return inner if inner in RANK else [*parts, "__init__"][0]


@pytest.mark.parametrize("path", sorted((ROOT / "edge").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_edge_imports_downward(path: Path) -> None:
    own = room(list(path.relative_to(ROOT / "edge").with_suffix("").parts))
    assert own in RANK, f"{own} stands in no layer: give it one in this test"
    for module in imported_modules(path):
        top = module.split(".")[0]
        assert top == "edge" or top not in FOLDERS, f"{path} imports {module}"
        target = room(module.split(".")[1:])
        if top == "edge" and target in RANK:
            assert RANK[target] <= RANK[own], f"{path} imports upward: {module}"


@pytest.mark.parametrize(("one", "other"), [("host_tools", "benchmarks"), ("benchmarks", "host_tools")])
def test_host_tools_and_benchmarks_do_not_meet(one: str, other: str) -> None:
    for path in (ROOT / one).rglob("*.py"):
        assert not any(m.split(".")[0] == other for m in imported_modules(path)), path


def test_import_edge_needs_numpy_alone() -> None:
    code = (
        "import sys, edge, edge.records, edge.errors, edge.clock\n"
        "heavy = {'cv2', 'faiss', 'msgspec', 'zmq', 'pylsl', 'onnxruntime', 'typer', 'rich', 'cryptography'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
