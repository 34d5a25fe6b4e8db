"""safetensors files from strangers: what is not sound is refused by name before anything is allocated."""

import io
import json
import os
import pickle
import struct
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from weft.checkpoints.files import new_folder, read_json, read_tensors
from weft.checkpoints.tensor_file import read_header
from weft.errors import DataError


def raw(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


def torch_archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    return file.getvalue()


EIGHT = b"\0" * 8
UNSOUND = {
    "empty": (b"", "does not fit"),
    "short": (b"\x01\0\0", "does not fit"),
    "header longer than the file": (raw({"a": tensor()}, EIGHT, length=10_000), "its header of 10000 bytes"),
    "header of an exabyte": (raw({}, length=2**60), "does not fit"),
    "no header": (raw(b"[1, 2]"), "no header"),
    "not JSON": (raw(b'{"a": '), "not valid JSON"),
    "not UTF-8": (raw(b'{"\xff\xfe": 1}'), "not valid JSON"),
    "nested without end": (raw(b'{"a":' + b"[" * 100_000), "not valid JSON"),
    "twice": (raw(b'{"a":%b,"a":%b}' % ((json.dumps(tensor()).encode(),) * 2), EIGHT), "'a' stands there twice"),
    "a hole": (raw({"a": tensor(), "b": tensor(offsets=(12, 20))}, b"\0" * 20), "a hole before 'b'"),
    "a hole at the start": (raw({"a": tensor(offsets=(4, 12))}, b"\0" * 12), "a hole before 'a'"),
    "overlap": (raw({"a": tensor(), "b": tensor(offsets=(4, 12))}, b"\0" * 12), "an overlap before 'b'"),
    "the same bytes twice": (raw({"a": tensor(), "b": tensor()}, EIGHT), "an overlap before 'b'"),
    "cut off": (raw({"a": tensor()}, b"\0" * 7), "is it cut off?"),
    "more than it says": (raw({"a": tensor()}, b"\0" * 9), "is it cut off?"),
    "shape too large": (raw({"a": tensor(shape=(3,))}, EIGHT), r"'a' has 8 bytes, and shape \(3,\)"),
    "absurd shape": (raw({"a": tensor(shape=(2**40, 2**40))}, EIGHT), "'a' has 8 bytes"),
    "overflowing shape": (raw({"a": tensor(shape=(2**62, 4))}, EIGHT), "'a' has 8 bytes"),
    "wrong type for its bytes": (raw({"a": tensor("F64")}, EIGHT), "of F64 does not"),
    "unknown type": (raw({"a": tensor("F7")}, EIGHT), "the dtype 'F7', which is not read"),
    "type is a number": (raw({"a": tensor(5)}, EIGHT), "the dtype '5'"),
    "negative shape": (raw({"a": tensor(shape=(-2,))}, EIGHT), "no lists of whole numbers"),
    "shape of texts": (raw({"a": tensor(shape=("2",))}, EIGHT), "no lists of whole numbers"),
    "shape of booleans": (raw({"a": tensor(shape=(True, 2))}, EIGHT), "no lists of whole numbers"),
    "three offsets": (raw({"a": tensor(offsets=(0, 8, 8))}, EIGHT), "no lists of whole numbers"),
    "backwards": (raw({"a": tensor(offsets=(8, 0))}, EIGHT), "'a' has -8 bytes"),
    "a field missing": (raw({"a": {"dtype": "F32", "shape": [2]}}, EIGHT), "does not say"),
    "a field too many": (raw({"a": tensor() | {"code": "x"}}, EIGHT), "does not say"),
    "no table": (raw({"a": 7}, EIGHT), "does not say"),
    "notes that are none": (raw({"__metadata__": {"a": 1}, "a": tensor()}, EIGHT), "__metadata__"),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_unsound_files_are_refused_by_name(what, tmp_path):
    content, words = UNSOUND[what]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        read_tensors(path)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_recognised_whatever_its_name(protocol, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps({"weights": Bomb()}, protocol))
    with pytest.raises(DataError, match="pickled Python objects"):
        read_tensors(path)


def test_so_is_an_archive_of_torch_and_a_pointer_of_git(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(torch_archive())
    with pytest.raises(DataError, match="pickled Python objects"):
        read_tensors(path)
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises(DataError, match="pickled Python objects"):
        read_tensors(path)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(DataError, match="git lfs pull"):
        read_tensors(path)


def test_sound_files_are_read(tmp_path):
    """Also one whose length begins like a pickle (0x0280), with empty tensors, scalars and every type."""
    tensors = {
        "half": torch.randn(3, 2).half(),
        "brain": torch.randn(2).bfloat16(),
        "double": torch.randn(2, 1, 2).double(),
        "scalar": torch.tensor(3.0),
        "empty": torch.empty(0, 4),
        "bool": torch.tensor([True, False]),
        "long": torch.arange(3),
        "byte": torch.arange(5, dtype=torch.uint8),
    }
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    header = read_header(path)
    assert {name: (entry.dtype, entry.shape) for name, entry in header.items()} == {
        name: (t.dtype, tuple(t.shape)) for name, t in tensors.items()
    }
    assert all(torch.equal(t, tensors[name]) for name, t in read_tensors(path).items())
    text = json.dumps({"a": tensor()}).encode()
    path.write_bytes(raw(text + b" " * (0x280 - len(text)), EIGHT))
    assert path.read_bytes()[:2] == b"\x80\x02"
    assert read_tensors(path)["a"].tolist() == [0, 0]


def test_what_is_no_file(tmp_path):
    with pytest.raises(DataError, match="is not there"):
        read_tensors(tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="is not a file"):
        read_tensors(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        for read in (read_tensors, read_json):
            with pytest.raises(DataError, match="is not a file"):
                read(tmp_path / "pipe")


def interrupted(path, error):
    with new_folder(path) as beside:
        (beside / "file").write_text("x")
        raise error("no")


def test_a_new_folder_is_whole_or_not_there(tmp_path):
    with new_folder(tmp_path / "a" / "b") as beside:
        (beside / "file").write_text("x")
        assert not (tmp_path / "a" / "b").exists()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    with pytest.raises(DataError, match="is there already"), new_folder(tmp_path / "a" / "b"):
        pass
    for error in (KeyError, OSError, KeyboardInterrupt):
        with pytest.raises(DataError if error is OSError else error):
            interrupted(tmp_path / "c" / "d", error)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "e").mkdir()
    with new_folder(tmp_path / "e") as beside:
        (beside / "file").write_text("x")
    assert (tmp_path / "e" / "file").exists()
