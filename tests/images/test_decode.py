"""One image file as an array: every mode and format, upright and undistorted; what is broken or a trap is refused."""

import io
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from weft.errors import ConfigError, DataError
from weft.images.decode import decode, look
from weft.images.formats import SUFFIXES, format_of, has_image_name

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def save(path, image, **how):
    image.save(path, **how)
    return path


def quarters(size=16):
    """Red, green; blue, white: every turn and mirror looks different."""
    pixels = np.zeros((size, size, 3), np.uint8)
    half = size // 2
    pixels[:half, :half], pixels[:half, half:], pixels[half:, :half], pixels[half:, half:] = RED, GREEN, BLUE, WHITE
    return Image.fromarray(pixels)


def corners(pixels):
    """Top left, top right, bottom left, bottom right, read inside the quarters."""
    low, high = pixels.shape[-1] // 4, 3 * pixels.shape[-1] // 4
    return [tuple(int(v) for v in pixels[:, y, x]) for y, x in ((low, low), (low, high), (high, low), (high, high))]


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm", "a.gif", "a.webp", "a.dat"])
def test_every_format_gives_the_same_pixels(name, tmp_path):
    image = quarters()
    how = {"lossless": True} if name.endswith("webp") else {}
    if name.endswith("dat"):
        how = {"format": "PNG"}  # the content counts, not the name
    pixels = decode(save(tmp_path / name, image, **how), channels=3, size=16)
    assert pixels.dtype == np.uint8 and pixels.shape == (3, 16, 16) and pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, np.asarray(image).transpose(2, 0, 1))


def test_jpeg_is_close(tmp_path):
    pixels = decode(save(tmp_path / "a.jpg", quarters(64), quality=95), channels=3, size=64)
    np.testing.assert_allclose(corners(pixels), [RED, GREEN, BLUE, WHITE], atol=6)


MOVES = {  # what the file must hold so that it looks like `quarters` when it is turned
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize("orientation", MOVES)
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif"])
def test_exif_turns_the_image(name, orientation, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = quarters(32)
    held = image if MOVES[orientation] is None else image.transpose(MOVES[orientation])
    pixels = decode(save(tmp_path / name, held, exif=exif), channels=3, size=32)
    np.testing.assert_allclose(corners(pixels), [RED, GREEN, BLUE, WHITE], atol=8)


def test_damaged_exif_does_not_damage_the_image(tmp_path):
    path = save(tmp_path / "a.jpg", quarters(32), exif=b"Exif\0\0II*\0\xff\xff\xff\xff nonsense")
    np.testing.assert_allclose(corners(decode(path, channels=3, size=32)), [RED, GREEN, BLUE, WHITE], atol=8)


def two_halves(mode, left, right):
    image = Image.new(mode, (8, 8), left)
    image.paste(right, (4, 0, 8, 8))
    return image


@pytest.mark.parametrize(
    ("mode", "left", "right", "seen"),
    [
        ("L", 10, 200, (10, 200)),
        ("1", 0, 1, (0, 255)),
        ("LA", (10, 255), (10, 0), (10, 255)),
        ("LA", (0, 128), (0, 255), (127, 0)),
    ],
)
def test_greys(mode, left, right, seen, tmp_path):
    path = save(tmp_path / "a.png", two_halves(mode, left, right))
    grey = decode(path, channels=1, size=8)
    assert (int(grey[0, 0, 0]), int(grey[0, 0, 7])) == seen
    np.testing.assert_array_equal(decode(path, channels=3, size=8), np.repeat(grey, 3, axis=0))
    assert look(path) == (8, 8, True)


def test_transparency_shows_white(tmp_path):
    path = save(tmp_path / "a.png", two_halves("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)))
    pixels = decode(path, channels=3, size=8)
    assert tuple(pixels[:, 0, 0]) == RED and tuple(pixels[:, 0, 7]) == WHITE
    palette = two_halves("RGB", RED, GREEN).convert("P", palette=Image.Palette.ADAPTIVE, colors=2)
    green = palette.getpixel((7, 0))
    pixels = decode(save(tmp_path / "b.png", palette, transparency=green), channels=3, size=8)
    assert tuple(pixels[:, 0, 0]) == RED and tuple(pixels[:, 0, 7]) == WHITE
    pixels = decode(save(tmp_path / "c.png", palette), channels=3, size=8)
    assert tuple(pixels[:, 0, 7]) == GREEN, "without transparency, the palette's own colour"
    keyed = save(tmp_path / "d.png", two_halves("L", 10, 20), transparency=20)
    assert decode(keyed, channels=1, size=8)[0, 0, [0, 7]].tolist() == [10, 255]
    keyed = save(tmp_path / "e.png", two_halves("RGB", RED, BLUE), transparency=BLUE)
    assert tuple(decode(keyed, channels=3, size=8)[:, 0, 7]) == WHITE


def test_no_fringe_around_transparent_places(tmp_path):
    """The colour under a transparent place is not mixed in when it is made smaller."""
    path = save(tmp_path / "a.png", two_halves("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)))
    small = decode(path, channels=3, size=3)
    assert small[0].min() >= 250, "red and white: the red channel is full everywhere"


def test_cmyk(tmp_path):
    path = save(tmp_path / "a.jpg", Image.new("CMYK", (16, 16), (0, 255, 255, 0)), quality=95)
    np.testing.assert_allclose(decode(path, channels=3, size=16)[:, 8, 8], RED, atol=6)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits_are_scaled(name, tmp_path):
    values = np.repeat(np.array([[0, 257 * 100, 257 * 200 + 100, 65535]], np.uint16), 4, axis=0)
    path = save(tmp_path / name, Image.fromarray(values))
    assert decode(path, channels=1, size=4)[0, 0].tolist() == [0, 100, 200, 255]
    assert decode(path, channels=3, size=4)[2, 0].tolist() == [0, 100, 200, 255]
    assert look(path).grey


def test_deeper_greys_are_refused_unless_they_are_shares(tmp_path):
    shares = np.array([[0, 0.5], [1, 0.25]], np.float32)
    assert decode(save(tmp_path / "f.tif", Image.fromarray(shares)), channels=1, size=2)[0].tolist() == [
        [0, 128],
        [255, 64],
    ]
    for name, values in (("g.tif", shares * 1000), ("i.tif", np.array([[0, 70000]], np.int32))):
        with pytest.raises(DataError, match=name):
            decode(save(tmp_path / name, Image.fromarray(values)), channels=1, size=2)


def test_the_first_frame_of_an_animation(tmp_path):
    frames = [Image.new("RGB", (8, 8), color) for color in (RED, GREEN, BLUE)]
    for name in ("a.gif", "a.webp", "a.tif", "a.png"):
        how = {"lossless": True} if name == "a.webp" else {}
        path = save(tmp_path / name, frames[0], save_all=True, append_images=frames[1:], **how)
        assert tuple(decode(path, channels=3, size=8)[:, 4, 4]) == RED, name


def test_one_pixel(tmp_path):
    pixels = decode(save(tmp_path / "a.png", Image.new("RGB", (1, 1), RED)), channels=3, size=5)
    assert (pixels == np.array(RED)[:, None, None]).all()


@pytest.mark.parametrize(("width", "height"), [(30, 10), (10, 30), (31, 10), (10, 10), (1, 40)])
def test_the_middle_is_cut_out_and_nothing_is_distorted(width, height, tmp_path):
    side = min(width, height)
    values = np.zeros((height, width), np.uint8)
    top, left = (height - side) // 2, (width - side) // 2
    values[top : top + side, left : left + side] = 200
    path = save(tmp_path / "a.png", Image.fromarray(values))
    for size in (side, 2 * side, max(1, side // 2)):
        assert (decode(path, channels=1, size=size) == 200).all()
    values[:, 0] = values[0, :] = 77
    assert (width, height) != (10, 10) or decode(save(path, Image.fromarray(values)), channels=1, size=10).min() == 77


def test_made_smaller_without_aliases(tmp_path):
    """A fine chequered pattern becomes grey; taking every eighth pixel would leave black or white."""
    board = (np.indices((400, 400)).sum(axis=0) % 2 * 255).astype(np.uint8)
    pixels = decode(save(tmp_path / "a.png", Image.fromarray(board)), channels=1, size=50)
    assert abs(pixels.astype(int) - 127).max() <= 2
    assert set(np.unique(board[::8, ::8])) <= {0, 255}, "the control"


def test_a_big_jpeg_is_drafted_and_the_same_to_the_eye(tmp_path):
    y, x = np.mgrid[:800, :1000]
    smooth = np.stack([x // 4, y // 4, (x + y) // 8], axis=-1).astype(np.uint8)
    path = save(tmp_path / "a.jpg", Image.fromarray(smooth), quality=95)
    ours = decode(path, channels=3, size=64).astype(int)
    exact = Image.open(path).convert("RGB").crop((100, 0, 900, 800)).resize((64, 64), Image.Resampling.BICUBIC)
    assert abs(ours - np.asarray(exact).transpose(2, 0, 1)).max() <= 3


def test_colour_as_grey_is_its_brightness(tmp_path):
    path = save(tmp_path / "a.png", quarters())
    expected = np.asarray(quarters().convert("L"))
    np.testing.assert_array_equal(decode(path, channels=1, size=16)[0], expected)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif", "a.bmp", "a.webp", "a.tif", "a.ppm"])
def test_truncated_files_are_refused_by_name(name, tmp_path):
    rng = np.random.default_rng(0)
    path = save(tmp_path / name, Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)))
    decode(path, channels=3, size=32)
    data = path.read_bytes()
    for kept in (len(data) // 2, 40, 12):
        path.write_bytes(data[:kept])
        with pytest.raises(DataError, match=name):
            decode(path, channels=3, size=32)


def test_any_flipped_byte_gives_a_image_or_a_clear_error(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a.png", "a.jpg", "a.gif", "a.tif", "a.webp", "a.bmp"):
        path = save(tmp_path / name, Image.fromarray(rng.integers(0, 255, (12, 9, 3), dtype=np.uint8)))
        data = path.read_bytes()
        for place in rng.integers(0, len(data), 40):
            path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
            try:
                assert decode(path, channels=3, size=8).shape == (3, 8, 8)
            except DataError as error:
                assert name in str(error) and len(str(error).splitlines()) <= 3


def huge_png(width, height):
    """A header that promises more than any memory; a few bytes."""
    header = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(11_000, 10_000), (40_000, 40_000), (10_000_001, 10)])
def test_huge_images_are_refused_by_their_header(width, height, tmp_path, monkeypatch):
    path = tmp_path / "bomb.png"
    path.write_bytes(huge_png(width, height))
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("it was decoded"))
    with warnings.catch_warnings(action="error"), pytest.raises(DataError, match=r"bomb\.png has .*\n.*100 million"):
        decode(path, channels=3, size=32)
    with pytest.raises(DataError, match="100 million"):
        look(path)


def test_a_large_image_is_not_huge(tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(huge_png(9_900, 10_000))  # Pillow itself would warn
    with warnings.catch_warnings(action="error"):
        assert look(path) == (9_900, 10_000, False)


def test_what_is_no_image(tmp_path):
    cases = {
        "words.png": (b"these are words, and no image at all", "is text"),
        "empty.png": (b"", "is empty"),
        "noise.jpg": (bytes(range(7, 90)) + b"\0\xff", "is no image"),
        "program.png": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is text"),
        "drawing.png": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is text"),
    }
    for name, (content, said) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=said):
            decode(tmp_path / name, channels=3, size=8)
    with pytest.raises(DataError, match="does not exist"):
        decode(tmp_path / "none.png", channels=3, size=8)
    with pytest.raises(DataError, match="is a folder"):
        decode(tmp_path, channels=3, size=8)
    with pytest.raises(ConfigError, match="channels = 2"):
        decode(tmp_path / "none.png", channels=2, size=8)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(DataError, match="pipe"):
        decode(tmp_path / "a.png", channels=1, size=8)


def test_unreadable(tmp_path):
    path = save(tmp_path / "a.png", quarters())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        decode(path, channels=3, size=8)


def test_only_the_decoder_of_the_first_bytes_is_asked(tmp_path, monkeypatch):
    """An EPS would start a program; its decoder is never tried, whatever the name."""
    path = tmp_path / "a.eps"
    buffer = io.BytesIO()
    quarters().save(buffer, "EPS")
    path.write_bytes(buffer.getvalue())
    assert Image.open(path).format == "EPS", "the control: Pillow would open it"
    with pytest.raises(DataError, match="whatever its name"):
        decode(path, channels=3, size=8)
    asked, plain = [], Image.open
    monkeypatch.setattr(Image, "open", lambda file, formats=None: asked.append(formats) or plain(file, formats=formats))
    decode(save(tmp_path / "b.jpg", quarters(), format="PNG"), channels=3, size=8)
    assert asked == [("PNG",)]


def test_formats_by_first_bytes(tmp_path):
    for form, name in (
        ("PNG", "PNG"),
        ("JPEG", "JPEG"),
        ("GIF", "GIF"),
        ("BMP", "BMP"),
        ("WEBP", "WEBP"),
        ("TIFF", "TIFF"),
    ):
        buffer = io.BytesIO()
        quarters().save(buffer, form)
        assert format_of(buffer.getvalue()) == name
    assert format_of(b"P6 2 2 255\n") == "PPM"
    assert (
        not format_of(b"Pages of text")
        and not format_of(b"P")
        and not format_of(b"")
        and not format_of(b"RIFFxxxxWAVE")
    )
    assert has_image_name("a.JPG") and not has_image_name("jpg") and not has_image_name("a.jpg.txt")
    assert ".jpeg" in SUFFIXES


def test_without_pillow_it_says_what_to_install(tmp_path, monkeypatch):
    path = save(tmp_path / "a.png", quarters())
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r'pip install "weft\[vision\]"'):
        decode(path, channels=3, size=8)


def test_decoding_does_not_load_torch():
    code = "import sys, weft.images.many; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
