"""Which files are images: by the end of their names where many are looked for, by their first bytes when read."""

from __future__ import annotations

import os

SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm",
    ".pnm",
)  # fmt: skip
UNREAD = (  # images all the same: they are named where they are left out
    ".heic", ".heif", ".avif", ".jp2", ".jxl", ".svg", ".psd", ".tga", ".ico", ".raw", ".cr2", ".nef", ".arw", ".dng",
    ".dcm", ".exr", ".hdr",
)  # fmt: skip
READ = "PNG, JPEG, GIF, BMP, WebP, TIFF or PPM"
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
)


def has_image_name(name: str) -> bool:
    """Whether a file is called like an image that can be read."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


def format_of(head: bytes) -> str:
    """The format of an image by its first bytes, or nothing."""
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    if len(head) > 2 and head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PPM"
    return ""
