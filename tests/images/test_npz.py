"""NumPy archives: headers are checked before room is made, and objects are never read."""

import io
import zipfile

import numpy as np
import pytest

from weft.errors import DataError
from weft.images.npz import names_in_npz, read_npz

VALUES = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_wrote(save, tmp_path):
    path = tmp_path / "a.npz"
    save(path, images=VALUES, labels=np.array(["a", "b", "c"]), fortran=np.asfortranarray(VALUES))
    assert names_in_npz(path) == ["images", "labels", "fortran"]
    found = read_npz(path, ["labels", "images", "fortran"])
    np.testing.assert_array_equal(found["images"], VALUES)
    np.testing.assert_array_equal(found["fortran"], VALUES)
    assert found["labels"].tolist() == ["a", "b", "c"]


def archive(path, data, name="x.npy"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, data)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_objects_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="object"):
        read_npz(path, ["x"])
    np.savez(path, x=np.zeros(3, dtype=[("a", "u1"), ("b", "f4")]))
    with pytest.raises(DataError, match="numbers or words"):
        read_npz(path, ["x"])


def test_a_header_that_promises_more(tmp_path):
    data = npy(VALUES).replace(b"(3, 4, 5)", b"(3, 4, 9)")
    assert data != npy(VALUES)
    with pytest.raises(DataError, match=r"'x' in .*a\.npz holds 188 bytes\nexpected 236"):
        read_npz(archive(tmp_path / "a.npz", data), ["x"])
    huge = npy(np.zeros((3, 4, 5000), np.uint8)).replace(b"5000", b"9" * 4)
    with pytest.raises(DataError, match="by its own header"):
        read_npz(archive(tmp_path / "b.npz", huge), ["x"])


def test_a_zip_bomb(tmp_path):
    path = archive(tmp_path / "a.npz", npy(np.zeros((20, 1000, 1000), np.uint8)))
    with pytest.raises(DataError, match="200 times its size"):
        read_npz(path, ["x"])


def test_damaged_and_foreign_files(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=VALUES)
    data = path.read_bytes()
    for broken in (b"", b"words", data[: len(data) // 2], data[:60] + b"\xff" * 4 + data[64:]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"a\.npz"):
            read_npz(path, ["x"])
    with pytest.raises(DataError, match="damaged"):
        read_npz(archive(tmp_path / "b.npz", b"no array"), ["x"])
    with pytest.raises(DataError, match="No such file"):
        names_in_npz(tmp_path / "none.npz")
    assert names_in_npz(archive(tmp_path / "c.npz", b"", "words.txt")) == []
