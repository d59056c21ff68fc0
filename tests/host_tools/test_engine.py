from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge.errors import ConfigError, DataError
from host_tools.engine import Engine, run
from tests.conftest import need


def make_scaler(context: dict[str, Any], device: str) -> Callable[[dict[str, Any]], Any]:
    """Multiply; leave a file behind for each call, so that a test can count them."""

    def work(job: dict[str, Any]) -> Any:
        if job["x"] < 0:
            raise DataError("x", "is negative", got=str(job["x"]))
        if folder := os.environ.get("CALLS_DIR"):
            (Path(folder) / f"{job['x']}-{os.getpid()}").touch()
        return {"y": context["factor"] * job["x"], "array": np.full((2, 1), job["x"], np.float32), "device": device}

    return work


JOBS = [{"x": i} for i in range(9)]
ENGINES = [Engine(), Engine(n_jobs=2, devices=("cpu:0", "cpu:1"))]


@pytest.mark.parametrize("engine", ENGINES, ids=["inline", "processes"])
def test_results_come_in_order_of_jobs(engine: Engine) -> None:
    results = list(run(JOBS, make_scaler, {"factor": 3}, engine=engine))
    assert [r["y"] for r in results] == [3 * i for i in range(9)]
    assert {r["device"] for r in results} <= set(engine.devices)


@pytest.mark.parametrize("engine", ENGINES, ids=["inline", "processes"])
def test_a_finished_job_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    calls = tmp_path / "calls"
    calls.mkdir()
    monkeypatch.setenv("CALLS_DIR", str(calls))
    engine = replace(engine, done_dir=tmp_path / "done")
    bad = [*JOBS[:4], {"x": -1}]
    with pytest.raises(DataError, match="x: is negative; got -1"):
        list(run(bad, make_scaler, {"factor": 2}, engine=engine))
    assert len(list(calls.iterdir())) == 4
    results = list(run(JOBS, make_scaler, {"factor": 2}, engine=engine))
    assert [r["y"] for r in results] == [2 * i for i in range(9)]
    assert results[3]["array"].dtype == np.float32
    assert results[3]["array"].tolist() == [[3], [3]]
    assert len(list(calls.iterdir())) == 9


def test_another_context_is_another_result(tmp_path: Path) -> None:
    for factor in (2, 5):
        (result,) = run([{"x": 1}], make_scaler, {"factor": factor}, engine=Engine(done_dir=tmp_path))
        assert result["y"] == factor


def test_each_device_has_a_job() -> None:
    assert Engine.of("local", 1, "cuda:0, cuda:1,") == Engine("local", 2, ("cuda:0", "cuda:1"))
    assert Engine.of("local", 3, "cpu").n_jobs == 3


def test_unknown_engine_is_named() -> None:
    with pytest.raises(ConfigError, match="there is no 'spark'"):
        Engine("spark")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # ray's own, at start and stop
def test_ray_gives_the_same(tmp_path: Path) -> None:
    ray = need("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": "."}})
    try:
        results = list(run(JOBS, make_scaler, {"factor": 3}, engine=Engine("ray", 2, done_dir=tmp_path)))
        assert [r["y"] for r in results] == [3 * i for i in range(9)]
        assert len(list(tmp_path.rglob("*.msgpack"))) == 9
    finally:
        ray.shutdown()
