"""Prometheus metrics and health checks as a sink; `edge.sinks._exporter` serves them."""

from __future__ import annotations

from typing import Any

from edge.config import Config
from edge.sinks.base import Sink


def open_sink(config: Config, header: dict[str, Any]) -> Sink | None:
    if not config.sinks.metrics:
        return None
    from edge.sinks._exporter import MetricsServer  # an HTTP server and a client library, for those who asked

    return MetricsServer(config.sinks.metrics)
