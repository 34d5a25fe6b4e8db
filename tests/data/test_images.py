"""Labelled images in every form people have them: found, told apart and read in order; mistakes get an answer."""

import csv
import gzip
import json
import logging
import os
import struct
import sys

import numpy as np
import pytest
from PIL import Image

from real_data import DATA, needs_data
from weft.data.images import Images, demo_images, is_images, leaks, read_images
from weft.errors import ConfigError, DataError


def paint(path, grey=0, size=(10, 10), colour=None):
    """An image in a file; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (Image.new("L", size, grey) if colour is None else Image.new("RGB", size, colour)).save(path)
    return path


def class_folders(root, classes=("cat", "dog"), each=3, start=0):
    """Each image of another grey."""
    for place, name in enumerate(classes):
        for number in range(each):
            paint(root / name / f"{number}.png", grey=start + each * place + number)
    return root


def greys(images):
    return images.pixels[:, 0, 0, 0].tolist()


def write_idx(path, array):
    array = np.asarray(array, np.uint8)
    data = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def mnist(folder, train=6, test=4, suffix=".gz"):
    folder.mkdir(exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        values = np.arange(count) + (100 if part == "t10k" else 0)
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", np.repeat(values, 81).reshape(count, 9, 9))
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", np.arange(count) % 3)
    (folder / "SOURCE.txt").write_text("where it came from")
    (folder / "README.txt").write_text("words")
    return folder


# -- folders ----------------------------------------------------------------------------------


def test_a_folder_for_each_class(tmp_path):
    class_folders(tmp_path)
    paint(tmp_path / "cat" / "deeper" / "still" / "z.png", grey=99)
    for junk in (".DS_Store", ".hidden.png", "Thumbs.db", "cat/.DS_Store", "cat/Thumbs.db", "dog/notes.txt"):
        (tmp_path / junk).write_bytes(b"junk")
    (tmp_path / ".git").mkdir()
    paint(tmp_path / ".git" / "a.png")
    source = read_images([tmp_path])
    assert source.train.labels == ["cat"] * 4 + ["dog"] * 3
    assert greys(source.train) == [0, 1, 2, 99, 3, 4, 5]
    assert source.train.names[3] == str(tmp_path / "cat" / "deeper" / "still" / "z.png")
    assert (source.size, source.channels, source.why) == (10, 1, "classes: from folders")
    assert source.validation is None and source.test is None and source.notes == ()
    assert len(source.train) == 7 and "7 of 10 × 10, 2 classes" in repr(source.train)


@pytest.mark.parametrize(("held", "judged"), [("val", "test"), ("valid", "test"), ("Validation", "Test")])
def test_parts_in_folders(held, judged, tmp_path):
    class_folders(tmp_path / "train", start=10)
    class_folders(tmp_path / held, each=1, start=50)
    class_folders(tmp_path / judged, each=2, start=90)
    source = read_images([tmp_path])
    assert greys(source.train) == [10, 11, 12, 13, 14, 15]
    assert greys(source.validation) == [50, 51] and greys(source.test) == [90, 91, 92, 93]
    assert source.test.labels == ["cat", "cat", "dog", "dog"]


def test_classes_that_are_called_like_parts_stay_classes(tmp_path):
    class_folders(tmp_path, classes=("train", "plane", "test"))
    source = read_images([tmp_path])
    assert set(source.train.labels) == {"train", "plane", "test"} and source.test is None
    source = read_images([class_folders(tmp_path / "b", classes=("train", "test"))])
    assert set(source.train.labels) == {"train", "test"}, "no folders of classes inside: they are the classes"


def test_a_part_without_classes_is_left_out(tmp_path):
    class_folders(tmp_path / "train")
    paint(tmp_path / "test" / "1.png")
    source = read_images([tmp_path])
    assert source.test is None and "lie in no folder of a class" in source.notes[0]


def test_the_order_is_that_of_sorted_names(tmp_path, monkeypatch):
    class_folders(tmp_path, classes=("b", "a", "Z", "é"), each=12)
    scandir, straight = os.scandir, read_images([tmp_path])

    class Reversed:
        def __init__(self, path):
            self.found = sorted(scandir(path), key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.found)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    again = read_images([tmp_path])
    assert again.train.names == straight.train.names and again.fingerprint == straight.fingerprint
    assert list(dict.fromkeys(again.train.labels)) == ["Z", "a", "b", "é"]
    assert [os.path.basename(name) for name in again.train.names[:4]] == ["0.png", "1.png", "10.png", "11.png"]


def test_a_class_without_images_is_named(tmp_path, caplog):
    class_folders(tmp_path)
    (tmp_path / "empty").mkdir()
    paint(tmp_path / "loose.png")
    (tmp_path / "dog" / "a.heic").write_bytes(b"x")
    with caplog.at_level(logging.WARNING):
        notes = "\n".join(read_images([tmp_path]).notes)
    assert str(tmp_path / "empty") in notes and "1 images in" in notes and ".heic" in notes
    assert "no images in" in caplog.text


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links")
def test_links_are_followed_but_not_in_circles(tmp_path):
    class_folders(tmp_path / "data")
    class_folders(tmp_path / "far", classes=("x",), start=70)
    (tmp_path / "data" / "bird").symlink_to(tmp_path / "far" / "x")
    (tmp_path / "data" / "cat" / "up").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "dog" / "self").symlink_to("self")
    source = read_images([tmp_path / "data"])
    assert source.train.labels == ["bird"] * 3 + ["cat"] * 3 + ["dog"] * 3
    assert greys(source.train)[:3] == [70, 71, 72]
    assert len(source.notes) == 1 and "leads to a folder above" in source.notes[0]


# -- size and channels ------------------------------------------------------------------------


def test_size_and_channels_are_told_from_the_images(tmp_path):
    same = class_folders(tmp_path / "same")
    assert (read_images([same]).size, read_images([same], size=7).size) == (10, 7)
    assert read_images([same], channels=3).train.pixels.shape == (6, 3, 10, 10)
    paint(same / "cat" / "x.png", size=(10, 12))
    assert read_images([same]).size == 64
    large = class_folders(tmp_path / "large")
    for path in large.rglob("*.png"):
        paint(path, size=(65, 65), grey=9)
    assert read_images([large]).size == 64
    wide = tmp_path / "wide"
    for name in ("a", "b"):
        paint(wide / name / "1.png", size=(20, 12), colour=(1, 2, 3))
    source = read_images([wide])
    assert (source.size, source.channels) == (20, 3)
    assert read_images([wide], channels=1).channels == 1
    for bad in ({"size": 0}, {"channels": 2}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            read_images([wide], **bad)


def test_grey_images_in_colour_files_are_grey(tmp_path):
    class_folders(tmp_path)
    paint(tmp_path / "cat" / "0.png", colour=(8, 8, 8))
    paint(tmp_path / "dog" / "0.jpg", colour=(77, 77, 77))
    source = read_images([tmp_path])
    assert source.channels == 1 and greys(source.train)[0] == 8
    np.testing.assert_array_equal(source.train.pixels, read_images([tmp_path], channels=1).train.pixels)
    paint(tmp_path / "dog" / "9.png", colour=(8, 8, 9))
    assert read_images([tmp_path]).channels == 3


def test_what_is_judged_by_has_the_form_of_what_is_learned(tmp_path):
    class_folders(tmp_path / "train")
    paint(tmp_path / "other" / "cat" / "1.png", size=(30, 40), colour=(200, 0, 0))
    source = read_images([tmp_path / "train"], test=[tmp_path / "other"])
    assert source.test.pixels.shape == (1, 1, 10, 10), "one class is enough to be judged by"


# -- broken files -----------------------------------------------------------------------------


def test_few_broken_files_are_skipped_and_named(tmp_path):
    files = sorted(class_folders(tmp_path, each=100).rglob("*.png"))
    for number, file in enumerate(files):
        paint(file, grey=number)
    told = []
    files[7].write_bytes(b"these are words")
    files[108].write_bytes(files[108].read_bytes()[:40])
    source = read_images([tmp_path], size=4, progress=lambda *count: told.append(count))
    assert len(source.train) == 198 == len(source.train.labels) == len(source.train.names)
    assert source.train.labels.count("cat") == 99
    assert (
        "2 of 200 images" in source.notes[0]
        and f"{files[7]} is text" in source.notes[0]
        and str(files[108]) in source.notes[0]
    )
    assert told[-1] == (200, 200) and len(told) == 7
    assert greys(source.train) == [number for number in range(200) if number not in (7, 108)], "each with its own name"
    assert source.train.names[7] == str(files[8])


def test_many_broken_files_are_refused(tmp_path):
    class_folders(tmp_path, each=50)
    (tmp_path / "cat" / "7.png").write_bytes(b"these are words")
    assert len(read_images([tmp_path]).train) == 99
    (tmp_path / "dog" / "7.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"cat.7\.png is text.*and 1 more of 100\nexpected at most 1%"):
        read_images([tmp_path])


# -- idx --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_in_a_folder(suffix, tmp_path, monkeypatch):
    mnist(tmp_path / "m", suffix=suffix)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)  # not needed
    source = read_images([tmp_path / "m"])
    assert greys(source.train) == [0, 1, 2, 3, 4, 5] and greys(source.test) == [100, 101, 102, 103]
    assert source.train.labels == ["0", "1", "2", "0", "1", "2"]
    assert source.train.names[1] == "train 1" and source.test.names[3] == "test 3"
    assert (source.size, source.channels, source.validation) == (9, 1, None)
    assert read_images([tmp_path / "m"], size=18, channels=3).train.pixels.shape == (6, 3, 18, 18)


def test_one_idx_file_and_its_labels(tmp_path):
    folder = mnist(tmp_path / "m")
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        source = read_images([folder / name], test=[folder / "t10k-images-idx3-ubyte.gz"])
        assert len(source.train) == 6 and greys(source.test)[0] == 100
    images = write_idx(tmp_path / "x-images.idx", np.zeros((2, 5, 5)))
    write_idx(tmp_path / "x-labels.idx", [3, 4])
    assert read_images([images]).train.labels == ["3", "4"]


def test_packed_and_unpacked_beside_each_other(tmp_path):
    mnist(tmp_path / "m")
    assert len(read_images([mnist(tmp_path / "m", suffix="")]).train) == 6


def test_idx_mistakes(tmp_path):
    folder = mnist(tmp_path / "m")
    labels = folder / "train-labels-idx1-ubyte.gz"
    kept = labels.read_bytes()
    labels.unlink()
    with pytest.raises(DataError, match=r"no labels for .*\n.*\nput train-labels-idx1-ubyte\.gz beside it"):
        read_images([folder])
    write_idx(labels, [0, 1])
    with pytest.raises(DataError, match="6 images and 2 labels"):
        read_images([folder])
    labels.write_bytes(kept)
    write_idx(folder / "train-images-idx3-ubyte.gz", np.zeros((6, 9)))
    with pytest.raises(DataError, match="three or four axes"):
        read_images([folder])
    write_idx(folder / "more-train-images-idx3-ubyte", np.zeros((6, 9, 9)))
    with pytest.raises(DataError, match="2 files of images for train"):
        read_images([folder])
    alone = write_idx(tmp_path / "x.idx", np.zeros((2, 5, 5)))
    with pytest.raises(DataError, match="no labels for"):
        read_images([alone])
    only = tmp_path / "only"
    only.mkdir()
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        (only / name).write_bytes(gzip.decompress((tmp_path / "m" / f"{name}.gz").read_bytes()))
    with pytest.raises(DataError, match="is a part to judge by"):
        read_images([only])
    assert len(read_images([mnist(tmp_path / "n")], test=[only]).test) == 4


# -- npz --------------------------------------------------------------------------------------


PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
CLASSES = np.arange(6)[:, None] % 2


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("x_train", "y_train", "x_test", "y_test"), (6, None, 6)),
        (("images", "labels"), (6, None, None)),
        (("X", "y"), (6, None, None)),
        (("train_images", "train_labels", "val_images", "val_labels", "test_images", "test_labels"), (6, 6, 6)),
    ],
)
def test_names_in_archives(names, parts, tmp_path, monkeypatch):
    arrays = {name: PIXELS if place % 2 == 0 else CLASSES for place, name in enumerate(names)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    source = read_images([tmp_path / "a.npz"])
    assert tuple(part and len(part) for part in (source.train, source.validation, source.test)) == parts
    np.testing.assert_array_equal(source.train.pixels, PIXELS.transpose(0, 3, 1, 2))
    assert source.train.labels == list("010101") and (source.size, source.channels) == (8, 3)
    if len(names) > 2:
        assert any("100.0% of the images for test" in note for note in source.notes)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": PIXELS, "b": CLASSES}, r"holds a, b\nexpected x_train"),
        ({"x_train": PIXELS}, "no labels for 'x_train'"),
        ({"x": PIXELS, "y": CLASSES[:4]}, "6 images and 4 labels"),
        ({"x": PIXELS, "y": np.ones((6, 3))}, "several or none in a row"),
        ({"x": PIXELS.astype(float), "y": CLASSES}, "divide it by 255"),
        ({"x": PIXELS, "y": np.full(6, np.nan)}, "not all finite"),
        ({"x": PIXELS, "y": np.array(["a", "", "b", "a", "b", "a"])}, "image 1 of .* has no label"),
        ({"x": PIXELS, "y": np.zeros(6, int)}, "one class only: '0'"),
        ({"x_test": PIXELS, "y_test": CLASSES}, "is a part to judge by"),
    ],
)
def test_archive_mistakes(arrays, said, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=said):
        read_images([tmp_path / "a.npz"])


def test_labels_in_every_form():
    for given in (CLASSES, CLASSES[:, 0], CLASSES.astype(float), np.eye(2)[CLASSES[:, 0]], CLASSES.ravel() == 1):
        assert Images.of(PIXELS, given).labels == list("010101")
    assert Images.of(PIXELS, [" a", "b"] * 3).labels == ["a", "b"] * 3
    assert Images.of(PIXELS, np.array([b"a", b"b"] * 3)).labels == ["a", "b"] * 3
    with pytest.raises(DataError, match="6 images and 1 labels"):
        Images.of(PIXELS, ["a"])
    with pytest.raises(DataError, match="has no label"):
        Images.of(PIXELS, ["a", None] * 3)


# -- tables -----------------------------------------------------------------------------------


def table(path, rows, header=("path", "label")):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([header, *rows])
    return path


ROWS = [("img/cat/0.png", "x"), ("img/dog/2.png", "y"), ("img/cat/1.png", "x"), ("img\\dog\\1.png", "y")]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_table_of_paths(name, tmp_path):
    class_folders(tmp_path / "img")
    source = read_images([table(tmp_path / name, ROWS)])
    assert source.train.labels == ["x", "y", "x", "y"] and greys(source.train) == [0, 5, 1, 4]
    assert "'path'" in source.why and "'label'" in source.why
    assert source.train.names[0] == str(tmp_path / "img" / "cat" / "0.png")


def test_columns_by_content_and_by_name(tmp_path):
    class_folders(tmp_path / "img")
    rows = [(f"{path}.png", path, "words that say it all", kind) for path, kind in ROWS]
    path = table(tmp_path / "a.csv", rows, ("copy", "where", "caption", "thing"))
    assert greys(read_images([path]).train) == [0, 5, 1, 4], "the files that are there, not those that are not"
    source = read_images([path], text="where", label="thing")
    assert source.train.labels == ["x", "y", "x", "y"]
    with pytest.raises(ConfigError, match="did you mean 'thing'"):
        read_images([path], label="thin")
    with pytest.raises(DataError, match=r"no column .* holds the names of images"):
        read_images([table(tmp_path / "b.csv", [("words", "x"), ("more", "y")], ("text", "label"))])


def test_a_missing_image_is_named_with_its_line(tmp_path):
    class_folders(tmp_path / "img", each=60)
    rows = [(f"img/{name}/{n}.png", name) for name in ("cat", "dog") for n in range(60)]
    rows[5] = ("img/none.png", "cat")
    source = read_images([table(tmp_path / "a.csv", rows)])
    assert len(source.train) == 119 and "line 7 of" in source.notes[0] and "none.png does not exist" in source.notes[0]
    rows[6] = ("img/none.png", "cat")
    with pytest.raises(DataError, match=r"line 7 of .*a\.csv: .*none\.png does not exist, and 1 more"):
        read_images([table(tmp_path / "a.csv", rows)])
    rows = [(path, "" if n % 2 else label) for n, (path, label) in enumerate(rows[10:])]
    with pytest.raises(DataError, match="have no 'label': lines 3, 5, 7"):
        read_images([table(tmp_path / "a.csv", rows)])


# -- mistakes ---------------------------------------------------------------------------------


def test_folders_that_hold_nothing_to_learn(tmp_path):
    def refused(said, folder):
        with pytest.raises(DataError, match=said) as caught:
            read_images([folder])
        assert len(str(caught.value).splitlines()) <= 3

    empty = tmp_path / "empty"
    empty.mkdir()
    refused("empty is empty", empty)
    (empty / "sub").mkdir()
    refused("no images in", empty)
    refused(r"of one class only: 'cat'", class_folders(tmp_path / "one", classes=("cat",)))
    table(tmp_path / "one" / "train.csv", ROWS)
    refused(r"train\.csv names the classes", tmp_path / "one")
    flat = tmp_path / "flat"
    paint(flat / "a.png")
    refused("the 1 images in .* have no class", flat)
    refused(r"is one image, and has no class", flat / "a.png")
    refused(r"did you mean '.*flat'", tmp_path / "flatt")
    (tmp_path / "words.txt").write_text("words and words\n")
    refused("is no set of images", tmp_path / "words.txt")
    with pytest.raises(DataError, match="no images given"):
        read_images([])


def test_an_unreadable_folder(tmp_path, monkeypatch):
    class_folders(tmp_path)

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_images([tmp_path])


def test_without_pillow(tmp_path, monkeypatch):
    class_folders(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r'pip install "weft\[vision\]"'):
        read_images([tmp_path])


# -- images and not texts -------------------------------------------------------------------


def test_images_are_told_from_texts(tmp_path, monkeypatch):
    yes = [mnist(tmp_path / "m"), tmp_path / "m" / "train-images-idx3-ubyte.gz", tmp_path / "x.npz"]
    yes += [class_folders(tmp_path / "img"), tmp_path / "img" / "cat" / "0.png"]
    (tmp_path / "img" / "README.txt").write_text("words")
    yes.append(table(tmp_path / "a.csv", ROWS))
    yes.append(table(tmp_path / "gone.csv", [("far/1.png", "x"), ("far/2.png", "y")]))
    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("it was opened"))
    assert [path for path in yes if not is_images([path])] == []
    texts = tmp_path / "texts"
    for name in ("one", "two", "deep/three"):
        (texts / name).parent.mkdir(parents=True, exist_ok=True)
        (texts / f"{name}.txt").write_text("a text with words in it\n" * 5)
    paint(texts / "cover.png")
    paint(texts / "deep" / "figure.png")
    captions = [("far/1.png", "a man rides a horse", "x"), ("far/2.png", "two dogs in the snow", "y")]
    no = [texts, texts / "one.txt", tmp_path / "none", tmp_path / "none.txt", tmp_path / "none.csv"]
    no.append(table(tmp_path / "reviews.csv", [("good film it was", "x"), ("a bad one", "y")], ("text", "label")))
    no.append(table(tmp_path / "captions.csv", captions, ("image", "text", "label")))
    assert [path for path in no if is_images([path])] == []
    assert not is_images([]) and not is_images([tmp_path / "img", texts])
    assert not is_images([tmp_path / "a.csv"], text="label"), "another column was named"
    assert is_images([tmp_path / "a.csv"], text="path")


# -- what is read -----------------------------------------------------------------------------


def test_several_paths_and_given_parts(tmp_path):
    one, two = class_folders(tmp_path / "one"), class_folders(tmp_path / "two", start=50)
    np.savez(tmp_path / "t.npz", x_test=np.full((2, 12, 12), 7, np.uint8), y_test=["cat", "dog"])
    source = read_images([one, two], validation=[two], test=[tmp_path / "t.npz"])
    assert greys(source.train) == [0, 1, 2, 3, 4, 5, 50, 51, 52, 53, 54, 55]
    assert source.train.name == f"{one}, {two}"
    assert greys(source.validation) == greys(source.train)[6:] and source.test.size == 10
    assert [note for note in source.notes if "100.0% of the images for validation" in note]
    source = read_images([mnist(tmp_path / "m")], test=[one])
    assert greys(source.test) == [0, 1, 2, 3, 4, 5] and "is not used" in source.notes[0]


def test_leaks():
    train, other = Images.of(PIXELS, list("ababab")), Images.of(255 - PIXELS, list("ababab"))
    assert leaks(train, other, "test") == []
    mixed = Images.of(np.concatenate([PIXELS[:2], 255 - PIXELS[2:]]), list("aaabab"))
    assert leaks(train, mixed, "test") == [
        "33.3% of the images for test also stand in those to learn from (1 with the same label, 1 with another): "
        "results on it look better than they are"
    ]


def test_parts_keys_and_fingerprints():
    images = Images.of(np.concatenate([PIXELS, PIXELS[:1]]), list("abababa"))
    keys = images.keys()
    assert keys[0] == keys[6] and len(set(keys)) == 6
    part = images.part(np.array([5, 0]))
    assert part.labels == ["b", "a"] and part.names == ["images 5", "images 0"]
    np.testing.assert_array_equal(part.pixels, images.pixels[[5, 0]])
    again = Images.of(np.concatenate([PIXELS, PIXELS[:1]]), list("abababa"))
    assert again.fingerprint == images.fingerprint and len(images.fingerprint) == 16
    others = [
        images.part([1, 0, 2, 3, 4, 5, 6]),
        Images.of(images.pixels, list("bbababa")),
        images.part(range(6)),
    ]
    changed = images.pixels.copy()
    changed[3, 1, 2, 2] ^= 1
    others.append(Images.of(changed, list("abababa")))
    others.append(Images(images.pixels.reshape(7, 3, 4, 16), images.labels, images.names))
    assert len({images.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_many_images_lie_in_a_file(tmp_path, monkeypatch):
    class_folders(tmp_path)
    expected = read_images([tmp_path])
    monkeypatch.setattr("weft.images.allocate.IN_MEMORY", 100)
    source = read_images([tmp_path])
    assert isinstance(source.train.pixels, np.memmap) and source.fingerprint == expected.fingerprint
    assert greys(source.train.part([2, 1])) == [2, 1]


def test_the_digits():
    train, test = demo_images("train"), demo_images("test")
    assert len(train) + len(test) == 1797 and abs(len(test) - 360) <= 5
    assert train.pixels.shape[1:] == (1, 8, 8) and train.pixels.max() == 255
    assert not set(train.keys()) & set(test.keys())
    assert set(test.labels) == set("0123456789")
    shares = [test.labels.count(label) / train.labels.count(label) for label in set(test.labels)]
    assert max(shares) - min(shares) < 0.02
    assert demo_images("train").fingerprint == train.fingerprint
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        demo_images("trian")


def test_the_digits_without_their_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match=r'scikit-learn is not installed(.|\n)*pip install "weft\[vision\]"'):
        demo_images()


@pytest.mark.slow
@needs_data("fashion-mnist")
def test_fashion_mnist():
    source = read_images([DATA / "fashion-mnist"])
    assert (len(source.train), len(source.test), source.size, source.channels) == (60_000, 10_000, 28, 1)
    assert set(source.train.labels) == set("0123456789") and source.notes == ()
