"""Consent: a signed record that says who agreed to what until when, and what may be kept because of it.

A record is one JSON file, signed by an operator whose public key the device trusts. The subject is a pseudonym; who
that is stays with whoever took the consent. Embeddings and gaze are biometric data, so they are purposes of their own.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.clock import NS_PER_S, Clock, monotonic_ns
from edge.config import Config
from edge.errors import RecordingError
from edge.files import decode_document
from edge.keys import NAME, KeyRing, fingerprint, keys_dir
from edge.records import Event, RedactedFrame
from edge.session.layout import withdrawal_marker
from edge.sinks.base import Sink

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

log = logging.getLogger(__name__)

VERSION = 1
SKEW = timedelta(minutes=5)  #: by which the clock of the device may be behind that of who took the consent
DOMAIN = b"emogaze consent 1\n"
#: What each purpose allows to keep.
PURPOSES = {
    "scores": "scores, emotion labels, fixated region and data quality",
    "gaze": "gaze samples, fixations, pupil and eyelid values",
    "features": "embeddings of what was looked at and of faces",
    "physiology": "auxiliary streams: EEG, heart rate",
    "redacted_video": "pictures with faces covered",
    "raw_video": "pictures as the camera gave them (no sink of this version records them)",
}
#: What each kind of event falls under. One that isn't listed needs every purpose but the pictures: a kind of next year
#: stays out until somebody has thought about it.
KINDS = {
    **dict.fromkeys(("session", "end", "health", "stream", "deadline_missed", "mark", "restart"), "scores"),
    "precision": "scores",
    **dict.fromkeys(("score", "alert", "attention", "telemetry", "private_gaze"), "scores"),
    **dict.fromkeys(("gaze", "fixation"), "gaze"),
    "aux": "physiology",
    "picture": "redacted_video",
}
#: Of a `score` event, key by key; what isn't listed is treated as above.
SCORE_KEYS = {
    **dict.fromkeys(("frame_id", "width", "height", "emotion", "telemetry", "precision", "score"), "scores"),
    **dict.fromkeys(("embedding", "withhold"), "scores"),
    **dict.fromkeys(("gaze", "gaze_px", "fixation"), "gaze"),
    **dict.fromkeys(("faces", "features"), "features"),
}
ALL_DATA = frozenset({"scores", "gaze", "features", "physiology"})


@dataclass(frozen=True, slots=True)
class Consent:
    """A consent record whose signature holds."""

    id: str
    subject: str
    purposes: frozenset[str]
    issued: datetime
    expires: datetime
    taken_by: str
    operator: str

    def allows(self, purpose: str) -> bool:
        """Whether `purpose` was agreed to."""
        return purpose in self.purposes


class ConsentError(RecordingError):
    """A consent record can't be used."""


def new_consent(
    key: Ed25519PrivateKey, subject: str, purposes: Collection[str], days: float, taken_by: str, *, now: datetime
) -> dict[str, Any]:
    """Return a signed record as plain values.

    Raises
    ------
    ValueError
        An unknown or no purpose, a subject that is no pseudonym, or a validity that is not positive.
    """
    unknown = sorted(set(purposes) - set(PURPOSES))
    if unknown or not purposes:
        raise ValueError(f"purposes: expected some of {', '.join(PURPOSES)}, got {', '.join(unknown) or 'none'}")
    for what, text in (("subject", subject), ("taken_by", taken_by)):
        if not NAME.fullmatch(text):
            raise ValueError(f"{what}: expected a pseudonym of letters, digits, dot and dash, got {text!r}")
    if not days > 0:
        raise ValueError(f"days: expected more than 0, got {days:g}")
    body = {
        "schema": "emogaze.consent",
        "version": VERSION,
        "id": secrets.token_hex(8),
        "subject": subject,
        "purposes": sorted(purposes),
        "issued": _time_text(now),
        "expires": _time_text(now + timedelta(days=days)),
        "taken_by": taken_by,
        "operator": fingerprint(key.public_key().public_bytes_raw()),
    }
    return {**body, "signature": base64.b64encode(key.sign(_signed_bytes(body))).decode()}


def read_consent(path: Path, operators: dict[str, Ed25519PublicKey], *, now: datetime) -> Consent:
    """Read a consent record and check signature, version and time.

    Parameters
    ----------
    path : Path
        The record.
    operators : dict
        Name to public key of the operators that the device trusts.
    now : datetime
        With a time zone.

    Raises
    ------
    ConsentError
        It is missing, not readable, of a newer version, signed by nobody trusted, altered, or out of its time.
    """
    body = _load(path)
    signature = body.pop("signature", "")
    if body.get("schema") != "emogaze.consent" or not isinstance(body.get("version"), int):
        raise ConsentError(str(path), "is no consent record", fix="`emogaze consent new` makes one")
    if body["version"] > VERSION:
        raise ConsentError(str(path), "is of a newer version", expected=str(VERSION), got=str(body["version"]))
    _check_signature(path, body, str(signature), operators)
    try:
        consent = Consent(
            id=_checked_id(body["id"]),
            subject=str(body["subject"]),
            purposes=frozenset(body["purposes"]),
            issued=_parse_time(body["issued"]),
            expires=_parse_time(body["expires"]),
            taken_by=str(body["taken_by"]),
            operator=str(body["operator"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConsentError(str(path), f"a field is missing or wrong: {error}") from None
    if not consent.issued - SKEW <= now < consent.expires:
        state = "has expired" if now >= consent.expires else "is not valid yet (is the clock right?)"
        raise ConsentError(
            str(path), state, expected=f"a time from {body['issued']} to {body['expires']}", got=_time_text(now)
        )
    return consent


def load_consent(config: Config, *, now: datetime | None = None) -> Consent:
    """Return the consent that the settings name, checked; `now` is the system's time by default.

    Raises
    ------
    ConsentError
        None is named, it can't be used, or it was withdrawn on this device.
    """
    settings, now = config.record, now or datetime.now(timezone.utc)
    if not settings.consent:
        raise ConsentError("record.consent", "names no consent record", fix="`emogaze consent new` makes one")
    operators = KeyRing(keys_dir(config.keys.dir)).operators()
    consent = read_consent(Path(settings.consent), operators, now=now)
    if settings.dir and (problem := consent_problem(Path(settings.dir), consent, now=now)):
        raise ConsentError(settings.consent, problem, fix="take a new one")
    return consent


def consent_problem(folder: Path | None, consent: Consent, *, now: datetime) -> str:
    """Return why a consent that was good doesn't hold any more: it ran out, or was withdrawn on this device.

    A withdrawal lies in the recording `folder`; without one, time alone is looked at.
    """
    if now >= consent.expires:
        return f"consent {consent.id} has expired"
    withdrawn = folder is not None and withdrawal_marker(folder, consent.id).exists()
    return f"consent {consent.id} was withdrawn" if withdrawn else ""


def limit_event(event: Event, purposes: Collection[str]) -> Event | None:
    """Return the event with only what `purposes` allow, or None if nothing of it may be kept.

    Of `end` at least the fact stays: without it nobody could tell a whole log from one that was cut off.
    """
    if not _allowed(KINDS.get(event.kind), purposes):
        return replace(event, payload={}) if event.kind == "end" else None
    if event.kind != "score":
        return event
    payload = {key: value for key, value in event.payload.items() if _allowed(SCORE_KEYS.get(key), purposes)}
    return Event(event.seq, event.t_ns, event.t_emit_ns, event.kind, payload)


def _allowed(purpose: str | None, purposes: Collection[str]) -> bool:
    return purpose in purposes if purpose else set(purposes) >= ALL_DATA


class LimitedSink(Sink):
    """A sink behind a consent: it gets what the purposes allow while the consent holds, and nothing else.

    Parameters
    ----------
    sink : Sink
        The one behind.
    purposes : collection of str
        What was agreed to.
    problem : callable
        Asked once a second: why the consent doesn't hold any more, or an empty text.
    clock : callable
        Host-monotonic nanoseconds.
    """

    def __init__(
        self, sink: Sink, purposes: Collection[str], problem: Callable[[], str] = str, clock: Clock = monotonic_ns
    ) -> None:
        self.name = sink.name
        self.sink, self.purposes = sink, frozenset(purposes)
        self._problem, self._clock, self._ask_ns = problem, clock, clock() + NS_PER_S

    @property
    def dropped(self) -> int:
        """What the sink behind lost."""
        return getattr(self.sink, "dropped", 0)

    def event(self, event: Event) -> None:
        self._ask()
        limited = limit_event(event, self.purposes)
        if limited is not None:
            self.sink.event(limited)

    def picture(self, frame: RedactedFrame) -> None:
        self._ask()
        if "redacted_video" in self.purposes:
            self.sink.picture(frame)

    def close(self) -> None:
        self.sink.close()

    def _ask(self) -> None:
        now_ns = self._clock()
        if not self.purposes or now_ns < self._ask_ns:
            return
        self._ask_ns = now_ns + NS_PER_S
        if problem := self._problem():
            self.purposes = frozenset()
            log.warning("sink %s gets nothing more: %s", self.name, problem)


def _load(path: Path) -> dict[str, Any]:
    try:
        body = decode_document(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConsentError(str(path), "no such consent record") from None
    except OSError as error:
        raise ConsentError(str(path), f"can't be read: {error.strerror}") from None
    except ValueError:
        raise ConsentError(str(path), "is no consent record: no JSON", fix="take the consent anew") from None
    if not isinstance(body, dict):
        raise ConsentError(str(path), "is no consent record", fix="`emogaze consent new` makes one")
    return body


def _check_signature(path: Path, body: dict[str, Any], signature: str, operators: dict[str, Ed25519PublicKey]) -> None:
    from cryptography.exceptions import InvalidSignature

    by_id = {fingerprint(key.public_bytes_raw()): key for key in operators.values()}
    key = by_id.get(str(body.get("operator")))
    if key is None:
        raise ConsentError(
            str(path),
            f"is signed by operator {body.get('operator')}, whom this device doesn't trust",
            expected=", ".join(by_id) or "an operator's key in the key folder",
            fix="`emogaze keys trust operators NAME FILE.pub`",
        )
    try:
        key.verify(base64.b64decode(signature, validate=True), _signed_bytes(body))
    except (InvalidSignature, binascii.Error, ValueError):
        raise ConsentError(str(path), "was altered: its signature doesn't match", fix="take the consent anew") from None


def _signed_bytes(body: dict[str, Any]) -> bytes:
    return DOMAIN + json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _checked_id(text: str) -> str:
    """Return the id, which becomes a file's name, if it is one."""
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        raise ValueError(f"id {text!r}")
    return text


def _time_text(time: datetime) -> str:
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
