"""`emogaze env`: build the cached environment that fixations are compared with, and say what one holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.commands.base import Json, Overrides, SettingsFile, counted, emit_json, progress

if TYPE_CHECKING:
    from edge.config import Config
    from edge.records import Image

_SOURCES = "Pictures, folders of pictures, or clips. Not what is to be scored: a match with itself makes FCC 1."


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Build and inspect the cached environment.", no_args_is_help=True)
    group.command("build")(build)
    group.command("inspect")(inspect)
    app.add_typer(group, name="env")


def build(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help=_SOURCES)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    regions: Annotated[Path | None, typer.Option(help="TOML file with named regions.")] = None,
    other: Annotated[
        str,
        typer.Option(
            help="Pictures or clip of another environment, for the retrieved AUC; default: the model's canary picture."
        ),
    ] = "",
    start: Annotated[float, typer.Option(min=0, help="Skip a clip's first seconds.")] = 0.0,
    end: Annotated[float, typer.Option(min=0, help="Stop a clip here; 0 = at its end.")] = 0.0,
    every: Annotated[float, typer.Option(min=0, help="Seconds between a clip's views.")] = 1.0,
    keep_views: Annotated[bool, typer.Option(help="Keep the views, every face covered, for reports.")] = False,
    config: SettingsFile = None,
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Embed tiles of reference views at several scales and store them with their mean, index and separation.

    With a ladder (governor.ladder) one cache is written for every artefact on it.
    """
    from edge import environment, environment_build
    from edge.backends.base import open_model
    from edge.config import load
    from edge.features import Embedder
    from edge.ladder import embedders

    settings = load(config, set_ or [])
    named = environment_build.read_regions(regions) if regions else None

    cover = _coverer(settings) if keep_views else None

    def caches() -> Iterator[environment.EnvironmentCache]:
        for models in embedders(settings):
            model = open_model(models.embedder, models)
            read = (environment_build.read_views(s, start_s=start, end_s=end, every_s=every) for s in sources)
            plain = chain.from_iterable(read)
            views = environment_build.keep_covered(plain, cover) if cover else plain
            others = environment_build.read_views(other) if other else environment_build.canary_view(model.manifest)
            shown = progress(views, f"{models.embedder}: views")
            embedder = Embedder(model, settings.score)
            yield environment_build.build(embedder, shown, settings.score, regions=named, others=others)
            model.close()

    infos = environment.store(output, caches())
    options = {"sources": sources, "output": str(output), "start": start, "end": end, "every": every, "other": other}
    options |= {"regions": str(regions or ""), "keep_views": keep_views}
    _print(infos, options, json)


def inspect(
    folder: Annotated[Path, typer.Argument(help="Folder written by `env build`.")],
    model: Annotated[str, typer.Option(help="The artefact to show; default: the configured one, else the first.")] = "",
    json: Json = False,
) -> None:
    """Print what a cache holds, after checking its files against their hashes."""
    from edge import environment
    from edge.config import ModelsConfig
    from edge.errors import CacheError

    caches = environment.list_caches(folder)
    if not caches:
        raise CacheError(str(folder), "is no environment cache", fix="write one with `emogaze env build`")
    wanted = model or ModelsConfig().embedder
    chosen = [info for info in caches if info.embedder == wanted]
    if model and not chosen:
        have = ", ".join(info.embedder for info in caches)
        raise CacheError(str(folder), f"has no cache of {model}", got=have)
    first = chosen or caches[:1]
    rest = [info for info in caches if info is not first[0]]
    _print([*first, *rest], {"folder": str(folder), "model": model}, json)


def _coverer(settings: Config) -> Callable[[Image], Image]:
    """Return what covers every face of a picture."""
    from edge.records import Frame
    from edge.redaction import Detectors, cover_still

    detectors = Detectors.open(settings.models)
    return lambda image: cover_still(Frame(0, 0, image, "view"), detectors, settings.redact).image


def describe(info: Any) -> dict[str, Any]:
    """Return what is printed of one cache."""
    keys = (
        "embedder_id",
        "model_sha256",
        "precision",
        "embedding",
        "window",
        "n_entries",
        "n_views",
        "dim_local",
        "dim_global",
    )
    return {key: getattr(info, key) for key in keys} | {"regions": info.regions, "separation": info.separation}


def _print(infos: list[Any], options: dict[str, Any], json: bool) -> None:
    if json:
        others = [describe(info) for info in infos[1:]]
        emit_json("env", options, {**describe(infos[0]), "other_artefacts": others})
        return
    for info in infos:
        print("\n".join(_lines(info)))


def _lines(info: Any) -> list[str]:
    """Return one cache in words: what is in it, and whether the score can discriminate there."""
    told, regions = info.separation, ", ".join(info.regions) or "none"
    pairs = f"{told['n_matched']} and {told['n_mismatched']} pairs"
    cosines = f"mean cosines {told['mean_matched']:.2f} and {told['mean_mismatched']:.2f}"
    return [
        f"{info.embedder_id} ({info.precision}): {info.n_entries} windows of {counted(info.n_views, 'view')}",
        f"  embedding {info.embedding}, window {info.window}, regions: {regions}",
        f"  matched against mismatched windows: AUC {told['auc']:.3f} (0.5 is chance), {cosines}; {pairs}",
        f"  best matches against another environment's: AUC {told['auc_retrieved']:.3f} ({told['retrieved_against']})",
    ]
