"""Models on the devices that `--devices` names."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from edge.backends.base import Model, open_model
from edge.config import ModelsConfig
from edge.errors import BackendError, ConfigError
from host_tools.engine import Engine, Job, Work, run


def open_on(device: str, artefact: str, models: ModelsConfig) -> Model:
    """Load an artefact on a device: ``cpu``, ``cuda:1``, ... .

    Each worker is a process of its own, so that it may see its own device alone.

    Raises
    ------
    BackendError
        If the model doesn't run on that device here.
    """
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return open_model(artefact, models)
    os.environ["CUDA_VISIBLE_DEVICES"] = number or "0"
    try:
        return open_model(artefact, msgspec.structs.replace(models, accelerator=kind, strict=True))
    except (BackendError, ConfigError) as error:
        fix = "`emogaze doctor` lists what this machine has; without --devices it is the CPU"
        expected = f"; expected {error.expected}" if error.expected else ""
        raise BackendError(f"--devices {device}", f"can't be used here: {error.problem}{expected}", fix=fix) from None


def check(engine: Engine, models: ModelsConfig) -> None:
    """Try the embedder on each device of this machine, so that a wrong one is told before the long work.

    Raises
    ------
    BackendError
        If the model doesn't run on one of them.
    """
    if engine.name != "local":
        return
    context = {"_models": msgspec.to_builtins(models)}
    for device in sorted(set(engine.devices) - {"cpu"}):
        # Two jobs make it a process of its own: here the first device would be the only one to be seen.
        list(run([{}], make_opener, context, engine=Engine(n_jobs=2, devices=(device,))))


def make_opener(context: dict[str, Any], device: str) -> Work:
    """Return what does nothing, once the embedder was loaded (a worker of `host_tools.engine`)."""
    models = msgspec.convert(context["_models"], ModelsConfig)
    open_on(device, models.embedder, models).close()
    return _nothing


def _nothing(job: Job) -> None:
    return None
