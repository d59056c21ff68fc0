"""Agreement of the fixation detector with an expert's labels and with a head-mounted tracker's own events.

Events are half-open intervals. Two match if their intersection over union is at least 0.5; they are matched one to one,
greedily by start, and F1 counts the matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edge.config import FixationConfig, GazeConfig
from edge.errors import DataError
from edge.gaze.fixations import detect
from edge.gaze.mapping import open_mapping
from edge.gaze.sources import neon
from edge.records import NAN, GazeSample

MIN_IOU = 0.5
COLUMNS = ("t", "x", "y", "status", "evt")
FIXATION = 1  #: of `evt`; 0 is unlabelled

Interval = tuple[int, int]
Mask = npt.NDArray[np.bool_]


class Agreement(NamedTuple):
    """How well labels agree sample by sample: F1 of fixation, and Cohen's kappa."""

    f1: float
    kappa: float


def match(truth: Sequence[Interval], found: Sequence[Interval]) -> list[tuple[int, int]]:
    """Return the matched pairs of events, as places in both lists."""
    pairs: list[tuple[int, int]] = []
    used: set[int] = set()
    for i, (start, end) in enumerate(truth):
        for j, (a, b) in enumerate(found):
            overlap = min(end, b) - max(start, a)
            if j not in used and overlap > 0 and overlap / (max(end, b) - min(start, a)) >= MIN_IOU:
                used.add(j)
                pairs.append((i, j))
                break
    return pairs


def event_f1(truth: Sequence[Interval], found: Sequence[Interval]) -> float:
    """Return F1 of events; nan where there are none on either side."""
    n = len(truth) + len(found)
    return 2 * len(match(truth, found)) / n if n else NAN


def sample_agreement(truth: Mask, found: Mask) -> Agreement:
    """Compare two labellings (n,) of the same samples, fixation or not (kappa: Cohen 1960)."""
    f1 = 2 * int(np.sum(truth & found)) / int(truth.sum() + found.sum())
    chance = truth.mean() * found.mean() + (1 - truth.mean()) * (1 - found.mean())
    return Agreement(f1, float((np.mean(truth == found) - chance) / (1 - chance)))


def runs(mask: Mask) -> list[Interval]:
    """Return the stretches of True as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def with_expert(recording: Path, settings: FixationConfig) -> dict[str, Any]:
    """Compare with a recording that an expert labelled sample by sample.

    Parameters
    ----------
    recording : Path
        ``.npy`` with fields `t` (s), `x`, `y` (deg), `status` (valid) and `evt` (1 fixation, 0 unlabelled), as
        r-zemblys/irf publishes `lookAtPoint_EL`. Unlabelled samples are left out of the comparison by samples.
    settings : FixationConfig

    Raises
    ------
    DataError
        The file isn't such a table.
    """
    try:
        table = np.load(recording, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(str(recording), f"can't be read: {error}") from error
    if not set(COLUMNS) <= set(table.dtype.names or ()):
        raise DataError(str(recording), "isn't a labelled recording", expected=", ".join(COLUMNS), got=f"{table.dtype}")
    times = np.round(table["t"] * 1e9).astype(np.int64)
    result = detect(
        (
            GazeSample(i, int(t), NAN, NAN, float(x), float(y), 1.0, bool(valid))
            for i, (t, x, y, valid) in enumerate(zip(times, table["x"], table["y"], table["status"], strict=True))
        ),
        settings,
    )
    first = np.searchsorted(times, [f.start_ns for f in result.fixations]).tolist()
    last = np.searchsorted(times, [f.end_ns for f in result.fixations]).tolist()
    found = [(a, b + 1) for a, b in zip(first, last, strict=True)]
    mask = np.zeros(len(times), bool)
    for a, b in found:
        mask[a:b] = True
    labelled, fixation = table["evt"] != 0, table["evt"] == FIXATION
    agreement = sample_agreement(fixation[labelled], mask[labelled])
    events = runs(fixation)
    return {
        "merge": settings.merge,
        "velocity_deg_s": settings.velocity_deg_s,
        "n_expert": len(events),
        "n_found": len(found),
        "sample_f1": agreement.f1,
        "kappa": agreement.kappa,
        "event_f1": event_f1(events, found),
    }


def with_device(recording: Path, settings: FixationConfig) -> dict[str, Any]:
    """Compare with the fixations that a Neon found itself, in its native recording folder.

    Raises
    ------
    SourceError
        The folder is no such recording.
    """
    config = GazeConfig(source=str(recording))
    with neon.open_source(config) as gaze:
        mapping = open_mapping(gaze, config)
        samples = [mapping(raw) for raw in gaze]
    result = detect(samples, settings, gaze.info.hz_declared)
    zero_ns = int(neon.read_stream(recording, "gaze")[0][0]) - samples[0].t_ns
    rows = neon.read_stream(recording, "fixations")[1]
    rows = rows[rows["event_type"] == neon.FIXATION_EVENT]
    own = [(int(row["start_timestamp_ns"]) - zero_ns, int(row["end_timestamp_ns"]) - zero_ns) for row in rows]
    found = [(f.start_ns, f.end_ns) for f in result.fixations]
    onsets = [abs(found[j][0] - own[i][0]) / 1e6 for i, j in match(own, found)]
    return {
        "merge": settings.merge,
        "velocity_deg_s": settings.velocity_deg_s,
        "n_device": len(own),
        "n_found": len(found),
        "event_f1": event_f1(own, found),
        "onset_ms": float(np.median(onsets)) if onsets else NAN,
    }
