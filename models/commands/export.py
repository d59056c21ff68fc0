"""`python -m models export`: a user's own weights as an artefact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import ModelsDir

_SOURCE = "An architecture (with --weights), an ONNX file (with --features), or multiscale_resnet (needs [export])."


def add(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    what: Annotated[str, typer.Argument(help=_SOURCE)],
    name: Annotated[str, typer.Option(help="Name of the artefact; ends in -fp32.")],
    weights: Annotated[
        Path | None, typer.Option(help="PyTorch state dict; without one the weights are seeded.")
    ] = None,
    features: Annotated[str, typer.Option(help="ONNX: the output that is the embedding or its map.")] = "",
    mean: Annotated[str, typer.Option(help="ONNX: mean per channel, of pixels 0..255.")] = "123.675,116.28,103.53",
    scale: Annotated[str, typer.Option(help="ONNX: scale per channel.")] = "0.017125,0.017507,0.017429",
    layout: Annotated[str, typer.Option(help="ONNX: NCHW or NHWC.")] = "NCHW",
    colour: Annotated[str, typer.Option(help="ONNX: RGB or BGR.")] = "RGB",
    source: Annotated[str, typer.Option(help="Where the weights come from.")] = "own",
    licence: Annotated[str, typer.Option(help="Their licence.")] = "unknown",
    directory: ModelsDir = "",
) -> None:
    """Write an FP32 embedder from a state dict, an ONNX file or a PyTorch definition, with its means."""
    from edge.manifest import TensorSpec, models_dir
    from models.archives import Store
    from models.embedders import picture_set
    from models.export import Origin, add_means, from_onnx, from_weights

    if layout not in ("NCHW", "NHWC") or colour not in ("RGB", "BGR"):
        raise typer.BadParameter(f"{layout} {colour}: expected NCHW or NHWC, and RGB or BGR")
    target = models_dir(directory)
    origin = Origin(source, licence)
    if what.endswith(".onnx"):
        picture = TensorSpec(
            name="image",
            shape=(),
            layout=layout,  # type: ignore[arg-type]
            colour=colour,  # type: ignore[arg-type]
            mean=_numbers("--mean", mean),
            scale=_numbers("--scale", scale),
        )
        made = from_onnx(Path(what), name, origin, target, picture=picture, features=features)
    elif what == "multiscale_resnet":
        from models.definitions.export import export_multiscale

        made = export_multiscale(weights, name, origin, target)
    elif weights is None:
        raise typer.BadParameter("an architecture needs --weights; `models fetch seeded` makes seeded ones")
    else:
        made = from_weights(what, weights, name, origin, target)
    made = add_means(made, picture_set(Store(target / ".archives")))
    print(f"{made.name}: {made.path}")


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{option} {text}: expected numbers such as 127.5,127.5,127.5") from None
