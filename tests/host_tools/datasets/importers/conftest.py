"""A writer of XDF files, straight from the published format, so that the importers read real ones."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Stream = tuple[str, str, Sequence[str], Sequence[float], Sequence[Sequence[float] | str]]
WriteXdf = Callable[[Path, list[Stream]], None]

GAZE_DESC = """<desc><emogaze><frame>screen_px</frame><units>px</units></emogaze><channels>
<channel><label>x</label></channel><channel><label>y</label></channel></channels></desc>"""


def _chunk(tag: int, content: bytes) -> bytes:
    return b"\x04" + struct.pack("<IH", len(content) + 2, tag) + content


def _header(name: str, kind: str, labels: Sequence[str], hz: float, *, text: bool) -> bytes:
    form = "string" if text else "double64"
    desc = GAZE_DESC if kind == "Gaze" else "<desc/>"
    return (
        f"<info><name>{name}</name><type>{kind}</type><channel_count>{len(labels)}</channel_count>"
        f"<nominal_srate>{hz:g}</nominal_srate><channel_format>{form}</channel_format>"
        f"<source_id>{name}</source_id>{desc}</info>"
    ).encode()


def _samples(times: Sequence[float], rows: Sequence[Sequence[float] | str]) -> bytes:
    out = b"\x04" + struct.pack("<I", len(times))
    for t, row in zip(times, rows, strict=True):
        out += b"\x08" + struct.pack("<d", t)
        if isinstance(row, str):
            out += b"\x04" + struct.pack("<I", len(row.encode())) + row.encode()
        else:
            out += struct.pack(f"<{len(row)}d", *row)
    return out


@pytest.fixture
def write_xdf() -> WriteXdf:
    pytest.importorskip("pyxdf")

    def write(path: Path, streams: list[Stream]) -> None:
        content = b"XDF:" + _chunk(1, b"<info><version>1.0</version></info>")
        for number, (name, kind, labels, times, rows) in enumerate(streams, start=1):
            text = bool(rows) and isinstance(rows[0], str)
            hz = 0.0 if text or len(times) < 2 else (len(times) - 1) / (times[-1] - times[0])
            stream = struct.pack("<I", number)
            content += _chunk(2, stream + _header(name, kind, labels, hz, text=text))
            content += _chunk(3, stream + _samples(times, rows))
            footer = (
                f"<info><first_timestamp>{times[0]}</first_timestamp><sample_count>{len(times)}</sample_count></info>"
            )
            content += _chunk(6, stream + footer.encode())
        path.write_bytes(content)

    return write
