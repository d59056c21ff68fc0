"""A session being recorded: segments, checkpoints, rotation, and a clean stop when the disk says no.

One thread runs `record`. Order of durability: the data first, then the checkpoint that names it; so whatever a
checkpoint covers was on disk before it, and a session that holds less than its newest checkpoint was shortened by
somebody.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.clock import NS_PER_MS, NS_PER_S, Clock, monotonic_ns, session_epoch
from edge.config import RecordConfig
from edge.errors import RecordingError
from edge.keys import public_text
from edge.processes import child_environment
from edge.records import Event, RedactedFrame
from edge.session.chain import ChainWriter
from edge.session.disk import Disk
from edge.session.layout import FORMAT, SessionPaths
from edge.session.segment import Picture, SegmentWriter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MB = 1 << 20
END = None  #: what `take` returns when no item will come any more
Item = Event | RedactedFrame
#: Wait at most so many seconds for an item: the item, END, or TimeoutError.
Take = Callable[[float], "Item | None"]


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """What a session is written with: the device's signing key, and the study's recipients."""

    signing: Ed25519PrivateKey
    study: tuple[str, ...]


class SessionWriter:
    """Records one session into a new folder under `settings.dir`.

    Parameters
    ----------
    settings : RecordConfig
        Where, how often, how large.
    keys : SessionKeys
        The keys.
    header : dict
        What the session's first line says besides: the consent's id. Plain text; no names, no subject.
    metadata : dict
        Name to text values, written encrypted into each segment (configuration, consent record).
    may_go_on : callable
        Asked at each flush: why recording must stop now, or an empty text.
    disk, clock
        Injected by tests.
    """

    def __init__(
        self,
        settings: RecordConfig,
        keys: SessionKeys,
        header: dict[str, Any],
        metadata: dict[str, dict[str, str]],
        *,
        may_go_on: Callable[[], str] = str,
        disk: Disk | None = None,
        clock: Clock = monotonic_ns,
    ) -> None:
        from edge import __version__

        self._settings, self._metadata, self._clock, self._may_go_on = settings, metadata, clock, may_go_on
        self._disk = disk or Disk()
        _, self._unix_ns = session_epoch()
        self.paths = SessionPaths(Path(settings.dir) / _session_name(self._unix_ns))
        self.stopped = ""  #: why recording ended before it was told to
        self.dropped: dict[str, int] = {}  #: what never reached the writer; written into the last line
        self._take: Take = _nothing
        self._ended = False
        self._number = 0
        self._segment: SegmentWriter
        self.recipient, sealed = fresh_recipient(keys.study)
        try:
            self._begin(sealed, keys, {"software": __version__, "recipient": self.recipient, **header})
        except OSError as error:
            raise RecordingError(settings.dir, f"can't be written: {error.strerror}") from error

    def _begin(self, sealed: bytes, keys: SessionKeys, header: dict[str, Any]) -> None:
        folder = self.paths.folder
        folder.mkdir(parents=True, mode=0o700)
        handle = self._disk.create(self.paths.key)
        self._disk.append(handle, sealed)
        self._disk.sync(handle)
        self._disk.close(handle)
        self._chain = ChainWriter(self.paths.chain, keys.signing, disk=self._disk)
        facts = {
            "format": FORMAT,
            "session": folder.name,
            "created": self._unix_ns // NS_PER_S,
            "signer": public_text(keys.signing.public_key()),
            "key_sha256": hashlib.sha256(sealed).hexdigest(),
        }
        self._chain.append("start", **facts, **header)
        self._disk.sync_dir(folder)
        self._disk.sync_dir(folder.parent)

    def record(self, take: Take) -> None:
        """Record what `take` gives until it gives END, the disk is full, or free space runs short.

        Afterwards `stopped` says why it ended early, if it did.
        """
        self._take = take
        try:
            while not self._ended:
                self._write_segment()
            stopped = {"stopped": self.stopped} if self.stopped else {}
            self._chain.append("close", **self._position(), **stopped, **self.dropped)
        except Exception as error:  # noqa: BLE001 - age wraps what was raised in its callbacks; `_fail` names it
            self._fail(error)
        finally:
            self._chain.close()

    def _write_segment(self) -> None:
        path = self.paths.segment(self._number)
        now = self._clock()
        self._segment = segment = SegmentWriter(path, self.recipient, self._fill, disk=self._disk)
        self._disk.sync_dir(path.parent)
        self._segment_end_ns = now + int(self._settings.segment_s * NS_PER_S)
        self._next_flush_ns = now + self._settings.flush_ms * NS_PER_MS
        # The first checkpoint follows the first flush, so that a short session has one too.
        self._next_checkpoint_ns = self._next_flush_ns + self._settings.flush_ms * NS_PER_MS
        monotonic, unix = session_epoch()
        clock = {"monotonic_ns": str(monotonic), "unix_ns": str(unix), "segment": str(self._number)}
        segment.body.start({"emogaze.segment": clock, **self._metadata})
        segment.encrypt()
        if not segment.finished:
            raise RecordingError(str(path), "encryption ended before the segment did")
        if not self._ended:
            self._chain.append("rotate", **self._position())
        segment.file.close()
        self._number += 0 if self._ended else 1

    def _fill(self) -> None:
        """Take items until there is something to encrypt. All that was added before is encrypted and on disk."""
        segment = self._segment
        now = self._clock()
        if segment.file.size and now >= self._next_checkpoint_ns:
            self._chain.append("checkpoint", **self._position(), t_ns=now)
            self._next_checkpoint_ns = now + int(self._settings.checkpoint_s * NS_PER_S)
        if segment.file.size >= self._settings.segment_mb * MB or now >= self._segment_end_ns:
            segment.finish()
            return
        try:
            item = self._take(max(self._next_flush_ns - now, 0) / NS_PER_S)
        except TimeoutError:
            self._flush(segment)
            return
        if isinstance(item, Event):
            segment.body.add_event(item)
        elif isinstance(item, RedactedFrame):
            segment.body.add_picture(_compress(item, self._settings.jpeg_quality))
        else:
            self._ended = True
            segment.finish()
        if not self._ended and self._clock() >= self._next_flush_ns:
            self._flush(segment)

    def _flush(self, segment: SegmentWriter) -> None:
        self._next_flush_ns = self._clock() + self._settings.flush_ms * NS_PER_MS
        self.stopped = self._may_go_on() or self._space_problem()
        if self.stopped:
            self._ended = True
            segment.finish()
        else:
            segment.body.settle()

    def _space_problem(self) -> str:
        free, least = self._disk.free_bytes(self.paths.folder) // MB, self._settings.min_free_mb
        return f"{free} MB are left on the disk, fewer than record.min_free_mb = {least}" if free < least else ""

    def _position(self) -> dict[str, Any]:
        file = self._segment.file
        return {"segment": self._number, "size": file.size, "span": file.take_span()}

    def _fail(self, error: Exception) -> None:
        """End after an error: drop the block that is half written, which also frees space for the last line."""
        cause = self._segment.error or error
        self.stopped = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        try:
            self._segment.file.cut_back()
            self._chain.append("stop", **self._position(), stopped=self.stopped)
            self._segment.file.close()
        except OSError as second:
            self.stopped += f" (and no last checkpoint: {second.strerror})"


def fresh_recipient(study: tuple[str, ...]) -> tuple[str, bytes]:
    """Make a session's identity, and return its recipient and the identity encrypted to the study.

    It is made by a process of its own, which ends: this one never sees the identity.

    Raises
    ------
    RecordingError
        pyrage is missing, or the process failed.
    """
    child = subprocess.run(
        [sys.executable, "-m", "edge.session.fresh"],
        env=child_environment(),
        input="\n".join(study),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,  # Ctrl-C in a terminal is for this process, which ends when it can
    )
    lines = child.stdout.split()
    if child.returncode != 0 or len(lines) != 2:
        last = child.stderr.strip().splitlines()[-1:] or ["no output"]
        raise RecordingError("session key", f"can't be made: {last[0]}", fix="pip install 'emogaze-edge[record]'")
    return lines[0], base64.b64decode(lines[1])


def _session_name(unix_ns: int) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(unix_ns // NS_PER_S))
    return f"{stamp}-{secrets.token_hex(4)}"


def _compress(frame: RedactedFrame, quality: int) -> Picture:
    """Return the frame as JPEG: each picture stands alone, so that a cut or a bad chunk costs no other picture."""
    import cv2

    done, jpeg = cv2.imencode(".jpg", frame.image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise RecordingError("picture", f"can't be compressed: {frame.image.shape}")
    return Picture(frame.frame_id, frame.t_ns, frame.role, frame.source, jpeg.tobytes(), frame.withheld, frame.reason)


def _nothing(_: float) -> Item | None:
    return END


def metadata_json(values: dict[str, Any]) -> dict[str, str]:
    """Return values as an MCAP metadata record holds them: text under one key."""
    return {"json": json.dumps(values, sort_keys=True)}
