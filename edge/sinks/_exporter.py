"""Prometheus metrics and health checks over HTTP, on this machine alone: /metrics, /healthz, /readyz.

All figures come from the event stream, like any sink's. `/healthz` is 200 while the loop reports and hasn't failed;
`/readyz` is 200 when scores can flow: ready or degraded, with the start behind it. Both answer with the state and its
reasons as JSON.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from edge.clock import NS_PER_S, Clock, monotonic_ns
from edge.errors import ConfigError, SinkError
from edge.records import Event
from edge.sinks.base import Sink

log = logging.getLogger(__name__)

CLIENT_S = 5.0  #: from its first byte to its last answer a client may take so long
MAX_CLIENTS = 16  #: at the same time; one more is hung up on
SILENT_NS = 5 * NS_PER_S  #: health events come every second; without any for this long the loop is stuck
MAX_PORT = 65535
STATES = ("starting", "building", "warming", "ready", "degraded", "failed")
_LOCAL = ("127.0.0.1", "localhost", "::1")
_STREAM_GAUGES = ("measured_hz", "declared_hz", "jitter_ms", "offset_ms", "drift_ppm", "age_ms")
_STREAM_COUNTS = ("samples", "gaps", "reordered", "duplicates", "jumps", "dropped", "restarts")


class MetricsServer(Sink):
    """Serves on `address` (``127.0.0.1:9464``).

    Raises
    ------
    ConfigError
        The address isn't on this machine.
    SinkError
        The port is in use.
    """

    name = "metrics"

    def __init__(self, address: str, clock: Clock = monotonic_ns) -> None:
        host, _, port = address.rpartition(":")
        if host.strip("[]") not in _LOCAL or not (port.isdecimal() and int(port) <= MAX_PORT):
            raise ConfigError(
                "sinks.metrics",
                "must be on this machine",
                expected=f"127.0.0.1:PORT, PORT up to {MAX_PORT}",
                got=address,
            )
        self._clock = clock
        self._health: dict[str, Any] = {"state": "starting", "reasons": []}
        self._heard_ns = clock()
        self._metrics = _Metrics()
        try:
            self._server = _Server((host.strip("[]"), int(port)), _Handler)
        except OSError as error:
            raise SinkError(
                "sinks.metrics", f"can't listen on {address}: {error.strerror}", fix="is another runtime running?"
            ) from None
        self._server.sink = self
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics", daemon=True).start()

    def event(self, event: Event) -> None:
        if event.kind == "health":
            self._health, self._heard_ns = event.payload, self._clock()
        self._metrics.take(event)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for a path."""
        if path == "/metrics":
            return 200, CONTENT_TYPE_LATEST, generate_latest(self._metrics.registry)
        if path not in ("/healthz", "/readyz"):
            return 404, "text/plain", b"there are /metrics, /healthz and /readyz\n"
        state = self._health["state"]
        body = {"state": state, "reasons": self._health["reasons"]}
        starts = not self._health.get(
            "started", state not in ("starting", "building", "warming")
        )  # a first engine build takes minutes
        stuck = not starts and self._clock() - self._heard_ns > SILENT_NS
        if stuck:
            body = {"state": "failed", "reasons": [{"component": "loop", "level": "failed", "reason": "is stuck"}]}
        ready = state in ("ready", "degraded") and self._health.get("started", True)
        good = state != "failed" if path == "/healthz" else ready
        return 200 if good and not stuck else 503, "application/json", json.dumps(body).encode() + b"\n"


class _Metrics:
    """The metrics of one run, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.scores = Counter("emogaze_scores", "Scores issued", registry=registry)
        self.undefined = Counter("emogaze_scores_undefined", "Scores without a value", ["reason"], registry=registry)
        self.missed = Counter("emogaze_deadlines_missed", "Scores later than their deadline", registry=registry)
        self.fcc = Gauge("emogaze_fcc", "Newest windowed fixation-context consistency", registry=registry)
        self.latency = Histogram(
            "emogaze_score_latency_seconds",
            "From capture to the score leaving",
            buckets=(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2),
            registry=registry,
        )
        self.withheld = Counter("emogaze_pictures_withheld", "Pictures covered whole", registry=registry)
        self.pictures = Counter("emogaze_pictures", "Redacted pictures", registry=registry)
        self.state = Gauge("emogaze_state", "1 for the state that holds", ["state"], registry=registry)
        self.streams = {
            name: Gauge(f"emogaze_stream_{name}", f"Of a stream: {name}", ["stream"], registry=registry)
            for name in (*_STREAM_GAUGES, *_STREAM_COUNTS)
        }
        self.redaction = {
            "pictures_dropped": Gauge("emogaze_redaction_dropped", "Pictures dropped unredacted", registry=registry),
            "recalls_postponed": Gauge(
                "emogaze_recalls_postponed", "Passes left to a later picture", registry=registry
            ),
            "recall_hz": Gauge("emogaze_recall_hz", "Passes of the recall detector per second", registry=registry),
        }
        self.sink_dropped = Gauge("emogaze_sink_dropped", "Items that a sink let go", ["sink"], registry=registry)

    def take(self, event: Event) -> None:
        payload = event.payload
        if event.kind == "score":
            self._score(event, payload["score"])
        elif event.kind == "picture":
            self.pictures.inc()
            self.withheld.inc(bool(payload["withheld"]))
        elif event.kind == "deadline_missed":
            self.missed.inc()
        elif event.kind == "health":
            self._health(payload)

    def _score(self, event: Event, score: dict[str, Any]) -> None:
        if score["reason"]:
            self.undefined.labels(score["reason"]).inc()
        else:
            self.scores.inc()
        if math.isfinite(score["fcc"]):
            self.fcc.set(score["fcc"])
        self.latency.observe(max(0, event.t_emit_ns - event.t_ns) / NS_PER_S)

    def _health(self, payload: dict[str, Any]) -> None:
        for state in STATES:
            self.state.labels(state).set(state == payload["state"])
        for stream in payload.get("streams", []):
            for name, gauge in self.streams.items():
                if stream.get(name) is not None:
                    gauge.labels(stream["name"]).set(stream[name])
        for name, value in self.redaction.items():
            if payload.get(name) is not None:
                value.set(payload[name])
        for name, sink in payload.get("sinks", {}).items():
            self.sink_dropped.labels(name).set(sink["dropped"])


class _Server(ThreadingHTTPServer):
    """A thread a client, for `CLIENT_S` at most, however slowly it sends or reads."""

    daemon_threads = True
    block_on_close = False
    sink: MetricsServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._since: dict[Any, float] = {}  #: when each client came
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._since) >= MAX_CLIENTS:
            self.shutdown_request(request)
            return
        self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Hang up on who takes too long; called ten times a second."""
        late = time.monotonic() - CLIENT_S
        for request in [request for request, since in self._since.copy().items() if since < late]:
            with suppress(OSError):  # it may have ended meanwhile
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error of the program; a client that hangs up is none."""
        if not isinstance(sys.exc_info()[1], OSError):
            log.exception("metrics")


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        status, content, body = self.server.sink.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing per request."""
