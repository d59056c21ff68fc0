"""The runtime's own event logs: windows of a session with the label that an observer gave them.

`SOURCE` is a folder with ``events.ndjson`` files (or sub-folders that hold one each; a file's or sub-folder's name is
the participant) and ``labels.csv``: start_s, end_s, label, optional session, scene_type. Times are those of the log.
Written are the samples, their recorded fixations, and the runtime as a system: the emotion it found most often in the
window, with mean probabilities, and the mean of its FCC over fixations (attention source `retrieved`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edge.errors import DataError
from edge.events import read_log
from edge.labels import canonical
from edge.records import Event
from host_tools.datasets.importers.base import Imported, check_options, column, left_out, need
from host_tools.datasets.layout import FIXATION_COLUMNS, DatasetInfo, Sample
from host_tools.tables import read_table, write_csv

ABOUT = "event logs of the runtime, with labelled windows"
OPTIONS = {
    "labels": "label set",
    **{name: f"column of labels.csv for {name}" for name in ("start_s", "end_s", "label", "session", "scene_type")},
}


@dataclass
class _Window:
    """What a log says within one labelled stretch of time."""

    sample_id: str
    session: str
    start_ns: int
    end_ns: int
    label: str
    scene_type: str
    fcc: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    probabilities: list[dict[str, float]] = field(default_factory=list)
    fixations: dict[int, dict[str, float]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take a score event that lies in the window."""
        score, emotion, fixation = (event.payload.get(name) for name in ("score", "emotion", "fixation"))
        if score and score.get("fcc_now") is not None:
            self.fcc[score["fixation_id"]].append(score["fcc_now"])
        if emotion and emotion.get("label") and emotion.get("subject") == "wearer":
            self.probabilities.append({canonical(k): v for k, v in emotion["probabilities"].items()})
        if fixation and fixation.get("x_px") is not None:
            self.fixations[fixation["fixation_id"]] = fixation

    def answer(self) -> dict[str, Any]:
        """Return the runtime's answer: the most frequent label, mean probabilities, and FCC over fixations."""
        said = Counter(max(p, key=p.__getitem__) for p in self.probabilities)
        names = sorted({name for p in self.probabilities for name in p})
        means = {f"p_{name}": float(np.mean([p.get(name, 0.0) for p in self.probabilities])) for name in names}
        each = [float(np.mean(values)) for values in self.fcc.values()]
        pred = said.most_common(1)[0][0] if said else ""
        return {"sample_id": self.sample_id, "pred": pred, "fcc": float(np.mean(each)) if each else None, **means}


def convert(source: Path, out: Path, options: Mapping[str, str]) -> Imported:
    """Write the data set and ``predictions/runtime.csv``."""
    check_options(options, OPTIONS, "events")
    logs = _logs(source)
    windows = _windows(source, options, list(logs))
    counts: Counter[str] = Counter()
    scenes: dict[str, str] = {}
    for session, path in logs.items():
        own = [w for w in windows if w.session == session]
        for event in read_log(path):
            if event.kind == "session":
                scenes[session] = str(event.payload.get("scene", {}).get("source", ""))
            elif event.kind == "score":
                inside = [w for w in own if w.start_ns <= event.t_ns < w.end_ns]
                counts["scores in no labelled window"] += not inside
                for window in inside:
                    window.take(event)
    answers = [window.answer() for window in windows]
    header = list(dict.fromkeys(name for row in answers for name in row))
    write_csv(out / "predictions" / "runtime.csv", answers, header)
    write_csv(out / "fixations.csv", (row for window in windows for row in _fixations(window)), FIXATION_COLUMNS)
    samples = [
        Sample(w.sample_id, w.session, w.label, "labels.csv", w.scene_type, t_s=f"{w.start_ns / 1e9:.3f}")
        for w in windows
    ]
    findings = left_out(counts) + [f"{w.sample_id} has no score" for w in windows if not w.fcc]
    info = DatasetInfo(
        name=source.resolve().name,
        source="event logs of " + ", ".join(sorted({Path(s).name for s in scenes.values() if s})),
        labels=options.get("labels", ""),
        lacks=("pictures (logs hold none; FCC is the runtime's own)",),
    )
    return Imported(info, samples, findings)


def _logs(source: Path) -> dict[str, Path]:
    found = {p.parent.name: p for p in sorted(source.glob("*/events.ndjson"))}
    found |= {p.stem: p for p in sorted(source.glob("*.ndjson"))}
    if not found:
        raise DataError(str(source), "holds no event log", expected="*.ndjson, or */events.ndjson")
    return found


def _windows(source: Path, options: Mapping[str, str], sessions: list[str]) -> list[_Window]:
    table = read_table(need(source / "labels.csv", "a table of windows: start_s, end_s, label"))
    start, end = (table.numbers(options.get(name, name)) for name in ("start_s", "end_s"))
    label = column(table, "label", options)
    scene = column(table, "scene_type", options, required=False)
    session = column(table, "session", options, required=False)
    windows = []
    for i, name in enumerate(session):
        owner = name or (sessions[0] if len(sessions) == 1 else "")
        if owner not in sessions or not start[i] < end[i]:
            problem = "names no session" if owner not in sessions else "ends before it starts"
            raise DataError(f"{table.path}, row {i + 1}", problem, expected=", ".join(sessions), got=name)
        t = round(start[i] * 1e9), round(end[i] * 1e9)
        windows.append(_Window(f"{owner}-{i:04d}", owner, *t, label[i], scene[i]))
    return windows


def _fixations(window: _Window) -> Iterable[dict[str, Any]]:
    for fixation in window.fixations.values():
        yield {
            "sample_id": window.sample_id,
            "x_px": fixation["x_px"],
            "y_px": fixation["y_px"],
            "start_ms": (fixation["start_ns"] - window.start_ns) / 1e6,
            "duration_ms": (fixation["end_ns"] - fixation["start_ns"]) / 1e6,
        }
