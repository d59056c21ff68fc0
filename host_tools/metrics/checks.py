"""The checks that stand beside every score: each says what was looked at, what was found and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Status = Literal["pass", "warn", "fail", "unknown"]
Applies = Literal["yes", "not needed", "impossible"]

KAPPA_BOUND = 0.75
SYNC_BOUND_MS = 50.0
SAMPLES_PER_EMOTION = 50
WIDEST_INTERVAL = 0.10
SMALLEST_SHIFT = 0.005
STATIC_FACES = frozenset({"face", "faces", "static face", "static_face", "portrait"})


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `value` is what was found (None = not known), `text` what it means in one line."""

    name: str
    status: Status
    value: float | int | str | None
    bound: float | int | str | None
    text: str


def kappa(value: float | None, kind: str) -> Check:
    """Agreement of the annotators of fixation labels; `kind` says which kappa."""
    if value is None:
        return Check("kappa", "unknown", None, KAPPA_BOUND, "agreement on fixation labels was not given")
    status: Status = "pass" if value >= KAPPA_BOUND else "fail"
    return Check("kappa", status, value, KAPPA_BOUND, f"{kind} kappa of fixation labels {value:.3f}")


def synchronisation(worst_ms: float | None) -> Check:
    """Largest synchronisation error between face, gaze and EEG."""
    if worst_ms is None:
        return Check("synchronisation", "unknown", None, SYNC_BOUND_MS, "synchronisation error was not given")
    status: Status = "pass" if abs(worst_ms) < SYNC_BOUND_MS else "fail"
    return Check("synchronisation", status, worst_ms, SYNC_BOUND_MS, f"largest error {worst_ms:.1f} ms")


def samples_per_emotion(counts: Mapping[str, int]) -> Check:
    """At least 50 samples of each emotion."""
    few = {label: n for label, n in counts.items() if n < SAMPLES_PER_EMOTION}
    text = ", ".join(f"{label} {n}" for label, n in few.items())
    return Check(
        "samples_per_emotion",
        "warn" if few else "pass",
        min(counts.values(), default=0),
        SAMPLES_PER_EMOTION,
        f"too few samples: {text}" if few else "enough samples of each emotion",
    )


def interval_width(ci95: tuple[float, float]) -> Check:
    """A 95 % interval wider than ten points says little."""
    width = ci95[1] - ci95[0]
    if not np.isfinite(width):
        return Check("interval", "unknown", None, WIDEST_INTERVAL, "the headline's interval is undefined")
    status: Status = "warn" if width > WIDEST_INTERVAL else "pass"
    return Check("interval", status, width, WIDEST_INTERVAL, f"the headline's 95 % interval: {100 * width:.1f} points")


def shift_from_base(value: float, base: float) -> Check:
    """A headline that equals its base: were local features really extracted?"""
    shift = abs(value - base)
    if not np.isfinite(shift):
        return Check("shift_from_base", "unknown", None, SMALLEST_SHIFT, "the headline or its base is undefined")
    if shift < SMALLEST_SHIFT:
        text = f"cawF1 and F1 differ by {100 * shift:.2f} points only: were local features really extracted?"
        return Check("shift_from_base", "warn", shift, SMALLEST_SHIFT, text)
    return Check("shift_from_base", "pass", shift, SMALLEST_SHIFT, f"cawF1 and F1 differ by {100 * shift:.2f} points")


def fcc_defined(n: int, n_without: int, total: float) -> Check:
    """How many samples have an FCC, and whether any weighs anything."""
    text = f"{n - n_without} of {n} samples have an FCC"
    if n_without == n or total <= 0:
        why = "no sample has an FCC" if n_without == n else "all FCC are 0"
        return Check("fcc", "fail", n_without, 0, f"{why}: cawF1 is undefined")
    return Check("fcc", "warn" if n_without else "pass", n_without, 0, text)


def participants(people: Sequence[str] | None) -> Check:
    """Whether intervals are resampled by participant, and who has one sample only."""
    counts = dict(zip(*np.unique(np.asarray(people), return_counts=True), strict=True)) if people else {}
    if len(counts) < 2:
        text = "fewer than two participants are known: intervals are resampled by sample and say nothing about people"
        return Check("participants", "warn", len(counts), 2, text)
    single = sum(1 for n in counts.values() if n == 1)
    text = f"intervals are resampled by participant, {len(counts)} of them" + (
        f"; {single} with one sample" if single else ""
    )
    return Check("participants", "pass", len(counts), 2, text)


def classes(counts: Mapping[str, int], left_out: Sequence[str]) -> Check:
    """Classes that occur, and those that the macro mean leaves out."""
    present = sum(1 for n in counts.values() if n)
    text = f"{present} of {len(counts)} classes occur"
    if present == 1:
        text += ": with one true class no score says whether classes are told apart"
    if left_out:
        text += "; left out of the macro mean: " + ", ".join(left_out)
    return Check("classes", "warn" if present < 2 or left_out else "pass", present, len(counts), text)


def predictions(other: Mapping[str, int]) -> Check:
    """Predictions outside the label set: wrong, and named."""
    n = sum(other.values())
    named = ", ".join(f"{name} ({count})" for name, count in other.items())
    text = f"outside the label set, counted as wrong: {named}" if n else "every prediction is in the label set"
    return Check("predictions", "warn" if n else "pass", n, 0, text)


def applicability(n_labels: int, n_with_fcc: int, scene_types: Sequence[str] | None = None) -> tuple[Applies, str]:
    """Say whether cawF1 applies at all, and why."""
    if not n_with_fcc:
        return "impossible", "no gaze: no sample has an FCC"
    if scene_types and {s.lower() for s in scene_types} <= STATIC_FACES:
        return "not needed", "static faces: there is no scene to attend to"
    if n_labels <= 2:
        return "not needed", "two coarse classes: plain F1 says as much"
    return "yes", "scenes with gaze and more than two classes"
