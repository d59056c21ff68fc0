"""Lower precisions of an artefact: made, measured against it, and written with the measurement and the verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from calibration.drift import Judge, passes
from calibration.int8 import SCHEMES, Quantised, Quantiser, Scheme, open_content, quiet
from calibration.pictures import Pictures, crops
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
    quantiser = Quantiser(reference, crops(pictures.calibration), method=method)
    judge = Judge(reference, pictures.held, answers=pictures.answers)
    for scheme in SCHEMES:
        yield _first_that_passes(reference, quantiser, judge, scheme, picture_set, say)


def _first_that_passes(
    reference: Model, quantiser: Quantiser, judge: Judge, scheme: Scheme, picture_set: list[Image], say: Say
) -> Manifest:
    report: dict[str, Any] = {}
    for candidate in quantiser.search(scheme):
        fields, report = _measure(reference.manifest, candidate, judge, picture_set)
        say(
            f"{scheme.precision}, {len(candidate.kept)} layers in float: median |dFCC| {report['dfcc_median']:.4f}, "
            f"p95 {report['dfcc_p95']:.4f}, Spearman {report['spearman']:.4f}"
        )
        if passes(report):
            break
    else:
        say(f"{scheme.precision} fails the gate")
    report |= {"layers_in_float": list(candidate.kept), "cosine_calibration": candidate.cosine}
    return _write(reference.manifest, scheme.precision, candidate.content, {**fields, "drift": report})


def reduced(
    reference: Model, precision: str, pictures: Pictures, picture_set: list[Image], *, say: Say = print
) -> Manifest:
    """Write an FP16 or BF16 artefact of an embedder, measured as INT8 is.

    FP16 is another file; BF16 is the same file, computed in BF16 by a runtime that can.
    """
    manifest = reference.manifest
    content = manifest.path.read_bytes() if precision == "bf16" else to_fp16(manifest)
    backend = "openvino" if precision == "bf16" else "onnxruntime"
    everything = {**pictures.calibration, **pictures.held}
    with open_content(manifest, content, precision, backend=backend) as model:
        fields = means(model, picture_set)
        model.manifest = msgspec.structs.replace(model.manifest, **fields)
        report = Judge(reference, everything, answers=pictures.answers).measure(model)
    say(f"{precision}: median |dFCC| {report['dfcc_median']:.5f}, p95 {report['dfcc_p95']:.5f}")
    return _write(manifest, precision, content, {**fields, "drift": report})


def to_fp16(manifest: Manifest) -> bytes:
    """Return an ONNX model with weights and arithmetic in FP16, and inputs and outputs as before."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        converted = convert_float_to_float16(onnx.load(manifest.path), keep_io_types=True)
    content: bytes = converted.SerializeToString()
    return content


def _measure(
    manifest: Manifest, candidate: Quantised, judge: Judge, picture_set: list[Image]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the candidate's own means, and its drift measured with them."""
    with open_content(manifest, candidate.content, candidate.scheme.precision) as model:
        fields = means(model, picture_set)
        model.manifest = msgspec.structs.replace(model.manifest, **fields)
        return fields, judge.measure(model)


def _write(reference: Manifest, precision: str, content: bytes, fields: dict[str, Any]) -> Manifest:
    name = f"{reference.name.removesuffix('-fp32')}-{precision}"
    manifest = msgspec.structs.replace(
        reference,
        folder=reference.folder.parent / name,
        name=name,
        precision=precision,
        file=f"{name}.onnx",
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
    if reference.canary is None:
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
