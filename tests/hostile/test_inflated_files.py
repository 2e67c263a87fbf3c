"""Small files that would take very much memory or time are refused before they are unpacked."""

import base64
import hashlib
import io
import json
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretune.automl.final_model import model_file
from foretune.automl.final_model.model import Model
from foretune.errors import ArtifactError, ForetuneError
from foretune.experience import Experience
from foretune.numerics.artifact import load_artifact
from foretune.tables.formats import parquet
from foretune.tables.formats.file_sample import write_sample
from foretune.tables.formats.reader import read_parts
from foretune.tables.reading import read_sample, read_table
from foretune.tables.table import Table
from foretune.testing.problems import problem
from tests.hostile.readers import signed_artifact
from tests.refusals import refuses

pytest.importorskip("skops")


def archive(entries, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression=compression) as packed:
        for name, content in entries.items():
            packed.writestr(name, content)
    return stream.getvalue()


@contextmanager
def takes_at_most(most_bytes):
    """Fail if what is done inside takes more memory, in Python or in Arrow: it was unpacked."""
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= most_bytes
        assert pool.max_memory() <= most_bytes
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def array_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("what", ["schema", "array", "header"])
def test_a_model_that_grows_by_unpacking_is_refused_unread(what, tmp_path):
    node = '{"__class__":"dict","__module__":"builtins","__loader__":"DictNode","content":{}},'
    entries = {
        "foretune.json": b"{}" + (b" " * 2**25 if what == "header" else b""),
        "schema.json": b"[" + (node.encode() * 120_000 if what == "schema" else b"") + b"{}]",
    }
    if what == "array":
        entries["1.npy"] = array_bytes(np.zeros(2**23))
    path = tmp_path / "m.foretune"
    path.write_bytes(archive(entries))
    assert path.stat().st_size < 400_000
    with refuses("not-a-model"):
        Model.open(path)  # the first time, libraries are imported, which takes memory as well
    with takes_at_most(2**22), refuses("not-a-model"):
        Model.open(path)
    with takes_at_most(2**22), refuses("not-a-model"):
        model_file.read_header(path)


@pytest.mark.parametrize("element", ["{},", "[],", "0,"])
def test_json_of_very_many_parts_is_refused_before_it_is_parsed(element, tmp_path):
    entries = {"foretune.json": b"{}", "schema.json": b"[" + element.encode() * 600_000 + b"0]"}
    path = tmp_path / "m.foretune"
    path.write_bytes(archive(entries))
    with takes_at_most(2**23), refuses("not-a-model"):
        Model.open(path)


def test_marks_inside_of_texts_are_no_parts(tmp_path):
    path = tmp_path / "texts.foretune"
    texts = [{"words": 'a,{["\\' * 200_000}]
    model_file.write_model(path, {}, texts)
    _, read = model_file.read_model(path)
    assert read == texts


@pytest.mark.parametrize("kind", ["numbers", "texts", "lists of texts"])
def test_a_table_of_rows_that_repeat_is_refused_unread(kind, tmp_path, monkeypatch):
    """A value that repeats takes next to nothing in a Parquet file."""
    monkeypatch.setattr(parquet, "SMALL", 2**22)
    path = tmp_path / "t.parquet"
    rows = 2**22 if kind == "numbers" else 2000
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["a" * 10**5])
    column = {
        "numbers": lambda: pa.array(np.ones(rows)),
        "texts": texts.dictionary_decode,
        "lists of texts": lambda: pa.ListArray.from_arrays(
            np.arange(rows + 1, dtype=np.int32), texts.dictionary_decode()
        ),
    }[kind]()
    pq.write_table(pa.table({"x": column}), path, compression="zstd")
    assert path.stat().st_size < 30_000
    with refuses("inflated-table"):
        read_table(path, "x")
    with refuses("inflated-table"):
        next(read_parts(path))
    assert write_sample(path, 10_000, tmp_path) is None


def test_a_large_table_is_sampled_by_what_it_takes_in_memory(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.ones(2**17), "class": ["a", "b"] * 2**16}), path)
    frame, share = read_sample(path, most_bytes=2**18)
    assert share < 0.25
    assert len(frame) == pytest.approx(share * 2**17, rel=0.1)


def test_a_model_that_is_nothing_but_zeros_can_still_be_kept(tmp_path):
    zeros = [{"weights": np.zeros(2**23)}]
    path = tmp_path / "zeros.foretune"
    model_file.write_model(path, {}, zeros)
    _, (read,) = model_file.read_model(path)
    assert np.array_equal(read["weights"], zeros[0]["weights"])


def test_a_prepared_table_that_grows_by_unpacking_is_refused_unread(tmp_path):
    path = tmp_path / "t.npz"
    zeros = array_bytes(np.zeros(10_000_000))
    path.write_bytes(archive({"header.npy": array_bytes(np.zeros(2, np.uint8)), "x.npy": zeros}))
    with takes_at_most(2**22), pytest.raises(ForetuneError):
        Table.open(path)


def test_an_experience_with_rows_out_of_nothing_is_refused_unread(tmp_path):
    path = tmp_path / "past.parquet"
    problem("flat").experience.save(path)
    whole = pq.read_table(path)
    file = pq.ParquetFile(path)
    count = 8_000_000
    block = whole.take(pa.array(np.zeros(count, dtype=np.int64)))
    with pq.ParquetWriter(path, whole.schema, compression="zstd") as writer:
        writer.write_table(block, row_group_size=count)
        writer.add_key_value_metadata(
            {k: v for k, v in file.metadata.metadata.items() if k.startswith(b"foretune")}
        )
    assert path.stat().st_size < 2**20
    with takes_at_most(2**24), pytest.raises(ForetuneError):
        Experience.open(path)


def test_configurations_out_of_nothing_are_refused_unread(tmp_path):
    path = tmp_path / "past.parquet"
    problem("flat").experience.save(path)
    file = pq.ParquetFile(path)
    table, metadata = file.read(), dict(file.metadata.metadata)
    header = json.loads(metadata[b"foretune"])
    header["configs"] = [2**24 // header["configs"][1], header["configs"][1]]
    raw = bytes(8 * int(np.prod(header["configs"])))
    text = json.dumps(header).encode()
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                b"foretune": text,
                b"foretune.configs": base64.b64encode(pa.compress(raw, codec="zstd", asbytes=True)),
                b"foretune.sha256": hashlib.sha256(text + b"\0" + raw).hexdigest().encode(),
            }
        )
    assert path.stat().st_size < 2**20
    with takes_at_most(2**24), pytest.raises(ForetuneError):
        Experience.open(path)


def test_a_prior_with_rows_out_of_nothing_is_refused(tmp_path):
    path = tmp_path / "prior.safetensors"
    path.write_bytes(
        signed_artifact({"kind": "k", "version": 1, "meta": {}}, {"x": np.zeros((2**40, 0))})
    )
    assert path.stat().st_size < 400
    with refuses("inflated-array", kind=ArtifactError):
        load_artifact(path, kind="k", newest_version=1)
