"""The control socket: a Unix socket (0600) that takes one JSON object a line and answers with one.

    {"cmd": "status"}                      -> {"ok": true, "status": {...}}
    {"cmd": "mark", "text": "lights on"}   -> {"ok": true, "t_ns": 123}
    {"cmd": "record", "action": "start"}   -> {"ok": true, "session": "FOLDER"}
    {"cmd": "stop"}                        -> {"ok": true, "pictures": 12, "scores": 10}

A thread serves it; what concerns the loop waits in a bounded queue until the loop takes it. The lock beside the socket
makes a second runtime on the same device say so instead of stealing the cameras.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import queue
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.clock import monotonic_ns
from edge.errors import ConfigError, SinkError
from edge.files import decode_document

log = logging.getLogger(__name__)
MAX_REQUEST_BYTES = 4096
MAX_MARK_CHARACTERS = 500
REPLY_TIMEOUT_S = 5.0
_PATH_LIMIT = 107  #: of a Unix socket's address

Answer = dict[str, Any]


@dataclass(slots=True)
class Request:
    """One command for the loop. `t_ns`: when it came in. Answer it once."""

    cmd: str
    t_ns: int
    values: dict[str, Any]
    _answers: queue.Queue[Answer] = field(default_factory=lambda: queue.Queue(1))

    def answer(self, **values: Any) -> None:
        self._answers.put({"ok": True, **values})

    def refuse(self, why: str) -> None:
        self._answers.put({"ok": False, "error": why})

    def wait(self, timeout_s: float) -> Answer:
        try:
            return self._answers.get(timeout=timeout_s)
        except queue.Empty:
            return {"ok": False, "error": "the runtime didn't answer in time"}


class Replier:
    """Gives the reply of one request as JSON. Whatever goes wrong with it is its reply, and once a line in the log:
    no request may end the thread that serves the next one.

    Parameters
    ----------
    name : str
        Where requests come in, for the log.
    answer : callable
        Answers one request.
    """

    def __init__(self, name: str, answer: Callable[[Any], Answer]) -> None:
        self._name, self._answer, self._failed = name, answer, False

    def __call__(self, request: Any) -> bytes:
        try:
            return json.dumps(self._answer(request), default=str).encode()
        except Exception:
            if not self._failed:
                self._failed = True
                log.exception("%s: a request failed; further failures aren't logged", self._name)
            return b'{"ok": false, "error": "failed in the device; its log says how"}'


def default_path() -> Path:
    """Return where the socket lies by default: systemd's runtime folder, the user's, or one below /tmp."""
    for folder in (os.environ.get("RUNTIME_DIRECTORY"), os.environ.get("XDG_RUNTIME_DIR")):
        if folder:
            return Path(folder) / "emogaze.sock"
    return Path(f"/tmp/emogaze-{os.getuid()}/emogaze.sock")


def running_path() -> Path:
    """Return where a running device's socket lies: the default place, or that of the service."""
    own, service = default_path(), Path("/run/emogaze/emogaze.sock")
    return service if service.exists() and not own.exists() else own


class ControlServer:
    """Serves the socket at `path` until closed.

    Parameters
    ----------
    path : Path
        Where to listen.
    status : callable
        Gives the runtime's status as plain values; called in the serving thread.

    Raises
    ------
    SinkError
        Another runtime holds the lock, or the folder can't be written.
    """

    def __init__(self, path: Path, status: Callable[[], dict[str, Any]]) -> None:
        self._path, self._status = path, status
        self._requests: queue.Queue[Request] = queue.Queue(16)
        if len(str(path).encode()) > _PATH_LIMIT:
            raise ConfigError(
                "live.control", f"is longer than {_PATH_LIMIT} bytes", got=str(path), fix="choose a shorter path"
            )
        self._lock = _lock(path.with_name(path.name + ".lock"))
        path.unlink(missing_ok=True)  # left by a runtime that was killed: we hold its lock
        mask = os.umask(0o177)
        try:
            self._server = _Server(str(path), _handler_for(self))
        except OSError as error:
            os.close(self._lock)
            raise SinkError(str(path), f"can't listen: {error.strerror}") from error
        finally:
            os.umask(mask)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="control", daemon=True).start()

    def take(self) -> Request | None:
        """Return the next command for the loop, or None; never waits."""
        with contextlib.suppress(queue.Empty):
            return self._requests.get_nowait()
        return None

    def respond(self, line: bytes) -> Answer:
        """Answer one request line."""
        t_ns = monotonic_ns()
        if len(line) > MAX_REQUEST_BYTES:
            return {"ok": False, "error": "is too long"}
        try:
            values = decode_document(line)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            return {"ok": False, "error": "is no JSON object"}
        cmd = values.get("cmd")
        problem = _problem(cmd, values)
        if problem:
            return {"ok": False, "error": problem}
        if cmd == "status":
            return {"ok": True, "status": self._status()}
        request = Request(str(cmd), t_ns, values)
        try:
            self._requests.put_nowait(request)
        except queue.Full:
            return {"ok": False, "error": "too many commands are waiting"}
        return request.wait(REPLY_TIMEOUT_S)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _problem(cmd: object, values: dict[str, Any]) -> str:
    if cmd not in ("status", "stop", "mark", "record"):
        return f"there is no command {cmd!r}; expected status, stop, mark or record"
    text = values.get("text", "")
    if cmd == "mark" and not (isinstance(text, str) and len(text) <= MAX_MARK_CHARACTERS and _is_unicode(text)):
        return f"a mark is a text of at most {MAX_MARK_CHARACTERS} characters"
    if cmd == "record" and values.get("action") not in ("start", "stop"):
        return "record needs an action, start or stop"
    return ""


def _is_unicode(text: str) -> bool:
    """Tell whether a text can be written down: JSON can spell half a surrogate pair, UTF-8 can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 4


def _handler_for(control: ControlServer) -> type[socketserver.StreamRequestHandler]:
    reply = Replier("live.control", control.respond)

    class Handler(socketserver.StreamRequestHandler):
        timeout = REPLY_TIMEOUT_S

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while line := self.rfile.readline(MAX_REQUEST_BYTES + 1):
                    self.wfile.write(reply(line) + b"\n")
                    if len(line) > MAX_REQUEST_BYTES:
                        return

    return Handler


def _lock(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SinkError(str(path), f"can't be written: {error.strerror}", fix="set live.control") from error
    if path.parent.stat().st_uid not in (os.getuid(), 0):
        os.close(fd)
        raise SinkError(str(path.parent), "belongs to another user", fix="set live.control to a folder of your own")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(fd, 20).decode(errors="replace").strip()
        os.close(fd)
        raise SinkError(
            "live.control",
            f"another runtime (process {pid}) runs on this device",
            fix="stop it, or give this one another control socket",
        ) from None
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd


def ask(path: Path, **request: Any) -> Answer:
    """Send one command to a running runtime and return its answer.

    Raises
    ------
    SinkError
        No runtime listens there, or it doesn't answer.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(REPLY_TIMEOUT_S + 1)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = connection.makefile("rb").readline()
    except (FileNotFoundError, ConnectionRefusedError):
        raise SinkError(
            str(path), "no runtime listens here", fix="start one with `emogaze run`, or name its socket"
        ) from None
    except OSError as error:
        raise SinkError(str(path), f"the runtime can't be asked: {error}") from error
    answer: Answer = json.loads(line) if line else {"ok": False, "error": "the runtime closed the connection"}
    return answer
