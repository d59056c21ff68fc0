"""What a picture or clip tells besides its pixels: named, so that redaction can say what it left behind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from edge.capture.file import import_av

_EXIF = b"Exif\0\0"
_XMP = b"http://ns.adobe.com/xap/"
_PNG = b"\x89PNG\r\n\x1a\n"
#: tags of an EXIF block that tell of a person, a place, a time or a device
_TAGS = {
    0x010F: "camera make",
    0x0110: "camera model",
    0x0131: "software",
    0x0132: "date and time",
    0x013B: "artist",
    0x8298: "copyright",
    0x8825: "GPS position",
    0x9003: "date and time",
    0x9004: "date and time",
    0x927C: "maker note",
    0x9286: "user comment",
    0xA420: "picture id",
    0xA430: "owner's name",
    0xA431: "device serial number",
    0xA435: "lens serial number",
}
_BRANDS = {"major_brand", "minor_version", "compatible_brands"}  #: the container's own kind
_IFDS = {0x8769}  #: tags that point to more tags
_PNG_CHUNKS = {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text", b"tIME": "date and time", b"iCCP": "ICC profile"}


def of_still(path: Path) -> list[str]:
    """Name the metadata of a JPEG or PNG, in order and each once; of other kinds nothing is known and nothing said."""
    data = path.read_bytes()
    if data[:2] == b"\xff\xd8":
        names = list(_jpeg(data))
    elif data[:8] == _PNG:
        names = list(_png(data))
    else:
        names = []
    return list(dict.fromkeys(names))


def of_clip(path: Path) -> list[str]:
    """Name the tags of a clip's container and streams, and the streams that are neither pictures nor sound."""
    av = import_av()
    names = []
    with av.open(str(path)) as container:
        names += [f"tag {key}" for key in container.metadata if key not in _BRANDS]
        for stream in container.streams:
            kind = stream.type or "unknown"
            names += [f"{kind} tag {key}" for key in stream.metadata]
            if kind not in {"video", "audio"}:
                names.append(f"{kind} stream")
    return list(dict.fromkeys(names))


def _jpeg(data: bytes) -> Iterator[str]:
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker, length = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if marker == 0xDA:  # the pixels begin
            return
        content = data[position + 4 : position + 2 + length]
        if marker == 0xE1 and content.startswith(_EXIF):
            yield from _exif(content[len(_EXIF) :])
        elif marker == 0xE1 and content.startswith(_XMP):
            yield "XMP"
        elif marker == 0xE2:
            yield "ICC profile" if content.startswith(b"ICC_PROFILE") else "APP2"
        elif marker == 0xED:
            yield "IPTC"
        elif marker == 0xFE:
            yield "comment"
        position += 2 + length


def _png(data: bytes) -> Iterator[str]:
    position = len(_PNG)
    while position + 8 <= len(data):
        length, kind = int.from_bytes(data[position : position + 4], "big"), data[position + 4 : position + 8]
        if kind == b"eXIf":
            yield from _exif(data[position + 8 : position + 8 + length])
        elif kind in _PNG_CHUNKS:
            yield _PNG_CHUNKS[kind]
        position += 12 + length


def _exif(tiff: bytes) -> Iterator[str]:
    """Name what an EXIF block holds. A damaged one is still EXIF."""
    yield "EXIF"
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return
    try:
        waiting, seen = [struct.unpack_from(f"{order}I", tiff, 4)[0]], set[int]()
        while waiting:
            offset = waiting.pop()
            if offset == 0 or offset in seen:
                continue
            seen.add(offset)
            (n,) = struct.unpack_from(f"{order}H", tiff, offset)
            for i in range(n):
                tag, _, _, value = struct.unpack_from(f"{order}HHII", tiff, offset + 2 + 12 * i)
                if tag in _IFDS:
                    waiting.append(value)
                elif tag in _TAGS:
                    yield _TAGS[tag]
            (following,) = struct.unpack_from(f"{order}I", tiff, offset + 2 + 12 * n)
            if following:
                yield "thumbnail"
    except struct.error:
        return
