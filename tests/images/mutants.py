"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

DECODING = ["tests/images/test_decode.py", "tests/images/test_arrays.py", "tests/images/test_npz.py"]
WORKERS = ["tests/images/test_many.py"]
CHANGES = ["tests/images/test_changes.py", "tests/data/test_augmentation.py"]

MUTANTS = [
    Mutant(
        "looking: the camera was held the other way",
        "images/decode.py",
        old='6: "ROTATE_270",',
        new='6: "ROTATE_90",',
        tests=DECODING,
    ),
    Mutant(
        "looking: a bomb is unpacked",
        "images/decode.py",
        old="if width * height > MOST_PIXELS:",
        new="if False:",
        tests=DECODING,
    ),
    Mutant(
        "looking: what is transparent is black",
        "images/decode.py",
        old='coloured.size, "white")',
        new='coloured.size, "black")',
        tests=DECODING,
    ),
    Mutant(
        "looking: 16 bits are clipped",
        "images/arrays.py",
        old="(piece.astype(np.uint32) * 255 + 32767) // 65535",
        new="piece.clip(0, 255)",
        tests=DECODING,
    ),
    Mutant(
        "looking: an archive holds more than it says",
        "images/npz.py",
        old="if needed + header != info.file_size:",
        new="if False:",
        tests=DECODING,
    ),
    Mutant(
        "looking: workers run the caller's script",
        "images/many.py",
        old='sys.modules["__main__"] = ModuleType("__main__")',
        new="pass",
        tests=WORKERS,
    ),
    Mutant(
        "looking: images are not sampled where they are",
        "images/changes.py",
        old='padding_mode="border", align_corners=False',
        new='padding_mode="border", align_corners=True',
        tests=CHANGES,
    ),
    Mutant(
        "looking: a pasted piece leaves the label",
        "images/changes.py",
        old="1 - box.float().mean(dim=(1, 2, 3))",
        new="1 - 0 * box.float().mean(dim=(1, 2, 3))",
        tests=CHANGES,
    ),
    Mutant(
        "looking: the same change in every epoch",
        "data/augmentation.py",
        old="drawn = self.chance.of(numbers, purpose)[:, None]",
        new="drawn = self.chance.of(np.asarray(numbers) % 16, purpose)[:, None]",
        tests=CHANGES,
    ),
    Mutant(
        "looking: digits are mirrored",
        "data/augmentation.py",
        old=">= KEPT * right(seen)",
        new=">= 0 * right(seen)",
        tests=CHANGES,
    ),
]
