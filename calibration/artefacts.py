"""Lower precisions of an artefact: made, measured against it, and written with the measurement and the verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from calibration import litert
from calibration.drift import Judge, passes
from calibration.int8 import SCHEMES, Quantised, Quantiser, open_content
from calibration.pictures import Pictures, crops
from calibration.reduced import reduce
from edge.backends.base import Model, classify_canary, open_artefact
from edge.config import ModelsConfig
from edge.manifest import Manifest
from edge.records import Image
from models.embedders import means
from models.recipes import write_artefact

Say = Callable[[str], None]


def int8(
    reference: Model, pictures: Pictures, picture_set: list[Image], *, method: str = "percentile", say: Say = print
) -> Iterator[Manifest]:
    """Quantise an embedder by each scheme, measure it on held-out pictures and write it beside the reference.

    Of the ever more careful models, the first that passes the gate is written; if none does, the last one is, marked
    ``gate: failed``, which the runtime refuses.

    Parameters
    ----------
    reference : Model
        The FP32 artefact.
    pictures : Pictures
        Split into calibration and judgement.
    picture_set : list of pictures
        What the artefact's means are taken over: the same as the reference's.
    """
    say(f"{reference.manifest.name}: calibrating on {len(pictures.calibration)} pictures")
    seen = crops(pictures.calibration)

    @cache
    def quantiser(careful: bool) -> Quantiser:
        return Quantiser(reference, seen, method=method, careful=careful)

    judge = Judge(reference, pictures.held, answers=pictures.answers)
    for scheme in SCHEMES:
        candidates = (found for careful in (False, True) for found in quantiser(careful).search(scheme))
        yield _first_that_passes(reference, candidates, judge, picture_set, say)


def _first_that_passes(
    reference: Model, candidates: Iterator[Quantised], judge: Judge, picture_set: list[Image], say: Say
) -> Manifest:
    for candidate in candidates:
        fields, report = _measure(reference.manifest, candidate, judge, picture_set)
        report |= {"layers_in_float": list(candidate.kept), "cosine_calibration": candidate.cosine}
        report["way"] = candidate.way
        say(_said(candidate.scheme.precision, report))
        if passes(report):
            break
    else:
        say(f"{candidate.scheme.precision} fails the gate")
    return _write(reference.manifest, candidate.scheme.precision, candidate.content, {**fields, "drift": report})


def reduced(
    reference: Model, precision: str, pictures: Pictures, picture_set: list[Image], *, say: Say = print
) -> Manifest:
    """Write an FP16 or BF16 artefact of an embedder, measured as INT8 is."""
    for candidate in reduce(reference, precision, pictures, picture_set):
        say(_said(precision, candidate[1]["drift"]))
    return _write(reference.manifest, precision, *candidate)


def tflite(
    reference: Model,
    architecture: str,
    weights: Path,
    pictures: Pictures,
    picture_set: list[Image],
    *,
    say: Say = print,
) -> Manifest:
    """Write the INT8 TFLite artefact of one of torchvision's networks, measured against its FP32 ONNX artefact."""
    judge = Judge(reference, pictures.held, answers=pictures.answers)
    for content, ports, kept in litert.convert(reference.manifest, architecture, weights, crops(pictures.calibration)):
        described = msgspec.structs.replace(reference.manifest, file="model.tflite", **ports)
        with open_content(described, content, "int8", backend="tflite") as model:
            fields = ports | means(model, picture_set)
            model.manifest = msgspec.structs.replace(model.manifest, **fields)
            report = judge.measure(model) | {"layers_in_float": list(kept), "way": "litert"}
        say(_said("int8", report))
        if passes(report):
            break
    return _write(reference.manifest, "int8", content, {**fields, "drift": report}, ".tflite")


def _said(precision: str, report: dict[str, Any]) -> str:
    return (
        f"{precision}, {len(report['layers_in_float'])} layers in float: median |dFCC| {report['dfcc_median']:.4f}, "
        f"p95 {report['dfcc_p95']:.4f}, Spearman {report['spearman']:.4f}"
    )


def _measure(
    manifest: Manifest, candidate: Quantised, judge: Judge, picture_set: list[Image]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the candidate's own means, and its drift measured with them."""
    with open_content(manifest, candidate.content, candidate.scheme.precision) as model:
        fields = means(model, picture_set)
        model.manifest = msgspec.structs.replace(model.manifest, **fields)
        return fields, judge.measure(model)


def _write(
    reference: Manifest, precision: str, content: bytes, fields: dict[str, Any], suffix: str = ".onnx"
) -> Manifest:
    name = f"{reference.name.removesuffix('-fp32')}-{precision}"
    manifest = msgspec.structs.replace(
        reference,
        folder=reference.folder.parent / name,
        name=name,
        precision=precision,
        file=f"{name}{suffix}",
        sha256=hashlib.sha256(content).hexdigest(),
        reference=reference.name,
        gate="passed" if passes(fields["drift"]) else "failed",
        canary=None,
        separation={},
        **fields,
    )
    beside = [file for file in reference.folder.iterdir() if file.name not in (reference.file, "model.json")]
    files = {manifest.file: content, **{file.name: file.read_bytes() for file in beside}}
    write_artefact(manifest, files)
    return _with_canary(reference, manifest, files)


def _with_canary(reference: Manifest, manifest: Manifest, files: dict[str, bytes]) -> Manifest:
    """Keep the reference's canary if the new artefact still sees the same class in it, at its own probability."""
    if reference.canary is None or all(spec.name != reference.canary.output for spec in manifest.outputs):
        return manifest
    model = open_artefact(manifest, ModelsConfig(force=(manifest.name,)))
    top1, probability = classify_canary(model, reference.canary)
    model.close()
    if top1 != reference.canary.top1:
        return manifest
    canary = msgspec.structs.replace(reference.canary, probability=round(probability, 4))
    manifest = msgspec.structs.replace(manifest, canary=canary)
    write_artefact(manifest, files)
    return manifest
