"""Commands over the network: a CURVE socket in front of the control socket, for clients with the right `control`.

A client first says hello and gets a token of this run and the number of its last command. Each command then carries the
token and a number that is higher than any before it; so a command that was heard once, in this run or an earlier one,
is refused when it comes again.

    {"cmd": "hello"}                                        -> {"ok": true, "token": "9f…", "n": 0}
    {"cmd": "mark", "text": "…", "token": "9f…", "n": 1}    -> {"ok": true, "t_ns": 123}
    the same again                                          -> {"ok": false, "error": "is a replay: …"}
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import zmq

from edge.clock import NS_PER_S, Clock, monotonic_ns
from edge.curve import Gatekeeper, connect_as, connect_to
from edge.errors import KeyFileError, SinkError
from edge.files import decode_document
from edge.keys import KeyRing
from edge.live.control import Answer, Replier

log = logging.getLogger(__name__)
POLL_MS = 200
COMMANDS_PER_S = 5.0
BURST = 10.0
ANSWER_TIMEOUT_S = 8.0


class CommandGuard:
    """Decides whether a client's command may pass: right token, a new number, not too many. Pure but for its memory."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.last: Counter[str] = Counter()
        self._allowance: dict[str, tuple[float, int]] = {}

    def problem(self, client: str, values: dict[str, Any], now_ns: int) -> str:
        """Return why a command is refused, or an empty text; a command that passes can't pass again."""
        if not self._has_allowance(client, now_ns):
            return f"is one too many: at most {COMMANDS_PER_S:g} commands a second"
        if values.get("cmd") == "hello":
            return ""
        if values.get("token") != self.token:
            return "is of another run: say hello first"
        number = values.get("n")
        if not isinstance(number, int) or isinstance(number, bool):
            return "has no number n"
        if number <= self.last[client]:
            return f"is a replay: number {number}, the last was {self.last[client]}"
        self.last[client] = number
        return ""

    def _has_allowance(self, client: str, now_ns: int) -> bool:
        left, since_ns = self._allowance.get(client, (BURST, now_ns))
        left = min(BURST, left + (now_ns - since_ns) / NS_PER_S * COMMANDS_PER_S)
        self._allowance[client] = (left - 1 if left >= 1 else left, now_ns)
        return left >= 1


class RemoteControl:
    """Serves `address` until closed.

    Parameters
    ----------
    address : str
        ZeroMQ address, such as ``tcp://*:5572``.
    ring : KeyRing
        The device's keys and clients.
    respond : callable
        Answers one request line: `edge.live.control.ControlServer.respond`.

    Raises
    ------
    KeyFileError
        There is no wire key or no client.
    SinkError
        The port is in use.
    """

    def __init__(
        self, address: str, ring: KeyRing, respond: Callable[[bytes], Answer], *, clock: Clock = monotonic_ns
    ) -> None:
        self._respond, self._clock = respond, clock
        self._guard = CommandGuard(secrets.token_hex(16))
        self._reply = Replier("live.control_address", self._answer)
        self._context: zmq.Context[Any] = zmq.Context()
        try:
            self.gatekeeper = Gatekeeper(self._context, ring)
        except KeyFileError:
            self._context.term()
            raise
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, POLL_MS)
        self.gatekeeper.secure(self._socket, "control")
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.gatekeeper.close()
            self._context.destroy(linger=0)
            raise SinkError("live.control_address", f"can't listen on {address}: {error.strerror}") from None
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="remote-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving. May be called twice."""
        self._closing.set()
        self._thread.join(ANSWER_TIMEOUT_S)
        self.gatekeeper.close()
        if not self._context.closed:
            self._context.destroy(linger=POLL_MS)

    def _serve(self) -> None:
        while not self._closing.is_set():
            if self._socket.poll(POLL_MS):
                frame = self._socket.recv(copy=False)
                # A message of several frames is none of ours; its rest must be taken all the same.
                more = self._socket.getsockopt(zmq.RCVMORE)
                while self._socket.getsockopt(zmq.RCVMORE):
                    self._socket.recv()
                self._socket.send(self._reply(None if more else frame))

    def _answer(self, frame: zmq.Frame | None) -> Answer:
        if frame is None:
            return {"ok": False, "error": "has too many frames"}
        client = self.gatekeeper.name_of(str(frame.get("User-Id")))
        try:
            values = decode_document(frame.bytes)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            return {"ok": False, "error": "is no JSON object"}
        problem = self._guard.problem(client, values, self._clock())
        if problem:
            log.warning("a command of %s %s", client, problem)
            return {"ok": False, "error": problem}
        if values.get("cmd") == "hello":
            return {"ok": True, "token": self._guard.token, "n": self._guard.last[client]}
        command = {key: value for key, value in values.items() if key not in ("token", "n")}
        return self._respond(json.dumps(command).encode())


class RemoteClient:
    """Gives commands to a device.

    Parameters
    ----------
    address : str
        The device's ``live.control_address``.
    keys : (str, str)
        The client's CURVE keys.
    device : str
        The device's public key.
    """

    def __init__(self, address: str, keys: tuple[str, str], device: str) -> None:
        self._address = address
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        connect_as(self._socket, keys, device)
        connect_to(self._socket, address)
        self._token, self._n = "", 0

    def ask(self, timeout_s: float = ANSWER_TIMEOUT_S, **command: Any) -> Answer:
        """Send one command and return the answer.

        Raises
        ------
        SinkError
            No answer: nobody listens there, or this client may not give commands.
        """
        if not self._token:
            hello = self._send({"cmd": "hello"}, timeout_s)
            self._token, self._n = str(hello.get("token", "")), int(hello.get("n", 0))
        self._n += 1
        return self._send({**command, "token": self._token, "n": self._n}, timeout_s)

    def close(self) -> None:
        self._context.destroy(linger=0)

    def _send(self, values: dict[str, Any], timeout_s: float) -> Answer:
        self._socket.send(json.dumps(values).encode())
        if not self._socket.poll(int(timeout_s * 1000)):
            raise SinkError(
                self._address,
                f"no answer within {timeout_s:g} s",
                fix="is the device running, and does this client's key have the right control?",
            )
        answer: Answer = json.loads(self._socket.recv())
        return answer
