"""`python -m host_tools alignment`: whether the streams of an XDF recording lie on one time base."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.commands.base import Json, emit_json

if TYPE_CHECKING:
    from edge.gaze.sources.xdf import XdfStream


def add(app: typer.Typer) -> None:
    app.command("alignment")(alignment)


def alignment(
    file: Annotated[Path, typer.Argument(help="XDF recording with the streams of face, gaze, EEG, ...")],
    events: Annotated[
        list[str], typer.Option(help="Two channels that show the same events, STREAM:CHANNEL,STREAM:CHANNEL.")
    ] = [],
    as_json: Json = False,
) -> None:
    """Measure rates, jitter, breaks and lags of the streams; the bound is 50 ms."""
    from dataclasses import asdict

    from edge.gaze.sources.xdf import read_streams
    from host_tools.evaluate import alignment as al
    from host_tools.evaluate.cawf1 import check_dict

    streams = read_streams(file, dejitter=False)
    timings = [al.timing(stream) for stream in streams]
    lags = [al.lag(*(_signal(streams, part) for part in _pair(text))) for text in events]
    check = al.check(timings, lags)
    if as_json:
        body: dict[str, Any] = {
            "streams": [asdict(t) for t in timings],
            "lags": [asdict(one) for one in lags],
            "check": check_dict(check),
        }
        emit_json("alignment", {"file": str(file), "events": events}, body)
        return
    for t in timings:
        print(
            f"{t.name} ({t.type}): {t.n} samples, {t.hz_measured:.2f} Hz measured ({t.hz_declared:g} declared), "
            f"{t.start_s:.3f} to {t.end_s:.3f} s, jitter {t.jitter_ms:.2f} ms, {t.n_breaks} breaks"
        )
    for one in lags:
        trust = "" if one.clear else " (not clear)"
        print(f"{one.second} against {one.first}: {one.lag_ms:+.1f} ms, correlation {one.correlation:.2f}{trust}")
    print(f"{check.status}: {check.text}")


def _pair(text: str) -> tuple[str, str]:
    from edge.errors import DataError

    first, comma, second = text.partition(",")
    if not comma:
        raise DataError("--events", f"{text!r} can't be read", expected="STREAM:CHANNEL,STREAM:CHANNEL")
    return first, second


def _signal(streams: list[XdfStream], text: str) -> tuple[str, Any, Any]:
    import numpy as np

    from edge.errors import DataError
    from edge.gaze.description import channels_of

    name, _, channel = text.strip().rpartition(":")
    found = [s for s in streams if s.name == name and not s.is_text]
    if len(found) != 1:
        got = ", ".join(s.name for s in streams if not s.is_text)
        raise DataError("--events", f"there is no one stream {name!r}", got=got)
    labels = [c.get("label", "") for c in channels_of(found[0].desc)]
    index = labels.index(channel) if channel in labels else int(channel) if channel.isdecimal() else -1
    if not 0 <= index < found[0].n_channels:
        expected = ", ".join(filter(None, labels)) or f"0 to {found[0].n_channels - 1}"
        raise DataError("--events", f"stream {name!r} has no channel {channel!r}", expected=expected)
    values = np.asarray(found[0].samples, dtype=np.float64)[:, index]
    return text.strip(), found[0].t_ns / 1e9, np.nan_to_num(values)
