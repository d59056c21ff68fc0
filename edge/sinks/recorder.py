"""The encrypted recording as a sink: a bounded queue before a thread that writes the session."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from collections import deque
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edge.config import Config
from edge.consent import ConsentError, LimitedSink, consent_problem, load_consent
from edge.errors import ConfigError, RecordingError
from edge.files import plain
from edge.keys import KeyRing, harden_process, keys_dir
from edge.records import Event, RedactedFrame
from edge.session.audit import append_audit
from edge.session.retention import purge
from edge.session.writer import END, Item, SessionKeys, SessionWriter, metadata_json
from edge.sinks.base import Sink, require_redacted

CLOSE_WAIT_S = 30.0

log = logging.getLogger(__name__)


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    """Start a session if the settings ask for one and a valid consent allows it.

    Without a valid consent the runtime runs and nothing is recorded; `header["recording"]` says why, and who starts the
    run has said it (`edge.outputs.refused_sinks`).

    Raises
    ------
    KeyFileError, RecordingError
        A key is missing, there are not two recipients, the folder can't be written or is taken.
    """
    settings = config.record
    if not settings.dir:
        return None
    ring = KeyRing(keys_dir(config.keys.dir))
    folder = Path(settings.dir)
    try:
        consent = load_consent(config)
    except ConsentError as error:
        header["recording"] = {"state": "off", "reason": str(error)}
        return None
    _require_packages()
    keys = SessionKeys(ring.signing(), tuple(ring.recipients().values()))
    lock = FolderLock(folder)
    try:
        harden_process()
        try:
            purge(folder, ring, days=settings.retention_days)
        except RecordingError as error:  # what can't be read any more stops no new session
            log.warning("%s", error)
        metadata = {
            "emogaze.consent": metadata_json(json.loads(Path(settings.consent).read_text(encoding="utf-8"))),
            "emogaze.header": metadata_json(plain(header)),
        }
        writer = SessionWriter(
            settings,
            keys,
            {"consent": consent.id},
            metadata,
            may_go_on=lambda: consent_problem(folder, consent, now=datetime.now(timezone.utc)),
        )
    except BaseException:
        lock.release()
        raise
    append_audit(ring, "session_start", session=writer.paths.name, consent=consent.id)
    header["recording"] = {"state": "on", "session": writer.paths.name, "purposes": sorted(consent.purposes)}
    return LimitedSink(Recorder(writer, settings.queue, lock), consent.purposes)


def _require_packages() -> None:
    missing = [name for name in ("pyrage", "mcap", "cryptography") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            "record.dir", f"recording needs {', '.join(missing)}", fix="pip install 'emogaze-edge[record]'"
        )


class Recorder(Sink):
    """Record into one session. `event` and `picture` only put into memory; a thread encrypts and writes.

    A full queue drops the newcomer and counts it: a recording must never slow the scores.

    Parameters
    ----------
    writer : SessionWriter
        The session to write.
    limit : int
        Items that may wait.
    lock : FolderLock, optional
        Released when the session is closed.
    """

    name = "recorder"

    def __init__(self, writer: SessionWriter, limit: int, lock: FolderLock | None = None) -> None:
        self.writer = writer
        self.dropped_events = 0
        self.dropped_pictures = 0
        self._limit, self._lock = limit, lock
        self._queue: deque[Item] = deque()
        self._ready = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=writer.record, args=(self._take,), name="recorder", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many events and pictures the disk was too slow for."""
        return self.dropped_events + self.dropped_pictures

    def event(self, event: Event) -> None:
        self.dropped_events += self._put(event)

    def picture(self, frame: RedactedFrame) -> None:
        # Half of the queue is kept for events: they are small, and scores can't be recomputed without them.
        self.dropped_pictures += self._put(require_redacted(frame), share=2)

    def close(self) -> None:
        with self._ready:
            counts = {"dropped_events": self.dropped_events, "dropped_pictures": self.dropped_pictures}
            self.writer.dropped = {name: count for name, count in counts.items() if count}
            self._closing = True
            self._ready.notify()
        self._thread.join(CLOSE_WAIT_S)
        if self._lock:
            self._lock.release()
        if self._thread.is_alive():
            raise RecordingError(
                str(self.writer.paths.folder), f"the disk didn't take the rest in {CLOSE_WAIT_S:.0f} s"
            )

    def _put(self, item: Item, *, share: int = 1) -> int:
        if not self._thread.is_alive() and not self._closing:
            raise RecordingError(str(self.writer.paths.folder), f"recording stopped: {self.writer.stopped}")
        with self._ready:
            if len(self._queue) >= self._limit // share:
                return 1
            self._queue.append(item)
            self._ready.notify()
        return 0

    def _take(self, timeout_s: float) -> Item | None:
        with self._ready:
            if not self._queue and not self._closing:
                self._ready.wait(timeout_s)
            if self._queue:
                return self._queue.popleft()
            if self._closing:
                return END
        raise TimeoutError


class FolderLock:
    """One writer per recording folder; the lock goes with its process, however that ends."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RecordingError(
                str(folder), f"can't be written: {error.strerror}", fix="set record.dir to a writable folder"
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 32, 0).decode("ascii", "replace").strip()
            os.close(self._handle)
            raise RecordingError(
                str(folder), f"process {holder} records into it", fix="give each runtime its own record.dir"
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let go. May be called twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
