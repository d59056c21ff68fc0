"""Running an evaluation and writing what it found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from edge.files import plain, write_atomic
from host_tools.engine import Engine
from host_tools.evaluate import devices
from host_tools.evaluate.config import EvaluateConfig
from host_tools.evaluate.page import build
from host_tools.evaluate.results import collect
from host_tools.evaluate.run import Evaluation
from host_tools.evaluate.tables import all_tables


def run(config: EvaluateConfig, base: Path, out: Path, engine: Engine) -> dict[str, Any]:
    """Evaluate and write ``report.html``, ``results.json``, ``samples/*.csv``, ``tables/*.{csv,tex}`` into `out`."""
    import matplotlib

    matplotlib.use("Agg")
    devices.check(engine, config.models)
    state = Evaluation(config, base, out, engine)
    kept = state.engine.count_finished()
    if kept:
        print(
            f"evaluate: {state.engine.done_dir} holds {kept} finished batches, which are not done again",
            file=sys.stderr,
        )
    results: dict[str, Any] = plain(collect(state))
    write_atomic(out / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for table in all_tables(results):
        table.write(out / "tables")
    build(results, out).write(out / "report.html")
    if kept:
        print(f"evaluate: {state.engine.count_finished() - kept} further batches were done", file=sys.stderr)
    return results
