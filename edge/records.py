"""The data types that pass between stages.

Every time is an integer in nanoseconds of the host's monotonic clock, stamped once at capture and copied from there on
(a file source's clock is its presentation time from 0). Units stand in the names. A value that could not be had is
``nan`` with a reason beside it, never 0 and never 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Role = Literal["scene", "face"]
Subject = Literal["wearer", "fixated"]
FixationState = Literal["ongoing", "ended"]
FaceOrigin = Literal["fast", "recall", "track"]
Box = tuple[float, float, float, float]  #: x, y, width, height in pixels of the picture; never clipped to it
Image = npt.NDArray[np.uint8]
Vector = npt.NDArray[np.float32]

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of one camera. `image` is uint8 (h, w, 3), BGR, read-only; a gap in `frame_id` is a drop."""

    frame_id: int
    t_ns: int
    image: Image
    source: str
    role: Role = "scene"

    def __post_init__(self) -> None:
        if self.image.dtype != np.uint8 or self.image.ndim != 3 or self.image.shape[2] != 3:
            raise ValueError(
                f"frame {self.frame_id} of {self.source}: expected a uint8 picture (h, w, 3) in BGR, "
                f"got {self.image.dtype} {self.image.shape}"
            )
        self.image.flags.writeable = False

    @property
    def width(self) -> int:
        return int(self.image.shape[1])

    @property
    def height(self) -> int:
        return int(self.image.shape[0])


@dataclass(frozen=True, slots=True)
class RawGaze:
    """A gaze sample as its source gives it: x and y in the frame and unit that the source declares."""

    seq: int
    t_ns: int
    x: float
    y: float
    confidence: float = 1.0
    valid: bool = True
    pupil_mm: float = NAN
    openness: float = NAN


@dataclass(frozen=True, slots=True)
class GazeSample:
    """A gaze sample mapped onto the scene: pixels (origin top left) and degrees; nan where geometry gives none."""

    seq: int
    t_ns: int
    x_px: float
    y_px: float
    x_deg: float
    y_deg: float
    confidence: float = 1.0
    valid: bool = True
    pupil_mm: float = NAN
    openness: float = NAN


@dataclass(frozen=True, slots=True)
class Fixation:
    """A look at one place. While `ongoing`, the end and the position are those of the samples so far."""

    fixation_id: int
    start_ns: int
    end_ns: int
    x_px: float
    y_px: float
    x_deg: float
    y_deg: float
    dispersion_deg: float
    n_samples: int
    state: FixationState


@dataclass(frozen=True, slots=True)
class Face:
    """A face in a picture. `box` may reach outside it; `origin` says which pass found it."""

    box: Box
    score: float
    track_id: int = -1
    origin: FaceOrigin = "fast"
    fixated: bool = False
    covered: bool = False


@dataclass(frozen=True, slots=True)
class AuxSample:
    """One sample of an auxiliary stream (EEG, heart rate, markers): `channels` is float32 (c,)."""

    stream: str
    t_ns: int
    channels: Vector
    text: str = ""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The state of the machine. `None` is unknown, and never read as 0."""

    t_ns: int
    battery_percent: float | None = None
    charging: bool | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_mode: str | None = None
    load_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Features:
    """Embeddings of one fixation: `local` float32 (d_l,), the window around it; `global_` float32 (d_g,), the scene."""

    frame_id: int
    t_ns: int
    local: Vector
    global_: Vector
    model_id: str
    precision: str


@dataclass(frozen=True, slots=True)
class Emotion:
    """Class probabilities of one face, or the reason why there are none (`label` is then empty)."""

    t_ns: int
    subject: Subject
    label: str
    probabilities: dict[str, float]
    model_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """How well what is looked at fits the scene, for one scene frame. `fcc_now` is this frame's, `fcc` the window's."""

    frame_id: int
    t_ns: int
    fixation_id: int
    fcc_now: float
    fcc: float
    reason: str
    sim_local: float
    sim_global: float
    region: str
    alpha: float
    beta: float
    weights: str
    weights_emotion: str
    attention_source: str
    embedding: str
    window_px: int
    frame_age_ns: int
    gaze_age_ns: int
    model_id: str
    precision: str


@dataclass(frozen=True, slots=True)
class RedactedFrame:
    """A picture in which every face outside the fixation is covered; the only picture that a sink takes.

    Made by `edge.privacy` alone. `withheld` says that the whole picture was covered, and `reason` why.
    """

    frame_id: int
    t_ns: int
    image: Image
    source: str
    role: Role
    faces: tuple[Face, ...]
    withheld: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the event log. `t_ns` is when it happened, `t_emit_ns` when it left the pipeline."""

    seq: int
    t_ns: int
    t_emit_ns: int
    kind: str
    payload: dict[str, Any] = field(default_factory=dict)
