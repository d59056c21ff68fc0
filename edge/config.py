"""Every setting once: its default, its bounds, its unit (in the name) and one sentence.

A configuration is a TOML file; sections are the structs below. An unknown key is an error, and so is a value out of
bounds. `load` merges a preset, a file and `key=value` overrides, in that order, and checks the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from edge.config_files import merge, override, parse_toml, read_preset, refuse_nan
from edge.config_text import Row, explain, list_settings
from edge.errors import ConfigError

EMBEDDING = r"^(?:raw|centred|pca:([1-9][0-9]*))$"  #: what `score.embedding` may be; the group is N


def _number(description: str, *, ge: float | None = None, le: float | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=description, ge=ge, le=le)


def _text(description: str, *, max_length: int | None = None, pattern: str | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=description, max_length=max_length, pattern=pattern)


class Section(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of all sections: immutable, unknown keys refused."""


class SceneConfig(Section, frozen=True):
    """The camera that sees what the person looks at."""

    source: Annotated[str, _text("clip, folder of pictures, camera index or path, rtsp://, http://, csi://0")] = ""
    start_s: Annotated[float, _number("skip a clip's first seconds", ge=0, le=1e6)] = 0.0
    end_s: Annotated[float, _number("stop a clip here; 0 = at its end", ge=0, le=1e6)] = 0.0
    rate_hz: Annotated[float, _number("declared picture rate; a folder of pictures needs it", ge=0, le=1000)] = 0.0
    width_px: Annotated[int, _number("picture width to ask a camera for; 0 = its own", ge=0, le=16384)] = 0
    height_px: Annotated[int, _number("picture height to ask a camera for; 0 = its own", ge=0, le=16384)] = 0
    pixel_format: Annotated[
        str, _text("four-character V4L2 format to ask for, such as MJPG, GREY or Y10; empty = any", max_length=4)
    ] = ""
    open_ms: Annotated[int, _number("a live camera must deliver its first picture within", ge=100, le=60000)] = 4000
    silent_ms: Annotated[int, _number("a live camera that is silent for longer is stale", ge=1, le=3_600_000)] = 500
    frozen_ms: Annotated[int, _number("identical pictures for longer are stale; 0 = never", ge=0, le=3_600_000)] = 2000

    @property
    def frozen_after_ms(self) -> int:
        """`frozen_ms`; 0 for a clip that is played as if live: a clip may hold still."""
        return 0 if self.source.startswith("paced:") else self.frozen_ms


class FaceCameraConfig(SceneConfig, frozen=True):
    """The optional camera that sees the person. `source = "scene"`: one camera plays both roles."""


class GazeConfig(Section, frozen=True):
    """Where gaze comes from and in which frame and unit it is."""

    source: Annotated[str, _text("gaze file, recording folder, or lsl:NAME (also lsl:type=, source_id=, uid=)")] = ""
    format: Annotated[str, _text("gaze source plug-in; empty = told by the source")] = ""
    columns: Annotated[
        dict[str, str], _text("a CSV's column names: t, x, y, valid, confidence, pupil_mm, openness")
    ] = {}
    time_unit: Annotated[Literal["", "s", "ms", "us", "ns"], _text("unit of a CSV's times")] = ""
    units: Annotated[Literal["", "px", "norm", "deg", "vector"], _text("unit of x and y")] = ""
    frame: Annotated[
        Literal["", "scene_px", "scene_norm", "screen_px", "screen_norm", "direction"], _text("frame of x and y")
    ] = ""
    origin: Annotated[Literal["top-left", "bottom-left"], _text("where (0, 0) lies")] = "top-left"
    geometry: Annotated[str, _text("TOML file with [camera] intrinsics or [screen] size and distance")] = ""
    calibration: Annotated[str, _text("gaze_calibration.json to apply; empty = none")] = ""
    allow_lsl: Annotated[bool, _text("allow LSL streams in and out, which nobody encrypts or authenticates")] = True
    lsl_scope: Annotated[Literal["machine", "link", "site"], _text("how far LSL streams are looked for")] = "machine"
    offset_ms: Annotated[float, _number("added to gaze times to bring them onto the camera's", ge=-4e12, le=4e12)] = 0.0
    silent_ms: Annotated[int, _number("gaze silent for longer is stale", ge=1, le=3_600_000)] = 200
    wait_ms: Annotated[int, _number("a frame waits at most this long for its gaze", ge=0, le=1000)] = 50


class AuxConfig(Section, frozen=True):
    """Streams that are recorded beside the scores: EEG, heart rate, markers."""

    streams: Annotated[tuple[str, ...], _text("LSL streams, as in lsl:NAME or lsl:type=EEG")] = ()
    silent_ms: Annotated[
        int, _number("a stream silent for longer, and for 3 samples, is noted", ge=1, le=3_600_000)
    ] = 500


class FixationConfig(Section, frozen=True):
    """Velocity-threshold fixations."""

    velocity_deg_s: Annotated[float, _number("faster is a saccade", ge=1, le=1000)] = 30.0
    window_ms: Annotated[float, _number("window of the velocity's least-squares slope", ge=1, le=500)] = 20.0
    gap_ms: Annotated[float, _number("a loss up to this long is bridged", ge=0, le=1000)] = 75.0
    merge: Annotated[bool, _text("join fixations that are close in time and place")] = True
    merge_ms: Annotated[float, _number("join if apart in time by at most this", ge=0, le=1000)] = 75.0
    merge_deg: Annotated[float, _number("and apart in place by at most this", ge=0, le=10)] = 0.5
    min_ms: Annotated[float, _number("shorter fixations are discarded", ge=0, le=1000)] = 60.0


class ModelsConfig(Section, frozen=True):
    """Which artefacts, on which inference runtime."""

    dir: Annotated[str, _text("folder of artefact folders; empty = EMOGAZE_MODELS, else ~/.cache/emogaze/models")] = ""
    publishers: Annotated[
        str,
        _text("folder of publishers' keys: with one there, unsigned artefacts are refused; empty = of the key folder"),
    ] = ""
    embedder: Annotated[str, _text("scene embedding artefact")] = "mobilenet_v2-fp32"
    face_fast: Annotated[str, _text("face detector that runs on each frame")] = "blazeface_full_sparse-fp32"
    face_recall: Annotated[str, _text("face detector that misses least; empty = none")] = "centerface-fp32"
    emotion: Annotated[str, _text("emotion classifier; empty = none")] = "mini_xception-fp32"
    backend: Annotated[str, _text("inference runtime; empty = the first that runs the artefact")] = ""
    accelerator: Annotated[str, _text("cpu, cuda, tensorrt, gpu, npu, dla; empty = the runtime's own default")] = ""
    force: Annotated[tuple[str, ...], _text("artefacts to run though they failed their accuracy gate")] = ()
    threads: Annotated[int, _number("intra-op threads of an inference runtime", ge=1, le=64)] = 1
    strict: Annotated[bool, _text("fail instead of falling back from an accelerator")] = False


class EnvironmentConfig(Section, frozen=True):
    """The cached environment that what is looked at is compared with."""

    cache: Annotated[str, _text("folder written by `emogaze env build`")] = ""


class ScoreConfig(Section, frozen=True):
    """The fixation-context consistency score."""

    window: Annotated[
        str,
        _text(
            "window around the fixation: auto, 20% to 30% of the short side, or a side such as 100px",
            pattern=r"^(auto|2[0-9](\.[0-9]+)?%|30(\.0+)?%|[1-9][0-9]*(\.[0-9]+)?px)$",
        ),
    ] = "auto"
    weights: Annotated[Literal["merged", "fixed", "doc-3.2", "doc-5.2"], _text("local against global weights")] = (
        "merged"
    )
    embedding: Annotated[str, _text("raw, centred or pca:N", pattern=EMBEDDING)] = "centred"
    window_s: Annotated[float, _number("fcc is the mean over this long", ge=0.1, le=3600)] = 10.0
    still_tolerance: Annotated[
        float,
        _number(
            "grey levels by which no block of a still scene differs: its embedding is kept; 0 = never", ge=0, le=255
        ),
    ] = 2.0
    deadline_ms: Annotated[
        int, _number("a score later than this is counted as a missed deadline", ge=1, le=3_600_000)
    ] = 100


class GovernorConfig(Section, frozen=True):
    """When to run which of the ladder's artefacts."""

    ladder: Annotated[str, _text("ladder.json by `emogaze tune`; empty = models.embedder alone")] = ""
    battery_low_percent: Annotated[float, _number("less charge asks for the fastest rung", ge=0, le=100)] = 30.0
    battery_hysteresis: Annotated[float, _number("points above it at which that ends", ge=0, le=100)] = 5.0
    min_side_px: Annotated[int, _number("pictures with a smaller short side ignore the battery", ge=0, le=16384)] = 720
    temperature_high_c: Annotated[float, _number("from here on rungs are given up, one per dwell", ge=0, le=150)] = 80.0
    temperature_hysteresis_c: Annotated[
        float, _number("degrees below it at which they are given back", ge=0, le=150)
    ] = 5.0
    low_power_modes: Annotated[tuple[str, ...], _text("power modes that ask for the fastest rung")] = (
        "low-power",
        "7W",
        "10W",
    )
    dwell_s: Annotated[float, _number("no switch for this long after one", ge=0, le=3600)] = 10.0
    asynchronous: Annotated[bool, _text("live: embed beside the score path; the newest fixation wins")] = False


class TelemetryConfig(Section, frozen=True):
    """Where the state of the machine comes from."""

    source: Annotated[str, _text("system, a file of JSON lines with t_s, or empty = none")] = ""
    period_ms: Annotated[int, _number("the machine is read at most this often", ge=100, le=60000)] = 2000


class RedactConfig(Section, frozen=True):
    """Which faces are covered in the pictures that leave, and how."""

    mode: Annotated[Literal["outside-fixation", "all", "subject-only"], _text("which faces are covered")] = (
        "outside-fixation"
    )
    cover: Annotated[Literal["blur", "mosaic", "solid"], _text("how a face is covered")] = "blur"
    margin: Annotated[float, _number("cover reaches beyond the box by this share of its size", ge=0, le=2)] = 0.25
    calibration_deg: Annotated[float, _number("a face this near the gaze may be the fixated one", ge=0, le=10)] = 1.0
    fast_score: Annotated[float, _number("faces of the fast detector below this are dropped", ge=0, le=1)] = 0.4
    fast_start_score: Annotated[
        float, _number("beside a recall detector, the fast one begins to follow a face from this on", ge=0, le=1)
    ] = 0.8
    recall_score: Annotated[float, _number("faces of the recall detector below this are dropped", ge=0, le=1)] = 0.3
    recall_hz: Annotated[float, _number("recall detector passes per second; 0 = every frame", ge=0, le=120)] = 10.0
    recall_size_px: Annotated[int, _number("long side that the recall detector sees on clips", ge=64, le=4096)] = 960
    turned: Annotated[
        Literal["never", "stills", "always"], _text("search pictures also turned by 90, 180 and 270 degrees")
    ] = "stills"
    max_wait_ms: Annotated[int, _number("a picture waits at most this long for a recall pass", ge=0, le=5000)] = 500
    hold_ms: Annotated[int, _number("a face that is lost stays covered this long", ge=0, le=10000)] = 500


class SinksConfig(Section, frozen=True):
    """What leaves the process, and where to. An empty path is off."""

    allow_plaintext: Annotated[bool, _text("allow files that are not encrypted")] = False
    events: Annotated[str, _text("event log, newline-delimited JSON")] = ""
    video: Annotated[str, _text("redacted pictures as H.264 MP4")] = ""
    summary: Annotated[str, _text("what the run did, as JSON")] = ""
    publish: Annotated[str, _text("ZeroMQ address for subscribers, such as tcp://127.0.0.1:5571")] = ""
    publish_hwm: Annotated[
        int, _number("messages that wait for a slow subscriber before it loses some", ge=1, le=1_000_000)
    ] = 200
    curve: Annotated[bool, _text("encrypt, and admit listed clients alone; always so beyond this machine")] = False
    publish_preview: Annotated[
        str, _text("address for previews of clients with the right `preview`; with curve, previews go nowhere else")
    ] = ""
    preview_hz: Annotated[float, _number("published preview pictures per second; 0 = none", ge=0, le=60)] = 5.0
    preview_px: Annotated[int, _number("long side of a preview picture", ge=32, le=4096)] = 640
    lsl_outlet: Annotated[bool, _text("offer the scores as a Lab Streaming Layer stream on this machine")] = False
    metrics: Annotated[str, _text("address of /metrics, /healthz and /readyz, such as 127.0.0.1:9464")] = ""


class LiveConfig(Section, frozen=True):
    """What a run on live sources needs besides."""

    control: Annotated[str, _text("control socket; empty = in the runtime folder, off = none")] = ""
    control_address: Annotated[str, _text("ZeroMQ address for commands of clients with the right `control`")] = ""
    sync_ms: Annotated[float, _number("gaze and picture further apart than this is a fault", ge=1, le=1000)] = 50.0
    queue_events: Annotated[
        int, _number("events that wait for a slow sink before some are dropped", ge=10, le=1_000_000)
    ] = 10_000
    queue_pictures: Annotated[
        int, _number("pictures that wait for redaction, or for a slow sink, before the oldest goes", ge=1, le=10_000)
    ] = 16
    log_format: Annotated[Literal["text", "json"], _text("form of the log lines")] = "text"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _text("the least that is logged")] = "info"


class RecordConfig(Section, frozen=True):
    """The encrypted recording. It needs keys, two recipients and a valid consent."""

    dir: Annotated[str, _text("folder of sessions; empty = record nothing")] = ""
    consent: Annotated[str, _text("signed consent record; without it nothing is recorded")] = ""
    flush_ms: Annotated[
        int, _number("what is taken is on disk this much later; shorter costs space", ge=50, le=900)
    ] = 500
    checkpoint_s: Annotated[float, _number("a signed checkpoint this often", ge=0.1, le=60)] = 10.0
    segment_mb: Annotated[float, _number("a segment ends at this size", ge=0.25, le=4096)] = 256.0
    segment_s: Annotated[float, _number("or at this age", ge=1, le=86400)] = 600.0
    min_free_mb: Annotated[
        int, _number("recording stops cleanly when less space than this is left", ge=0, le=1_000_000_000)
    ] = 256
    jpeg_quality: Annotated[int, _number("quality of recorded pictures", ge=10, le=100)] = 85
    queue: Annotated[
        int, _number("events and pictures that wait for the disk; more are dropped, counted", ge=8, le=1_000_000)
    ] = 2048
    retention_days: Annotated[
        float, _number("older sessions lose their key when a session starts; 0 = never", ge=0, le=36500)
    ] = 0.0


class KeysConfig(Section, frozen=True):
    """Where the keys of this device lie."""

    dir: Annotated[str, _text("key folder; empty = EMOGAZE_KEYS, else ~/.config/emogaze/keys")] = ""


class DpConfig(Section, frozen=True):
    """Differential privacy at the source: sinks get noisy gaze statistics instead of gaze, scores and pictures."""

    epsilon: Annotated[float, _number("cost of one window's release; 0 = off", ge=0, le=100)] = 0.0
    window_s: Annotated[float, _number("a release this often", ge=1, le=86400)] = 60.0
    budget: Annotated[float, _number("epsilon that one session may spend in all", ge=0.01, le=1000)] = 8.0
    ledger: Annotated[str, _text("file that counts what was spent")] = "privacy_ledger.jsonl"


class Config(Section, frozen=True):
    """One run of the runtime."""

    preset: Annotated[str, _text("clinical, in-car, bench or empty")] = ""
    scene: SceneConfig = SceneConfig()
    face_camera: FaceCameraConfig = FaceCameraConfig()
    gaze: GazeConfig = GazeConfig()
    aux: AuxConfig = AuxConfig()
    fixations: FixationConfig = FixationConfig()
    models: ModelsConfig = ModelsConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    score: ScoreConfig = ScoreConfig()
    governor: GovernorConfig = GovernorConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    redact: RedactConfig = RedactConfig()
    sinks: SinksConfig = SinksConfig()
    record: RecordConfig = RecordConfig()
    keys: KeysConfig = KeysConfig()
    dp: DpConfig = DpConfig()
    live: LiveConfig = LiveConfig()


def load(path: Path | None = None, overrides: Iterable[str] = (), *, preset: str = "") -> Config:
    """Read a configuration.

    Parameters
    ----------
    path : Path, optional
        TOML file; its paths are taken relative to the working directory.
    overrides : iterable of str
        ``section.key=value`` texts, each value in TOML (a bare word is taken as text). They win over the file.
    preset : str
        Name of a preset that lies beneath both; one named in the file or in `overrides` wins.

    Raises
    ------
    ConfigError
        A file that can't be read, an unknown key, a value of the wrong type or out of bounds.
    """
    given, overrides = parse_toml(path) if path else {}, list(overrides)
    for text in overrides:
        override(given, text, Config())
    name = str(given.get("preset", preset))
    merged = merge(read_preset(name), given) if name else given
    return from_dict(merged, thing=str(path) if path else "configuration", overrides=overrides)


def from_dict(values: dict[str, Any], *, thing: str, overrides: Sequence[str] = ()) -> Config:
    """Check `values` and return the Config; errors name `thing`, or the one of `overrides` that set what is wrong."""
    refuse_nan(values)
    try:
        config = msgspec.convert(values, Config)
    except msgspec.ValidationError as error:
        key, problem, expected, got = explain(str(error), Config, values)
        said = [text for text in overrides if f"{text.partition('=')[0].strip()}.".startswith(f"{key}.")]
        raise ConfigError(f"--set {said[-1]}" if said else thing, problem, expected=expected, got=got) from None
    _check_lsl(config)
    if config.keys.dir and not config.models.publishers:
        models = msgspec.structs.replace(config.models, publishers=str(Path(config.keys.dir) / "models"))
        config = msgspec.structs.replace(config, models=models)
    return config


def _check_lsl(config: Config) -> None:
    uses = {
        "gaze.source": config.gaze.source.startswith("lsl:"),
        "aux.streams": bool(config.aux.streams),
        "sinks.lsl_outlet": config.sinks.lsl_outlet,
    }
    wanted = [key for key, used in uses.items() if used]
    if wanted and not config.gaze.allow_lsl:
        raise ConfigError(
            wanted[0],
            "asks for LSL, which is neither encrypted nor authenticated",
            fix="set gaze.allow_lsl = true if the network of this device is trusted",
        )


def to_dict(config: Config) -> dict[str, Any]:
    """Return all settings as plain values, as they are written into headers and reports."""
    result: dict[str, Any] = msgspec.to_builtins(config)
    return result


def describe() -> list[Row]:
    """List (key, default, bounds, description) of every setting, in order."""
    return list_settings(Config)
