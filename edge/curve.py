"""Encrypted ZeroMQ (CURVE) with an allow-list: who may subscribe, who may see pictures, who may give commands.

A peer without CURVE, with the wrong key of the device, or with a key that isn't listed gets nothing: the handshake
fails, and it is counted and named. Each kind of socket is a domain of its own, and a client's key file says for
which it is good.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from edge.errors import KeyFileError, SinkError
from edge.keys import RIGHTS, KeyRing, fingerprint

if TYPE_CHECKING:
    import zmq
    import zmq.auth.thread

log = logging.getLogger(__name__)
HANDSHAKE_MS = 2000
MAX_INBOUND_BYTES = 4096


class Gatekeeper:
    """Answers for one ZeroMQ context who may connect to its CURVE sockets. Close it before the context.

    Parameters
    ----------
    context : zmq.Context
        The context of the sockets.
    ring : KeyRing
        The device's wire key and its clients.

    Raises
    ------
    KeyFileError
        There is no wire key, others can read it, or no client may connect.
    """

    def __init__(self, context: zmq.Context[Any], ring: KeyRing) -> None:
        from zmq.auth.thread import ThreadAuthenticator

        self._public, self._secret = ring.wire()
        self._clients = ring.clients()
        if not self._clients:
            raise KeyFileError(
                str(ring.folder / "clients"), "no client may connect", fix="`emogaze keys client NAME` lets one"
            )
        self.denied: Counter[str] = Counter()
        self._authenticator: zmq.auth.thread.ThreadAuthenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        for domain in RIGHTS:
            self._authenticator.configure_curve_callback(domain, self)
        self._monitors: list[HandshakeMonitor] = []

    def secure(self, socket: zmq.Socket[Any], right: str) -> None:
        """Make a socket a CURVE server for clients that have `right`; call it before `bind`."""
        socket.curve_server = True
        socket.curve_secretkey = self._secret.encode()
        socket.curve_publickey = self._public.encode()
        socket.zap_domain = right.encode()
        socket.handshake_ivl = HANDSHAKE_MS
        socket.maxmsgsize = MAX_INBOUND_BYTES
        self._monitors.append(HandshakeMonitor(socket, right))

    def callback(self, domain: str, key: bytes) -> bool:
        """Say whether a client may connect; called by the authenticator."""
        for name, client in self._clients.items():
            if client.public == key.decode("ascii", "replace"):
                if domain in client.rights:
                    return True
                self._deny(domain, f"{name} has no right to {domain}")
                return False
        self._deny(domain, f"unknown key {fingerprint(key)}")
        return False

    def name_of(self, key: str) -> str:
        """Return the name of the client with this public key (Z85); empty if there is none."""
        return next((name for name, client in self._clients.items() if client.public == key), "")

    @property
    def refused(self) -> dict[str, int]:
        """How many handshakes failed, by reason."""
        found = Counter(self.denied)
        for monitor in self._monitors:
            found.update(monitor.failures)
        return dict(found)

    def close(self) -> None:
        """Stop answering. May be called twice."""
        for monitor in self._monitors:
            monitor.close()
        self._monitors = []
        if self._authenticator.is_alive():
            self._authenticator.stop()

    def _deny(self, domain: str, reason: str) -> None:
        self.denied[reason] += 1
        if self.denied[reason] == 1:  # a peer that tries again each second must not fill the log
            log.warning("%s: refused a client: %s", domain, reason)


class HandshakeMonitor:
    """Counts and names failed handshakes: no CURVE, wrong device key, plain TCP bytes, a key that isn't listed."""

    def __init__(self, socket: zmq.Socket[Any], name: str) -> None:
        import zmq

        self.failures: Counter[str] = Counter()
        self._reasons: dict[int, str] = {
            zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the peer hung up during the handshake, or spoke no ZeroMQ",
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the peer uses no CURVE, or the wrong key of this device",
            zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the key isn't among those that may connect",
        }
        self._socket, self._name = socket, name
        events = int(zmq.EVENT_MONITOR_STOPPED)
        for event in self._reasons:
            events |= int(event)
        self._monitor = socket.get_monitor_socket(events)
        self._thread = threading.Thread(target=self._run, name=f"handshakes-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.disable_monitor()
        self._thread.join(2)

    def _run(self) -> None:
        import zmq
        from zmq.utils.monitor import recv_monitor_message

        with self._monitor:
            while True:
                try:
                    event = recv_monitor_message(self._monitor)["event"]
                except zmq.ZMQError:
                    return
                if event == zmq.EVENT_MONITOR_STOPPED:
                    return
                reason = self._reasons[event]
                self.failures[reason] += 1
                if self.failures[reason] == 1:
                    log.warning("%s: handshake failed: %s", self._name, reason)


def connect_as(socket: zmq.Socket[Any], keys: tuple[str, str], device: str) -> None:
    """Make a socket a CURVE client with its (public, secret) keys, of the device with public key `device` (all Z85)."""
    if len(device) != 40:
        raise KeyFileError("device key", "is no wire key", expected="40 characters: wire.pub of the device")
    socket.curve_publickey, socket.curve_secretkey = (key.encode() for key in keys)
    socket.curve_serverkey = device.encode()


def connect_to(socket: zmq.Socket[Any], address: str) -> None:
    """Connect a socket to a device's address.

    Raises
    ------
    SinkError
        It is none.
    """
    import zmq

    try:
        socket.connect(address)
    except zmq.ZMQError as error:
        expected = "tcp://HOST:PORT or ipc://PATH"
        raise SinkError(address, f"is no address: {error.strerror}", expected=expected) from None
