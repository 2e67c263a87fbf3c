import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from foretune.errors import ArtifactError
from foretune.numerics.artifact import load_artifact, save_artifact
from tests.refusals import refuses

META = {"names": ["a", "b"], "depth": 3, "nested": {"é": 0.1}}
ARRAYS = {
    "weights": np.arange(12, dtype=np.float32).reshape(3, 4),
    "index": np.array([[1], [-2]], dtype=np.int32),
    "flags": np.array([True, False]),
    "scalar": np.array(0.1),
    "empty": np.empty((0, 5)),
}


def written(folder: Path, **changes: object) -> Path:
    path = folder / "prior.safetensors"
    arguments = {"kind": "test", "version": 2, "meta": META, "arrays": ARRAYS} | changes
    save_artifact(path, **arguments)
    return path


def load(path: Path) -> tuple[dict, dict]:
    return load_artifact(path, kind="test", newest_version=2)


def test_round_trip_is_exact(tmp_path):
    meta, arrays = load(written(tmp_path))
    assert meta == META
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def test_an_artifact_may_be_empty(tmp_path):
    assert load(written(tmp_path, meta={}, arrays={})) == ({}, {})


def test_equal_content_gives_equal_bytes(tmp_path):
    first = written(tmp_path).read_bytes()
    assert written(tmp_path, arrays=dict(reversed(ARRAYS.items()))).read_bytes() == first


def test_arrays_in_any_memory_layout_are_saved_by_value(tmp_path):
    strided = np.arange(24.0).reshape(4, 6).T[::2]
    _, arrays = load(written(tmp_path, arrays={"strided": strided}))
    np.testing.assert_array_equal(arrays["strided"], strided)


def test_older_versions_are_read_and_newer_ones_refused(tmp_path):
    load(written(tmp_path, version=1))
    with refuses("artifact-version", value=3, kind=ArtifactError):
        load(written(tmp_path, version=3))


def test_another_kind_is_refused(tmp_path):
    with refuses("artifact-kind", value="other", kind=ArtifactError):
        load(written(tmp_path, kind="other"))


def test_missing_file_and_directory_are_refused(tmp_path):
    with refuses("artifact-missing", kind=ArtifactError):
        load(tmp_path / "nothing")
    with refuses("artifact-is-folder", kind=ArtifactError):
        load(tmp_path)


class Hostile:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was executed",))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        pickle.dumps(Hostile()),
        b"PAR1" + bytes(100),
        (2**63).to_bytes(8, "little") + bytes(100),
        save({"a": np.ones(2)}),
        save({"a": np.ones(2)}, metadata={"foretune": "{"}),
        save({"a": np.ones(2)}, metadata={"foretune": "[" * 100_000}),
        save({"a": np.ones(2)}, metadata={"foretune": "null"}),
        save({"a": np.ones(2)}, metadata={"foretune": "[1]"}),
        save({"a": np.ones(2)}, metadata={"foretune": json.dumps({"kind": "test"})}),
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ArtifactError):
        load(path)


def test_a_changed_number_is_refused(tmp_path):
    path = written(tmp_path)
    content = path.read_bytes()
    at = content.index(ARRAYS["weights"].tobytes())
    path.write_bytes(content[:at] + b"\x01" + content[at + 1 :])
    with refuses("artifact-checksum", kind=ArtifactError):
        load(path)


@settings(max_examples=150)
@given(st.data())
def test_damaged_files_are_refused_and_never_misread(tmp_path_factory, data):
    path = written(tmp_path_factory.mktemp("fuzz"))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="truncate"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content) - 1))
            content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        meta, arrays = load(path)
    except ArtifactError:
        return
    assert meta == META
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_arrays_that_are_not_finite_are_neither_written_nor_read(tmp_path, bad):
    with refuses("artifact-not-finite", value="weights", kind=ArtifactError):
        written(tmp_path, arrays={"weights": np.array([1.0, bad])})
    assert list(tmp_path.iterdir()) == []


def test_objects_and_unserialisable_descriptions_are_refused(tmp_path):
    with refuses("artifact-dtype", value="o", kind=ArtifactError):
        written(tmp_path, arrays={"o": np.array([None])})
    with refuses("artifact-description", kind=ArtifactError):
        written(tmp_path, meta={"x": float("nan")})
    with refuses("artifact-description", kind=ArtifactError):
        written(tmp_path, meta={"x": {1, 2}})


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = written(tmp_path)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with refuses("artifact-unwritable", kind=ArtifactError):
        written(tmp_path, meta={"new": True})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_refused(tmp_path):
    with refuses("artifact-unwritable", kind=ArtifactError):
        save_artifact(tmp_path / "no" / "prior", kind="test", version=1, meta={}, arrays={})
