"""Whether an artefact does what its `model.json` says, on the runtimes that are here."""

from __future__ import annotations

from typing import Any

import numpy as np

from edge import plugins
from edge.backends.base import PACKAGE, Model, new_batch, open_artefact, why_not
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.manifest import Manifest

_FREE_SIDE = 256  # pixels; what a detector of any size is tried at


def verify(manifest: Manifest, models: ModelsConfig) -> list[dict[str, Any]]:
    """Open an artefact on every runtime here and compare what it gives with what its description promises.

    Returns
    -------
    list of dict
        Per runtime: ``backend``, ``runs``, ``active``, and ``reason`` where it doesn't run.

    Raises
    ------
    ModelError
        It runs nowhere, or gives another shape or dtype than promised.
    """
    rows = []
    for name in plugins.names(PACKAGE):
        reason = why_not(plugins.load(PACKAGE, name, setting="models.backend"), manifest)
        active = "" if reason else _try(open_artefact(manifest, models, backend=name))
        rows.append({"backend": name, "runs": not reason, "active": active, "reason": reason})
    if not any(row["runs"] for row in rows):
        reasons = "; ".join(f"{row['backend']}: {row['reason']}" for row in rows)
        raise ModelError(f"model {manifest.name}", f"runs on nothing here ({reasons})")
    return rows


def _try(model: Model) -> str:
    feeds = {}
    for spec in model.manifest.inputs:
        batch = new_batch(spec, 1, spec.size(_FREE_SIDE))
        batch[:] = np.random.default_rng(0).uniform(-1, 1, batch.shape)
        feeds[spec.name] = batch
    results = model.infer(feeds)
    model.close()
    for spec in model.manifest.outputs:
        got = results[spec.name]
        fits = got.ndim == len(spec.shape) and all(a in (-1, b) for a, b in zip(spec.shape, got.shape, strict=True))
        if not fits or got.dtype != spec.dtype:
            raise ModelError(
                f"model {model.manifest.name}",
                f"output {spec.name} isn't as described",
                expected=f"{spec.dtype} {spec.shape}",
                got=f"{got.dtype} {got.shape}",
            )
    return model.active
