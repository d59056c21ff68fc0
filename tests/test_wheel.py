"""The wheel that is built holds the runtime, all of it and nothing else, and runs where the checkout isn't."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        if name.startswith(("edge/", "models/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_only_the_runtime_is_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"edge"}
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "edge").rglob("*.py")}
    assert modules <= set(names)
    assert {"edge/py.typed", "edge/presets/clinical.toml"} <= set(names)


def test_it_runs_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import edge.cli; edge.cli.main()"

    def emogaze(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, str(site), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert json.loads(emogaze("--version", "--json"))["schema"] == "emogaze.version"
    assert 'preset = "clinical"' in emogaze("config", "show", "--preset", "clinical")
    names = {c["name"] for c in json.loads(emogaze("doctor", "--json"))["components"]}
    assert {"python", "onnxruntime", "liblsl", "models", "nvidia driver"} <= names
