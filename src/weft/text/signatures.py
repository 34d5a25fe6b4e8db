"""What a file is, told from its first bytes: names change, content does not."""

from __future__ import annotations

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"{\\rtf", "a rich-text (RTF) document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"PK\x03\x04", "a zip archive (also .docx, .xlsx, .epub)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x8b", "a gzip file inside a gzip file"),
    (b"BZh91AY&SY", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"\x80\x02", "a pickled Python object"),
    (b"\x80\x03", "a pickled Python object"),
    (b"\x80\x04", "a pickled Python object"),
    (b"\x80\x05", "a pickled Python object"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"GGUF", "a GGUF model"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"RIFF", "a sound, image or video (RIFF)"),
    (b"OggS", "a sound (Ogg)"),
    (b"ID3\x03", "a sound (MP3)"),
    (b"ID3\x04", "a sound (MP3)"),
)


def describe(head: bytes) -> str:
    """The name of a known kind of binary file, or nothing."""
    for signature, what in SIGNATURES:
        if head.startswith(signature):
            return what
    if head[257:262] == b"ustar":
        return "a tar archive"
    if head[8:9] == b"{" and len(head) > 8 and int.from_bytes(head[:8], "little") < 2**32 and b"\0" in head[:8]:
        return "a safetensors file"
    return ""
