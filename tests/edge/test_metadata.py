"""Metadata is named, also where it is nested or damaged."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import av
import pytest

from edge.metadata import of_clip, of_still


def exif(entries: list[tuple[int, int]], nested: list[tuple[int, int]] | None = None) -> bytes:
    """A little-endian EXIF block: tags with values; `nested` tags follow behind a pointer."""
    rows = [*entries, *([(0x8769, 8 + 2 + 12 * (len(entries) + 1) + 4)] if nested else [])]

    def ifd(pairs: list[tuple[int, int]]) -> bytes:
        body = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in pairs)
        return struct.pack("<H", len(pairs)) + body + struct.pack("<I", 0)

    return b"II*\0" + struct.pack("<I", 8) + ifd(rows) + (ifd(nested) if nested else b"")


def jpeg(*segments: tuple[int, bytes]) -> bytes:
    parts = [b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body for marker, body in segments]
    return b"\xff\xd8" + b"".join(parts) + b"\xff\xda\0\x02"


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        pytest.param(jpeg((0xE0, b"JFIF")), [], id="plain"),
        pytest.param(
            jpeg((0xE1, b"Exif\0\0" + exif([(0x010F, 0), (0x8825, 0)], [(0xA431, 0)]))),
            ["EXIF", "camera make", "GPS position", "device serial number"],
            id="exif-nested",
        ),
        pytest.param(jpeg((0xE1, b"Exif\0\0II*\0\xff\xff\xff\x7f")), ["EXIF"], id="exif-damaged"),
        pytest.param(jpeg((0xE1, b"http://ns.adobe.com/xap/1.0/\0"), (0xED, b""), (0xFE, b"x")),
                     ["XMP", "IPTC", "comment"], id="xmp-iptc-comment"),
        pytest.param(png((b"tEXt", b"Author\0x"), (b"eXIf", exif([(0x0132, 0)]))),
                     ["text", "EXIF", "date and time"], id="png"),
        pytest.param(b"BM no metadata known", [], id="other-kind"),
        pytest.param(jpeg((0xE1, b"Exif"))[:8], [], id="cut"),
    ],
)  # fmt: skip
def test_stills(tmp_path: Path, content: bytes, names: list[str]) -> None:
    path = tmp_path / "picture"
    path.write_bytes(content)
    assert of_still(path) == names


def test_clips(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as container:
        container.metadata["title"] = "ward 3"
        container.metadata["location"] = "+48+011/"
        stream = container.add_stream("libx264", rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        container.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        container.mux(stream.encode(None))
    assert {"tag title", "tag location"} <= set(of_clip(path))


def test_a_real_portrait(data: Path) -> None:
    names = of_still(data / "faces" / "portrait_exif_pexels3763152.jpg")
    assert {"camera make", "GPS position", "device serial number", "date and time"} <= set(names)
