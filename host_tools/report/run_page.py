"""The page of one run: the redacted video with gaze, fixation, emotion and FCC beside it, and all that made them.

Reads what `emogaze run` wrote into a folder: ``summary.json``, ``events.ndjson`` and, where there is one,
``redacted.mp4``. Pictures come from the redacted video alone.
"""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from edge.events import read_log
from edge.files import decode_document
from edge.records import Event
from host_tools.report.evidence import N_SCORES, add_evidence, video_pictures
from host_tools.report.page import Page, Section, cell

#: A video up to this size is put into the page; a larger one is linked.
EMBED_BYTES = 24_000_000
KEY_FRAMES = 6

_PLAYER_STYLE = """<style>
#player { display: grid; grid-template-columns: minmax(0, 2fr) minmax(210px, 1fr); gap: 18px; align-items: start; }
#player .screen { position: relative; } #player video { width: 100%; border-radius: 6px; }
#player canvas.over { position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none; }
#player canvas.curve { width: 100%; height: 150px; grid-column: 1 / -1; cursor: pointer; }
#player .bars div { display: grid; grid-template-columns: 74px 1fr; align-items: center; }
#player .bars div { font-size: 13px; height: 24px; }
#player .bars i { background: var(--accent); height: 12px; border-radius: 3px; display: block; }
#player .now { font-variant-numeric: tabular-nums; margin-bottom: 8px; }
</style>"""


def build_page(folder: Path, *, shown: int = N_SCORES) -> Page:
    """Return the page of the run in `folder`, with pictures of what `shown` of its scores rest on (0 = all).

    Raises
    ------
    DataError
        The folder holds no finished run.
    """
    summary = _read_summary(folder)
    log = list(read_log(folder / "events.ndjson"))
    header, scores = log[0].payload, [event for event in log if event.kind == "score"]
    if not scores:
        raise DataError(str(folder), "holds no score", fix="run `emogaze run` with sinks.events in that folder")
    simulated = " Gaze is simulated." if summary["simulated_gaze"] else ""
    page = Page(
        "EmoGaze Edge: one run",
        subtitle=f"{Path(header['scene']['source']).name}: {summary['frames']} frames.{simulated}",
        footer=f"emogaze {header['emogaze']}, Python {header['python']}. The scores are advisory: "
        "no decision about a person should rest on them alone.",
    )
    video = folder / "redacted.mp4"
    _watch(page.section("Watch"), scores, header, video, summary)
    _facts(page.section("In figures"), summary)
    frames = _key_frames(video, scores) if video.is_file() else []
    if frames:
        page.section("Key frames").pictures(frames)
    add_timelines(page.section("FCC and emotion over time"), scores)
    add_fixation_map(page.section("Fixations"), log, header, frames[0][0] if frames else None)
    add_evidence(page.section("What a score rests on"), scores, header, partial(video_pictures, video), shown=shown)
    _latencies(page.section("Stage latencies"), summary)
    add_options(page.section("Exact options"), header)
    return page


def _read_summary(folder: Path) -> dict[str, Any]:
    try:
        return decode_document((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            str(folder / "summary.json"), f"can't be read: {error}", fix="name a folder that `emogaze run` finished"
        ) from error


def _facts(section: Section, summary: dict[str, Any]) -> None:
    path = summary["latency_ms"]["score_path_without_inference"]
    section.facts(
        {
            "mean FCC": summary["fcc_mean"],
            "scores": summary["scores"],
            "fixations": summary["fixations"],
            "faces covered": f"{summary['faces_covered']} of {summary['faces_seen']}",
            "pictures withheld": summary["frames_withheld"],
            "ms, score path without inference": path["p50"],
        }
    )
    undefined = summary["fcc_undefined"]
    if undefined:
        section.table(["FCC undefined because", "frames"], sorted(undefined.items()))


def _watch(section: Section, scores: list[Event], header: dict[str, Any], video: Path, summary: dict[str, Any]) -> None:
    if summary["simulated_gaze"]:
        section.note("The gaze in this run is simulated: it shows how the runtime works, not how a person looked.")
    if not video.is_file():
        section.text("This run wrote no video.")
        return
    if video.stat().st_size <= EMBED_BYTES:
        source = "data:video/mp4;base64," + base64.b64encode(video.read_bytes()).decode()
    else:
        source = video.name
    labels = sorted({label for e in scores if e.payload["emotion"] for label in e.payload["emotion"]["probabilities"]})
    data = {
        "width": header["scene"]["width"],
        "height": header["scene"]["height"],
        "labels": labels,
        "rows": [_player_row(event, labels) for event in scores],
    }
    script = (Path(__file__).parent / "player.js").read_text(encoding="utf-8")
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    section.html(
        f'{_PLAYER_STYLE}<div id="player"><div class="screen"><video controls muted playsinline src="{source}"></video>'
        '<canvas class="over"></canvas></div><div><div class="now"></div><div class="bars"></div></div>'
        '<canvas class="curve"></canvas></div>'
        f'<script type="application/json" id="player-data">{content}</script><script>{script}</script>'
    )
    section.text("Red: gaze. Yellow ring: the fixation in progress. A face is clear only while it is fixated.")


def _player_row(event: Event, labels: list[str]) -> list[Any]:
    payload = event.payload
    fixation, score, emotion = payload["fixation"], payload["score"], payload["emotion"]
    has_label = bool(emotion and emotion["label"])
    return [
        event.t_ns / 1e9,
        *(payload["gaze_px"] or (None, None)),
        *((fixation["x_px"], fixation["y_px"]) if fixation else (None, None)),
        score["fcc_now"],
        score["fcc"],
        score["reason"],
        emotion["label"] if has_label else "",
        [round(emotion["probabilities"].get(label, 0.0), 3) for label in labels] if has_label else None,
    ]


def _key_frames(video: Path, scores: list[Event]) -> list[tuple[npt.NDArray[np.uint8], str]]:
    """Take pictures from the redacted video, evenly spread, each with what was found in it."""
    import cv2

    wanted = {round(i) for i in np.linspace(0, len(scores) - 1, KEY_FRAMES + 2)[1:-1]}
    capture = cv2.VideoCapture(str(video))
    frames: list[tuple[npt.NDArray[np.uint8], str]] = []
    for index, event in enumerate(scores):
        good, image = capture.read()
        if not good:
            break
        if index in wanted:
            frames.append((marked(image.astype(np.uint8), event), caption_of(event)))
    capture.release()
    return frames


def marked(image: npt.NDArray[np.uint8], event: Event) -> npt.NDArray[np.uint8]:
    import cv2

    fixation = event.payload.get("fixation")
    if fixation and fixation["x_px"] is not None:
        centre = round(fixation["x_px"]), round(fixation["y_px"])
        cv2.circle(image, centre, max(8, image.shape[0] // 18), (63, 210, 255), 2, cv2.LINE_AA)
    return image


def caption_of(event: Event) -> str:
    score, emotion = event.payload["score"], event.payload.get("emotion")
    fcc = cell(score["fcc_now"]) if not score["reason"] else f"undefined ({score['reason']})"
    return f"{event.t_ns / 1e9:.2f} s · FCC {fcc}" + (f" · {emotion['label']}" if emotion and emotion["label"] else "")


def add_timelines(section: Section, scores: list[Event]) -> None:
    import matplotlib.pyplot as plt

    t = np.array([event.t_ns for event in scores]) / 1e9
    value = {key: _column(scores, key) for key in ("fcc_now", "fcc", "sim_local", "sim_global")}
    emotions = [event.payload.get("emotion") or {} for event in scores]
    labels = sorted({label for e in emotions for label in e.get("probabilities", {})})
    figure, axes = plt.subplots(3, 1, figsize=(10.5, 7.5), sharex=True, height_ratios=[2, 1.4, 1.8])
    axes[0].plot(t, value["fcc_now"], color="#9aa5b8", lw=1, label="this frame")
    axes[0].plot(t, value["fcc"], color="#2458c5", lw=2, label="mean over fixations of the window")
    axes[0].set(ylabel="FCC", ylim=(0, 1))
    axes[1].plot(t, value["sim_local"], color="#0a8f6a", lw=1.2, label="local")
    axes[1].plot(t, value["sim_global"], color="#c4622d", lw=1.2, label="global")
    axes[1].set(ylabel="similarity", ylim=(-1, 1))
    if labels:
        shares = [[e.get("probabilities", {}).get(label, np.nan) for e in emotions] for label in labels]
        axes[2].stackplot(t, np.nan_to_num(np.array(shares)), labels=labels, alpha=0.85)
    axes[2].set(ylabel="emotion", ylim=(0, 1), xlabel="time (s)")
    for axis in axes:
        axis.grid(alpha=0.25)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    section.figure(figure, "Gaps: FCC is undefined there, and says why in the event log.")


def _column(scores: list[Event], key: str) -> npt.NDArray[np.float64]:
    return np.array([np.nan if e.payload["score"][key] is None else e.payload["score"][key] for e in scores])


def add_fixation_map(
    section: Section, log: list[Event], header: dict[str, Any], background: npt.NDArray[np.uint8] | None
) -> None:
    import matplotlib.pyplot as plt

    fixations = [e.payload for e in log if e.kind == "fixation" and e.payload["x_px"] is not None]
    if not fixations:
        section.text("No fixation with a place on the picture.")
        return
    width, height = header["scene"]["width"], header["scene"]["height"]
    figure, axis = plt.subplots(figsize=(9, 9 * height / width))
    if background is not None:
        axis.imshow(background[:, :, ::-1], extent=(0, width, height, 0), alpha=0.65)
    x, y = ([f[key] for f in fixations] for key in ("x_px", "y_px"))
    duration = np.array([f["end_ns"] - f["start_ns"] for f in fixations]) / 1e6
    axis.plot(x, y, color="#ffffff", lw=0.8, alpha=0.7)
    axis.scatter(x, y, s=duration, c=np.arange(len(x)), cmap="plasma", alpha=0.75, edgecolors="white")
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    section.figure(
        figure, f"{len(x)} fixations, area by duration (median {np.median(duration):.0f} ms), in order of colour."
    )


def _latencies(section: Section, summary: dict[str, Any]) -> None:
    section.text(f"Measured in this run on {summary['model']} with {summary['provider']}.")
    rows = [
        [stage, v["n"], v["p50"], v["p90"], v["p99"], v["max"]] for stage, v in sorted(summary["latency_ms"].items())
    ]
    section.table(["stage", "n", "p50 ms", "p90 ms", "p99 ms", "max ms"], rows)


def add_options(section: Section, header: dict[str, Any]) -> None:
    for name, values in (("Models", None), ("Environment cache", header["environment"]), ("Gaze", header["gaze"])):
        section.heading(name)
        if values is None:
            rows = [[m["role"], m["name"], m["active"], m["sha256"][:16]] for m in header["models"]]
            section.table(["role", "artefact", "runs on", "sha256"], rows)
        elif values:
            section.table(["what", "value"], [[k, str(v)] for k, v in values.items()])
    section.heading("Settings")
    rows = [
        [f"{group}.{key}", str(value)]
        for group, settings in header["config"].items()
        if isinstance(settings, dict)
        for key, value in settings.items()
    ]
    section.table(["setting", "value"], rows)
