"""A running device in a terminal: what it publishes, as lines or as a live picture of tables."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edge.errors import SinkError
from edge.live.control import ask
from edge.wire import Message, Subscriber

if TYPE_CHECKING:
    from rich.console import Group

TOPICS = ("score", "health", "fixation", "deadline_missed", "stream", "mark", "session")
STREAM_COLUMNS = (
    ("stream", "name", ""),
    ("state", "state", ""),
    ("declared Hz", "declared_hz", ".1f"),
    ("measured Hz", "measured_hz", ".1f"),
    ("jitter ms", "jitter_ms", ".2f"),
    ("offset ms", "offset_ms", ".2f"),
    ("drift ppm", "drift_ppm", ".1f"),
    ("gaps", "gaps", "d"),
    ("reordered", "reordered", "d"),
    ("jumps", "jumps", "d"),
    ("dropped", "dropped", "d"),
    ("age ms", "age_ms", ".0f"),
)
#: What of it the view shows, so that it fits 80 columns; `emogaze control status` tells the rest.
VIEW_COLUMNS = [c for c in STREAM_COLUMNS if c[1] not in ("declared_hz", "drift_ppm", "reordered")]
NEWS = 8


class Feed(Protocol):
    """Where a view's messages come from."""

    def receive(self, timeout_s: float) -> list[Message]:
        """Return what has come, after at most `timeout_s`."""

    def report(self, timeout_s: float) -> dict[str, Any]:
        """Return one report on the device's health; SinkError if there is none within `timeout_s`."""


class WireFeed:
    """What a device publishes."""

    def __init__(self, address: str, subscriber: Subscriber) -> None:
        self._address, self._subscriber = address, subscriber

    def receive(self, timeout_s: float) -> list[Message]:
        message = self._subscriber.receive(timeout_s)
        return [message] if message else []

    def report(self, timeout_s: float) -> dict[str, Any]:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            for message in self.receive(0.2):
                if message.topic == "health":
                    return message.payload
        raise SinkError(
            self._address, "nothing is published here", fix="is a runtime on, with sinks.publish set to this?"
        )

    def close(self) -> None:
        self._subscriber.close()


class ControlFeed:
    """What the device of this machine says on its control socket, asked a few times a second; it need not publish."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def receive(self, timeout_s: float) -> list[Message]:
        time.sleep(timeout_s)
        report, now_ns = self.report(timeout_s), time.monotonic_ns()
        messages = [Message("health", 0, 0, now_ns, now_ns, report)]
        if newest := report.get("newest"):
            messages.append(Message("score", 0, 0, now_ns, now_ns, newest))
        return messages

    def report(self, timeout_s: float) -> dict[str, Any]:
        answer = ask(self._path, cmd="status")
        if not answer["ok"]:
            raise SinkError(str(self._path), f"status was refused: {answer['error']}")
        return dict(answer["status"])


def wire_feed(address: str, keys: tuple[str, str] | None, device: str) -> WireFeed:
    """Subscribe to a device's address; with `keys`, as a client that it knows."""
    return WireFeed(address, Subscriber(address, TOPICS, keys=keys, device=device))


class View:
    """What is known of a device so far, from its messages."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.health: dict[str, Any] = {}
        self.score: dict[str, Any] = {}
        self.news: list[str] = []
        self.lost = 0
        self.received = 0

    def take(self, message: Message) -> str:
        """Take in one message; return it as a line if it is news, else nothing."""
        self.received += 1
        self.lost += message.lost
        if message.topic == "health":
            self.health = message.payload
        elif message.topic == "score":
            self.score = message.payload
        elif message.topic in ("stream", "mark", "deadline_missed"):
            shown = " ".join(f"{key}={value}" for key, value in message.payload.items())
            news = f"{message.t_ns / 1e9:.3f} {message.topic} {shown}"
            self.news = [*self.news, news][-NEWS:]
            return news
        return ""

    def line(self) -> str:
        """Return state, newest score and counts in one line."""
        return "; ".join((state_line(self.health), score_lines(self.score)[0], counts_line(self.health)))

    def render(self) -> Group:
        """Return the view for a terminal."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if not self.health:
            return Group(Text(f"waiting for {self.address} ..."))
        colour = {"ready": "green", "degraded": "yellow", "failed": "red"}.get(self.health["state"], "cyan")
        streams = Table(box=None, pad_edge=False, collapse_padding=True)
        for title, _, form in VIEW_COLUMNS:
            streams.add_column(title, justify="right" if form else "left", no_wrap=not form)
        for row in self.health.get("streams", []):
            streams.add_row(*(_cell(row.get(key), form) for _, key, form in VIEW_COLUMNS))
        lines = [Text(line) for line in score_lines(self.score)]
        head = Text.assemble(("● ", colour), (state_line(self.health), f"bold {colour}"))
        lost = f"; this view lost {self.lost} of {self.received + self.lost} messages"
        news = [Text(line, style="dim") for line in self.news]
        return Group(head, *lines, Text(counts_line(self.health) + lost), Text(""), streams, Text(""), *news)


def state_line(health: dict[str, Any]) -> str:
    """Return the state with its reasons."""
    reasons = "; ".join(f"{r['component']}: {r['reason']}" for r in health.get("reasons", []))
    return health["state"] + (f" ({reasons})" if reasons else "")


def score_lines(payload: dict[str, Any]) -> list[str]:
    """Return the newest score, emotion and fixation in two lines."""
    if not payload:
        return ["no score yet"]
    score, emotion, fixation = payload["score"], payload.get("emotion"), payload.get("fixation")
    value = f"none ({score['reason']})" if score["reason"] else f"{score['fcc_now']:.3f}"
    region = f" on {score['region']}" if score["region"] else ""
    parts = [f"FCC now {value}, over the window {_cell(score['fcc'], '.3f')}{region}"]
    if emotion:
        parts.append(f"emotion ({emotion['subject']}): {emotion['label'] or emotion['reason']}")
    look = f"fixation at {fixation['x_px']:.0f}, {fixation['y_px']:.0f} px" if fixation else ""
    ages = f"picture {score['frame_age_ns'] / 1e6:.0f} ms, gaze {score['gaze_age_ns'] / 1e6:.0f} ms old"
    return ["; ".join(parts), "; ".join(p for p in (look, ages, f"{score['model_id']} {score['precision']}") if p)]


def counts_line(health: dict[str, Any]) -> str:
    """Return what was done so far."""
    age = health.get("score_age_ms", {})
    undefined = ", ".join(f"{n} {reason}" for reason, n in sorted(health.get("fcc_undefined", {}).items()))
    return (
        f"up {health.get('uptime_s', 0):.0f} s; {health.get('frames', 0)} pictures, {health.get('scores', 0)} scores"
        f"{f' ({undefined})' if undefined else ''}; {health.get('deadlines_missed', 0)} late; from picture to score "
        f"{_cell(age.get('p50'), '.0f')} ms median, {_cell(age.get('p99'), '.0f')} ms p99"
    )


def status_lines(status: dict[str, Any]) -> list[str]:
    """Return a device's status as plain lines."""
    lines = [state_line(status), counts_line(status)]
    recall = f"recall at {_cell(status.get('recall_hz'), '.1f')} Hz"
    lines.append(f"redaction: {status.get('pictures_dropped', 0)} pictures dropped, {recall}")
    for row in status.get("streams", []):
        told = row | {"declared_hz": row.get("declared_hz") or None}  # 0: nobody declared one
        cells = (f"{title} {_cell(told.get(key), form)}" for title, key, form in STREAM_COLUMNS[1:])
        lines.append(f"{row['name']}: " + ", ".join(cell for cell in cells if not cell.endswith(" -")))
    for name, sink in status.get("sinks", {}).items():
        lines.append(f"sink {name}: {sink['dropped']} dropped" + (f", {sink['error']}" if sink["error"] else ""))
    return lines


def _cell(value: Any, form: str) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return format(value, form)
