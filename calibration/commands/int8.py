"""`python -m calibration int8`: quantise an embedder, with proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge.commands.base import Json, ModelsDir, emit_json

if TYPE_CHECKING:
    from edge.backends.base import Model
    from edge.records import Image


def add(app: typer.Typer) -> None:
    app.command("int8")(int8)
    app.command("reduced")(reduced)
    app.command("tflite")(tflite)


def int8(
    model: Annotated[str, typer.Argument(help="Name of an FP32 embedder, such as mobilenet_v2-fp32.")],
    images: Annotated[Path, typer.Option(help="Folder of real pictures; a third is held out for the judgement.")],
    held: Annotated[Path | None, typer.Option(help="Another folder for the judgement.")] = None,
    answers: Annotated[Path | None, typer.Option(help="Table of picture, true and pred, for cawF1.")] = None,
    labels: Annotated[str, typer.Option(help="Label set of --answers.")] = "",
    method: Annotated[str, typer.Option(help="percentile, minmax or entropy")] = "percentile",
    directory: ModelsDir = "",
    json: Json = False,
) -> None:
    """Write the U8S8 and the S8S8 artefact of a model, each with its drift and whether it passes the gate."""
    import sys

    from calibration import artefacts, pictures
    from calibration.answers import read_answers
    from calibration.int8 import METHODS
    from edge.errors import ConfigError

    if method not in METHODS:
        raise ConfigError("--method", f"there is no {method!r}", expected=" | ".join(METHODS))
    found = pictures.load(images, held, read_answers(answers, labels) if answers else None)
    reference, means_over = _reference(model, directory)

    def say(line: str) -> None:
        print(line, file=sys.stderr if json else sys.stdout, flush=True)

    made = list(artefacts.int8(reference, found, means_over, method=method, say=say))
    if json:
        options = {"model": model, "images": str(images), "held": str(held or ""), "answers": str(answers or "")}
        options |= {"method": method}
        emit_json("int8", options, {"artefacts": [{"name": m.name, "gate": m.gate, "drift": m.drift} for m in made]})
        return
    for manifest in made:
        print(f"{manifest.name}: gate {manifest.gate}, {manifest.path}")


def reduced(
    model: Annotated[str, typer.Argument(help="Name of an FP32 embedder, such as mobilenet_v2-fp32.")],
    precision: Annotated[str, typer.Option(help="fp16 or bf16")],
    images: Annotated[Path, typer.Option(help="Folder of real pictures to measure the drift on.")],
    directory: ModelsDir = "",
) -> None:
    """Write the FP16 or BF16 artefact of a model, with its drift."""
    from calibration import artefacts, pictures
    from edge.errors import ConfigError

    if precision not in ("fp16", "bf16"):
        raise ConfigError("--precision", f"there is no {precision!r} here", expected="fp16 | bf16")
    found = pictures.load(images)
    reference, means_over = _reference(model, directory)
    manifest = artefacts.reduced(reference, precision, found, means_over)
    print(f"{manifest.name}: gate {manifest.gate}, {manifest.path}")


def tflite(
    model: Annotated[str, typer.Argument(help="Name of the FP32 embedder, such as mobilenet_v2-fp32.")],
    weights: Annotated[Path, typer.Option(help="PyTorch state dict of the same network.")],
    images: Annotated[Path, typer.Option(help="Folder of real pictures; a third is held out for the judgement.")],
    architecture: Annotated[str, typer.Option(help="Its name in torchvision.models.")] = "mobilenet_v2",
    directory: ModelsDir = "",
) -> None:
    """Write the INT8 TFLite artefact of a model, with its drift; needs PyTorch and litert-torch."""
    from calibration import artefacts, pictures

    found = pictures.load(images)
    reference, means_over = _reference(model, directory)
    manifest = artefacts.tflite(reference, architecture, weights, found, means_over)
    print(f"{manifest.name}: gate {manifest.gate}, median |dFCC| {manifest.drift['dfcc_median']:.4f}, {manifest.path}")


def _reference(model: str, directory: str) -> tuple[Model, list[Image]]:
    """Return the FP32 model, and the pictures that an artefact's means are taken over."""
    from edge.backends.base import open_model
    from edge.config import ModelsConfig
    from edge.manifest import models_dir
    from models.archives import Store
    from models.embedders import picture_set

    reference = open_model(model, ModelsConfig(dir=directory, backend="onnxruntime"))
    return reference, picture_set(Store(models_dir(directory) / ".archives"))
