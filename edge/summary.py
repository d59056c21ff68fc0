"""What one run did: counted while it goes, told at its end, and written as `sinks.summary`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from edge.config import Config
from edge.dp.sink import without_exact
from edge.errors import SinkError
from edge.files import json_text
from edge.output_file import OutputFile, recipients_for
from edge.pipeline import Step
from edge.records import RedactedFrame


@dataclass
class Summary:
    """What one run did, as `summary.json` holds it."""

    frames: int = 0
    frames_dropped: int = 0
    gaze_samples: int = 0
    fixations: int = 0
    scores: int = 0
    fcc_mean: float = float("nan")
    fcc_undefined: dict[str, int] = field(default_factory=dict)
    faces_seen: int = 0
    faces_covered: int = 0
    frames_withheld: int = 0
    simulated_gaze: bool = False
    model: str = ""
    provider: str = ""
    latency_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    events: str = ""
    video: str = ""
    recording: str = ""
    not_recorded: str = ""  #: why a recording that was asked for did not start
    summary: str = ""
    refused_sinks: list[str] = field(default_factory=list)
    sink_errors: dict[str, str] = field(default_factory=dict)
    deadlines_missed: int = 0
    pictures_dropped: int = 0
    missing: str = ""  #: what a live run still waited for when it was stopped before its first score
    stopped: str = ""  #: the signal that ended a run on files before its end
    scene_note: str = ""  #: what is odd about the clip: an irregular rate, damaged or missing pictures

    def count_step(self, step: Step) -> None:
        """Take in what the score recipe found."""
        self.frames += 1
        self.gaze_samples += len(step.raw_gaze)
        if reason := step.score.reason:
            self.fcc_undefined[reason] = self.fcc_undefined.get(reason, 0) + 1
        else:
            self.scores += 1
            before = self.fcc_mean if self.scores > 1 else 0.0
            self.fcc_mean = before + (step.score.fcc_now - before) / self.scores

    def count_picture(self, picture: RedactedFrame) -> None:
        """Take in a redacted picture."""
        self.faces_seen += len(picture.faces)
        self.faces_covered += sum(face.covered for face in picture.faces)
        self.frames_withheld += picture.withheld

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the run in a few lines for a terminal."""
        lost = [f"NOT RECORDED: {self.not_recorded}"] if self.not_recorded else []
        if not self.frames:
            return ["ended before the first score" + (f"; {self.missing}" if self.missing else ""), *lost]
        undefined = ", ".join(f"{n} {reason}" for reason, n in sorted(self.fcc_undefined.items()))
        path_ms = self.latency_ms.get("score_path_without_inference", {}).get("p50", float("nan"))
        lines = [
            f"{self.frames} frames, {self.frames_dropped} dropped; {self.gaze_samples} gaze samples"
            + (" (simulated)" if self.simulated_gaze else ""),
            f"{self.scores} scores"
            + (f", mean FCC {self.fcc_mean:.3f}" if self.scores else "")
            + f"; undefined: {undefined or 'none'}",
            f"{self.fixations} fixations; {self.faces_covered} of {self.faces_seen} faces covered, "
            f"{self.frames_withheld} pictures withheld"
            + (f", {self.pictures_dropped} dropped before redaction" if self.pictures_dropped else ""),
            f"{self.model} on {self.provider}; score path without inference {path_ms:.2f} ms median",
        ]
        if self.scene_note:
            lines.insert(1, f"the clip is odd: {self.scene_note}")
        if "no_environment" in self.fcc_undefined:
            fix = '`emogaze env build VIEWS -o DIR` makes a cache, environment.cache = "DIR" names it'
            lines.append(f"no score without an environment: {fix}")
        if self.stopped:
            lines.insert(0, f"stopped early by {self.stopped}: what follows is of the part before")
        outputs = {"events": self.events, "video": self.video, "recorder": self.recording, "summary": self.summary}
        lines += [f"written: {path}" for name, path in outputs.items() if path and name not in self.sink_errors]
        lines += lost
        return lines + [f"failed: sink {name}: {error}" for name, error in self.sink_errors.items()]


@contextmanager
def written_at_end(summary: Summary, config: Config) -> Iterator[None]:
    """Hold the file of the summary against other runs, and write it once the run has ended well.

    If that fails, `summary` notes it as it notes what failed of any other output.

    Raises
    ------
    SinkError
        The file can't be written, or another run writes it.
    """
    if not config.sinks.summary:
        yield
        return
    file = OutputFile(Path(config.sinks.summary), recipients_for(config.sinks.summary, config))
    try:
        yield
    except BaseException:
        file.close(whole=False, keep=False)
        raise
    try:
        told = without_exact(summary.as_dict()) if config.dp.epsilon else summary.as_dict()
        with suppress(OSError):  # `close` tells it
            file.write(json_text(told).encode())
        file.close(whole=True, keep=False)
    except SinkError as error:
        summary.sink_errors["summary"] = str(error)
