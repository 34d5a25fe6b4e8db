"""A chart inside a page: PNG as text, made without anybody's help."""

from __future__ import annotations

import base64
import struct
import zlib

COLOUR_TYPES = {1: 0, 3: 2}  # grey, and red, green and blue


def png_uri(pixels: bytes, width: int, height: int, channels: int) -> str:
    """What an `<img src>` takes. `pixels` are rows of pixels from the top, each of 1 (grey) or 3 bytes (colours)."""
    return "data:image/png;base64," + base64.b64encode(_png(pixels, width, height, channels)).decode("ascii")


def png_pixels(uri: str) -> tuple[bytes, int, int, int]:
    """Pixels, width, height and channels of what `png_uri` made; charts of others are none of our business."""
    data = base64.b64decode(uri.partition(",")[2])
    width, height, _, colour = struct.unpack(">IIBB", data[16:26])
    channels = {colour: channels for channels, colour in COLOUR_TYPES.items()}[colour]
    at, packed = 8, b""
    while at < len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        packed += data[at + 8 : at + 8 + size] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + size
    rows, each = zlib.decompress(packed), 1 + width * channels
    return b"".join(rows[start + 1 : start + each] for start in range(0, len(rows), each)), width, height, channels


def _png(pixels: bytes, width: int, height: int, channels: int) -> bytes:
    assert len(pixels) == width * height * channels, "a byte for each channel of each pixel"
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    each = width * channels
    rows = b"".join(b"\0" + pixels[start : start + each] for start in range(0, len(pixels), each))  # 0: as they are
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
