"""`emogaze redact`: cover the faces in stills, folders of stills and clips."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.commands.base import Json, Overrides, SettingsFile, as_overrides, counted, emit_json, progress

if TYPE_CHECKING:
    from edge.audit import Auditor
    from edge.config import Config
    from edge.redaction import Report


def add(app: typer.Typer) -> None:
    app.command("redact")(redact)


def redact(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A still, a folder of stills, or a clip.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File, or folder, to write.")],
    gaze: Annotated[str, typer.Option(help="Gaze recording of a clip: the face that is looked at stays clear.")] = "",
    mode: Annotated[str, typer.Option(help="outside-fixation, all or subject-only; default: the settings'.")] = "",
    cover: Annotated[str, typer.Option(help="blur, mosaic or solid; default: the settings'.")] = "",
    keep_audio: Annotated[bool, typer.Option("--keep-audio", help="Copy the sound, though a voice is known.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Check the result with a detector that redaction doesn't use.")
    ] = False,
    boxes: Annotated[
        Path | None, typer.Option(help="Drawn faces to check against: a CSV with image, x, y, w, h[, use].")
    ] = None,
    config: SettingsFile = None,
    set_: Overrides = None,
    json: Json = False,
) -> None:
    """Write a copy in which faces are covered. Metadata (EXIF, places, container tags) and sound stay behind."""
    from edge.capture.images import list_others
    from edge.config import load
    from edge.keys import harden_process

    harden_process()
    given = {"scene.source": str(source), "gaze.source": gaze, "redact.mode": mode, "redact.cover": cover}
    settings = load(config, [*(set_ or []), *as_overrides({key: text for key, text in given.items() if text})])
    if keep_audio:
        print("emogaze redact: the sound is kept, and a voice tells who someone is", file=sys.stderr)
    auditor = _auditor(settings, boxes) if audit or boxes else None
    reports, failed = _run(source, output, settings, auditor, keep_audio=keep_audio)
    skipped = list_others(source) if source.is_dir() else {}
    figures = auditor.result() if auditor else None
    if json:
        body = {**_body(reports), "failed": _lines(failed), "skipped": _lines(skipped), "audit": figures}
        emit_json("redact", _options(settings, keep_audio=keep_audio), body)
    else:
        _print_reports(reports)
        if figures:
            _print_audit(figures)
    for path, reason in skipped.items():
        print(f"emogaze redact: {path}: skipped: {reason}", file=sys.stderr)
    for problem in failed.values():
        print(f"emogaze redact: failed: {problem}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _lines(reasons: dict[str, str]) -> list[dict[str, str]]:
    return [{"source": path, "reason": reason} for path, reason in reasons.items()]


def _print_reports(reports: list[Report]) -> None:
    for report in reports:
        covered, withheld = report.faces_covered, report.frames_withheld
        pictures = f"{counted(len(report.frames), 'picture')}, {counted(covered, 'face')} covered"
        print(f"{report.output}: {pictures}, {counted(withheld, 'picture')} withheld")
        removed = f"left behind: {', '.join(report.removed)}" if report.removed else ""
        sound = {"dropped": "the sound was dropped", "kept": "the sound was kept"}.get(report.audio, "")
        for note in filter(None, [report.note, sound, removed, *report.withheld_reasons]):
            print(f"  {note}")


def _auditor(settings: Config, boxes: Path | None) -> Auditor:
    from edge.audit import Auditor, read_boxes

    return Auditor(settings.models, read_boxes(boxes) if boxes else None)


def _print_audit(figures: dict[str, Any]) -> None:
    print(f"audit by {figures['detector']} of {figures['pictures']} pictures:")
    for what, name in (("detected", "faces it finds"), ("drawn", "faces that were drawn")):
        count = figures[what]
        if count is None:
            continue
        print(f"  {name}: {count['covered']} of {count['n']} covered")
        for kind in ("by_size", "by_pose"):
            parts = [f"{key} {tally['covered']}/{tally['n']}" for key, tally in count[kind].items()]
            print(f"    {kind.replace('_', ' ')}: {', '.join(parts)}")
        for face in count["missed"]:
            print(f"    not covered: {face['picture']} picture {face['frame_id']}, box {face['box']}")
    still = figures["still_found"]
    print(f"  still found after covering: {still['covered']} covered ones, {still['uncovered']} uncovered ones")


def _run(
    source: Path, output: Path, settings: Config, auditor: Auditor | None, *, keep_audio: bool
) -> tuple[list[Report], dict[str, str]]:
    """Return what was done, and of a folder's pictures those that failed, with why."""
    from edge.capture.file import matches as is_clip
    from edge.errors import ConfigError
    from edge.redaction import Detectors, FixationTrack, plan, redact_clip

    pairs = plan(source, output)
    if is_clip(str(source)) and not source.is_dir():
        fixated = FixationTrack(settings.gaze, settings.fixations) if settings.gaze.source else None
        detectors = Detectors.open(settings.models)
        report = redact_clip(
            settings.scene,
            pairs[0][1],
            detectors,
            settings.redact,
            fixated,
            keep_audio=keep_audio,
            auditor=auditor,
            watch=lambda pictures, total: progress(pictures, "redact", total),
        )
        return [report], {}
    if settings.gaze.source:
        raise ConfigError("gaze.source", "belongs to a clip's times, and a still has none")
    return _stills(pairs, settings, auditor, go_on=source.is_dir())


def _stills(
    pairs: list[tuple[Path, Path]], settings: Config, auditor: Auditor | None, *, go_on: bool
) -> tuple[list[Report], dict[str, str]]:
    from edge.errors import SinkError, SourceError
    from edge.redaction import Detectors, redact_still

    detectors = Detectors.open(settings.models)
    reports: list[Report] = []
    failed: dict[str, str] = {}
    for index, (one, other) in enumerate(progress(pairs, "redact", len(pairs))):
        try:
            reports.append(redact_still(one, other, detectors, settings.redact, frame_id=index, auditor=auditor))
        except (SourceError, SinkError) as error:
            if not go_on:
                raise
            failed[str(one)] = str(error)
    return reports, failed


def _options(settings: Config, *, keep_audio: bool) -> dict[str, Any]:
    from edge.config import to_dict

    values = to_dict(settings)
    return {**{name: values[name] for name in ("redact", "gaze", "fixations", "models")}, "keep_audio": keep_audio}


def _body(reports: list[Report]) -> dict[str, Any]:
    audio = {report.audio for report in reports}
    return {
        "frames": [frame for report in reports for frame in report.frames],
        "faces_covered": sum(report.faces_covered for report in reports),
        "frames_withheld": sum(report.frames_withheld for report in reports),
        "suspected_leaks": sum(report.suspected_leaks for report in reports),
        "audio": audio.pop() if len(audio) == 1 else "none",
        "files": [
            {
                "source": str(report.source),
                "output": str(report.output),
                "n_frames": len(report.frames),
                "withheld_reasons": dict(report.withheld_reasons),
                "note": report.note,
                "removed": report.removed,
            }
            for report in reports
        ],
    }
