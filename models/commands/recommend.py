"""`python -m models recommend`: which embedder for this device."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from edge.commands.base import Json, ModelsDir, emit_json, progress


def add(app: typer.Typer) -> None:
    app.command("recommend")(recommend)


def recommend(
    realtime: Annotated[bool, typer.Option("--realtime", help="Only the order for speed.")] = False,
    quality: Annotated[bool, typer.Option("--quality", help="Only the order for quality.")] = False,
    directory: ModelsDir = "",
    json: Json = False,
) -> None:
    """Print latency and separation of each FP32 embedder here, the published orders, and where they disagree."""
    from edge.config import ModelsConfig
    from edge.manifest import list_artefacts, models_dir
    from edge.tune import Plan, measure_apart
    from models import recommend as room
    from models.archives import Store
    from models.embedders import PICTURES, picture

    folder = models_dir(directory)
    found = [m for m in list_artefacts(folder) if m.role == "embedder" and m.precision == "fp32"]
    store = Store(folder / ".archives")
    pictures = {name: picture(store, name) for name in PICTURES}

    def latency(name: str, backend: str) -> float:
        done = measure_apart(name, ModelsConfig(dir=directory, backend=backend), Plan(20, 0.0))
        return done.warm.get("p50", float("nan"))

    rows = room.measure(list(progress(found, "Measuring")), pictures, folder / ".separation.json", latency)
    rows.sort(key=lambda row: row.latency_ms)
    aims = [aim for aim, asked in (("realtime", realtime), ("quality", quality)) if asked] or list(room.ORDERS)
    default = room.device_default(rows)
    if json:
        orders = {
            aim: {"order": room.ORDERS[aim], "disagreements": room.disagreements(room.ORDERS[aim], rows, aim)}
            for aim in aims
        }
        body = {"embedders": [asdict(r) for r in rows], "orders": orders, "default": default.name if default else None}
        emit_json("recommend", {"realtime": realtime, "quality": quality}, body)
        return
    for row in rows:
        quality_text = f"AUC {row.auc:.3f} (smallest {row.auc_smallest:.3f}), gap {row.gap_cos:.2f}"
        print(f"{row.name:34} {row.latency_ms:8.1f} ms  {quality_text if row.trained else 'seeded: no quality'}")
    for aim in aims:
        print(f"{aim}: usually {' > '.join(room.ORDERS[aim])}; {room.verdict(room.ORDERS[aim], rows, aim)}")
    if default:
        print(f"default here: {default.name}, the fastest within {room.WITHIN} of the best separation")
