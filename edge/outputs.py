"""What leaves a run: which sinks may start, what stands in front of them, and how events and pictures reach them."""

from __future__ import annotations

import secrets
import sys
import threading
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from edge import events, plugins
from edge.capture.base import public_name
from edge.clock import monotonic_ns
from edge.config import Config, to_dict
from edge.consent import ConsentError, LimitedSink, consent_problem, load_consent
from edge.dp.sink import PrivateSink
from edge.errors import ConfigError, SinkError
from edge.files import is_same_file
from edge.keys import keys_dir
from edge.output_file import is_encrypted, part_of
from edge.records import Event, RedactedFrame
from edge.session import SOURCE_PREFIX
from edge.sinks.base import Sink

#: Settings of `sinks` that name a file in the clear.
PLAINTEXT = ("events", "video", "summary")


class Emitter:
    """Number the events and hand them, and the redacted pictures, to every sink; from any thread."""

    def __init__(self, sinks: list[Sink]) -> None:
        self.sinks = list(sinks)
        self._seq = 0
        self._lock = threading.Lock()

    def add(self, sink: Sink, header: dict[str, Any] | None = None) -> None:
        """Add a sink; with `header` it gets a `session` event of its own first."""
        with self._lock:
            if header is not None:
                sink.event(Event(self._seq, monotonic_ns(), monotonic_ns(), "session", header))
                self._seq += 1
            self.sinks = [*self.sinks, sink]

    def remove(self, sink: Sink) -> None:
        """Take a sink out, without closing it."""
        with self._lock:
            self.sinks = [other for other in self.sinks if other is not sink]

    def close(self) -> None:
        """Close all sinks, the newest first."""
        for sink in reversed(self.sinks):
            sink.close()

    def event(self, kind: str, t_ns: int, payload: dict[str, Any]) -> None:
        with self._lock:
            event = Event(self._seq, t_ns, monotonic_ns(), kind, payload)
            self._seq += 1
            for sink in self.sinks:
                sink.event(event)

    def picture(self, frame: RedactedFrame) -> None:
        with self._lock:
            for sink in self.sinks:
                sink.picture(frame)
        faces = [events.to_plain(face) for face in frame.faces]
        payload = {"frame_id": frame.frame_id, "withheld": frame.withheld, "reason": frame.reason, "faces": faces}
        self.event("picture", frame.t_ns, payload)


def refuse_overwriting(config: Config, file: Path | None = None) -> None:
    """Refuse file sinks that would take the place of what the run reads, or of each other.

    Parameters
    ----------
    config : Config
    file : Path, optional
        The settings file.

    Raises
    ------
    SinkError
    """
    read = [(key, Path(text)) for key, text in _read_files(config).items() if text]
    taken = [(f"is the source itself, {key}", path) for key, path in read]
    folders = [(key, path, "**/*" if key == "environment.cache" else "*") for key, path in read if path.is_dir()]
    folders.append(("keys.dir", keys_dir(config.keys.dir), "**/*"))
    if config.record.dir:
        folders.append(("record.dir", Path(config.record.dir), "*Z-*/*"))  # sessions: others may lie beside them
    if file is not None:
        taken.append(("is the source itself, the settings file", file))
    for name in PLAINTEXT:
        if not (text := getattr(config.sinks, name)):
            continue
        written = (Path(text), part_of(Path(text)))
        if any(path.exists() for path in written):  # only then can it be a file in a folder, by whatever name
            taken += [(f"is one of the files in {key}", path) for key, at, kind in folders for path in at.glob(kind)]
        for what, path in taken:
            if any(is_same_file(path, other) for other in written):
                raise SinkError(f"sinks.{name} = {text}", what, fix="choose another output")
        taken += [(f"is sinks.{name} too", path) for path in written]


def _read_files(config: Config) -> dict[str, str]:
    """Return the settings that may name a file or folder to read, as paths; cameras and streams are among them."""
    played = {
        "scene.source": config.scene.source,
        "face_camera.source": config.face_camera.source,
        "gaze.source": config.gaze.source,
    }
    return {
        **{key: _path_of(text) for key, text in played.items()},
        "environment.cache": config.environment.cache,
        "gaze.geometry": config.gaze.geometry,
        "gaze.calibration": config.gaze.calibration,
        "governor.ladder": config.governor.ladder,
        "telemetry.source": config.telemetry.source,
        "record.consent": config.record.consent,
        "dp.ledger": config.dp.ledger,
    }


def _path_of(source: str) -> str:
    """Return the path in the name of a source that is played from files."""
    path = source.removeprefix("paced:").removesuffix("?loop")
    return path.removeprefix(SOURCE_PREFIX).partition("?identity=")[0] if path.startswith(SOURCE_PREFIX) else path


def refused_sinks(config: Config) -> list[str]:
    """Return the file sinks that may not start. What is refused is said.

    A file in the clear: a clinical run goes on without it, any other is refused. An encrypted one (``.age``) needs a
    consent like every recording; the run goes on without it, and without any log or clip whose data was not agreed to.

    Raises
    ------
    ConfigError
        A plaintext file is asked for without `sinks.allow_plaintext`, and the preset isn't clinical.
    """
    named = [name for name in PLAINTEXT if getattr(config.sinks, name)]
    wanted = [name for name in named if not is_encrypted(getattr(config.sinks, name))]
    stopped = _without_consent(config, named)
    if config.dp.epsilon and "video" in named and "video" not in stopped:
        print("emogaze: sinks.video is not started: under differential privacy no picture leaves", file=sys.stderr)
        stopped.append("video")
    if config.sinks.allow_plaintext or not wanted:
        clear = [f"sinks.{name}" for name in wanted if name not in stopped]
        if clear and config.preset == "clinical":
            names = ", ".join(clear)
            print(f"emogaze: written in the clear, as sinks.allow_plaintext has it: {names}", file=sys.stderr)
        return stopped
    if config.preset == "clinical":
        for name in wanted:
            print(f"emogaze: sinks.{name} is not started: it would write in the clear", file=sys.stderr)
        return [name for name in named if name in (*wanted, *stopped)]
    raise ConfigError(
        f"sinks.{wanted[0]}",
        "would write a file in the clear",
        fix="set sinks.allow_plaintext = true if that is what you want",
    )


def _without_consent(config: Config, named: list[str]) -> list[str]:
    """Return which of the `named` files a lack of consent stops; say once all that it stops."""
    encrypted = [name for name in named if is_encrypted(getattr(config.sinks, name))]
    stopped = [f"sinks.{name}" for name in encrypted] + ["the recording"] * bool(config.record.dir)
    if not stopped and not config.record.consent:
        return []
    try:
        purposes = load_consent(config).purposes
    except ConsentError as error:
        what = "no sink gets anything" if config.record.consent else f"not started: {', '.join(stopped)}"
        print(f"emogaze: {what}: {error}", file=sys.stderr)
        return [name for name in named if name in encrypted or (config.record.consent and name != "summary")]
    if "video" in named and "redacted_video" not in purposes:
        print("emogaze: sinks.video is not started: the consent is not to redacted_video", file=sys.stderr)
        return ["video"]
    return []


def without_sinks(config: Config, names: list[str]) -> Config:
    """Return `config` with the named sinks switched off."""
    sinks = msgspec.structs.replace(config.sinks, **dict.fromkeys(names, ""))
    return msgspec.structs.replace(config, sinks=sinks)


def open_sinks(config: Config, header: dict[str, Any], stack: ExitStack) -> list[Sink]:
    """Open every sink that the settings switch on; `stack` closes them."""
    modules = (plugins.load("edge.sinks", name, setting="sinks") for name in plugins.names("edge.sinks"))
    opened = (module.open_sink(config, header) for module in modules)
    return guard_sinks([stack.enter_context(sink) for sink in opened if sink is not None], config, header)


def public_settings(config: Config) -> dict[str, Any]:
    """Return the settings as headers and reports show them: without users and passwords in the names of sources."""
    values = to_dict(config)
    for section in ("scene", "face_camera", "gaze"):
        values[section]["source"] = public_name(values[section]["source"])
    return values


def recorded_to(config: Config, header: dict[str, Any]) -> str:
    """Return the folder of the session that is being recorded; empty if none is."""
    session = header.get("recording", {}).get("session", "")
    return str(Path(config.record.dir) / session) if session else ""


def not_recorded(header: dict[str, Any]) -> str:
    """Return why a session that was to be recorded is not; empty if it is, or if none was asked for."""
    recording = header.get("recording", {})
    return str(recording["reason"]) if recording.get("state") == "off" else ""


def guard_sinks(sinks: list[Sink], config: Config, header: dict[str, Any]) -> list[Sink]:
    """Put every sink behind what was agreed to, and all of them behind differential privacy, where these are on."""
    if config.record.consent:
        sinks = _limited(sinks, config)
    if config.dp.epsilon:
        session = header.get("recording", {}).get("session") or secrets.token_hex(8)
        sinks = [PrivateSink(sinks, config.dp, session)]
    return sinks


def _limited(sinks: list[Sink], config: Config) -> list[Sink]:
    """Put every sink behind the consent, and ask whether it still holds while the run goes on.

    A recorder asks for itself, and fails; the metrics keep nothing, and without health the loop would seem stuck.
    """
    try:
        consent = load_consent(config)
    except ConsentError:
        return [LimitedSink(sink, ()) for sink in sinks]  # `refused_sinks` has said why
    folder = Path(config.record.dir) if config.record.dir else None

    def problem() -> str:
        return consent_problem(folder, consent, now=datetime.now(timezone.utc))

    asked = {sink.name: problem for sink in sinks if sink.name not in ("recorder", "metrics")}
    return [LimitedSink(sink, consent.purposes, asked.get(sink.name, str)) for sink in sinks]
