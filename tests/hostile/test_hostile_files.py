"""Files that somebody made to do harm, under every name that Foretune reads."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretune.automl.final_model.model import Model
from foretune.automl.knowledge.bundle import MANIFEST, SHIPPED, Bundle
from foretune.cli.tune_options import resolve_space as space_of_file
from foretune.errors import ArtifactError, ForetuneError
from foretune.experience import Experience
from foretune.experience.journal import Journal
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.methods.zero_shot.shipped import portfolio as shipped_portfolio
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.search.registry import method
from foretune.stores.formats import TableColumns, import_experience
from foretune.tables.reading import read_table
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune.testing.problems import problem
from foretune_lab.archives.safe_pickle import load_plain
from tests.automl.samples import mixed_table
from tests.hostile.readers import signed_artifact
from tests.hostile.test_inflated_files import takes_at_most
from tests.refusals import refuses

pytest.importorskip("skops")

DEPTH = 100_000
GIGABYTE = 2**30


def import_table(path):
    return import_experience("table", path, columns=TableColumns("task", {"loss": "min"}))


READERS = {
    "space.json": lambda path: space_of_file(path, None),
    "past.parquet": Experience.open,
    "prior.safetensors": method("zero-shot").load,
    "auto.safetensors": method("auto").load,
    "portfolio.json": Portfolio.open,
    "m.foretune": Model.open,
    "t.csv": lambda path: read_table(path, "class"),
    "t.parquet": lambda path: read_table(path, "class"),
    "t.npz": Table.open,
    MANIFEST: lambda path: Bundle.open(path.parent),
    "trials.jsonl": Journal,
    "runs.csv": import_table,
    "runs.csv.zip": import_table,
    "runs.csv.gz": import_table,
    "runs.csv.xz": import_table,
    "meta-test-dataset.json": lambda path: import_experience("hpob", path.parent),
}
"""By the name of a file: what reads it."""


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path):
    """A file that is there once something of the attacker's has run."""
    return tmp_path / "owned"


def refused(name, content, tmp_path):
    """Read a hostile file in a folder of its own, and see that it is the only one there after."""
    folder = tmp_path / "given"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / name).write_bytes(content)
    with pytest.raises(ForetuneError) as refusal:
        READERS[name](folder / name)
    assert [each.name for each in folder.iterdir()] == [name]
    return str(refusal.value)


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("name", READERS)
def test_a_pickle_under_another_name_is_refused_and_never_run(name, protocol, mark, tmp_path):
    content = pickle.dumps(Trap(mark), protocol=protocol)
    refused(name, content + b"\n", tmp_path)
    assert not mark.exists()
    pickle.loads(content)
    assert mark.exists()  # so the trap would have worked


def test_a_pickle_inside_of_an_archive_is_not_run(mark, tmp_path):
    trap = pickle.dumps(Trap(mark))
    array = io.BytesIO()
    np.save(array, np.array([Trap(mark)], dtype=object), allow_pickle=True)
    whole = io.BytesIO()
    header = np.frombuffer(b"{}", dtype=np.uint8)
    np.savez(whole, header=header, x=np.array([Trap(mark)], dtype=object), y=np.zeros(1))
    refused("t.npz", whole.getvalue(), tmp_path)
    for entries in ({"schema.json": trap}, {"a.npy": array.getvalue()}, {"evil.pkl": trap}):
        refused("m.foretune", archive(entries), tmp_path)
    assert not mark.exists()


def test_pickled_tables_build_nothing_but_plain_data(mark):
    with refuses("unsafe-pickle"):
        load_plain(io.BytesIO(pickle.dumps([1, Trap(mark)])), "table")
    assert not mark.exists()


def archive(entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries.items():
            packed.writestr(name, content)
    return stream.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Files as they should be."""
    from foretune.automl.estimators.fitted_pipeline import refit

    folder = tmp_path_factory.mktemp("whole")
    table = mixed_table(Task.CLASSIFICATION, n=40)
    member = refit(naive_bayes(), table, seed=0)
    Model.of(table, [member], target="class", metric="accuracy").save(folder / "m.foretune")
    problem("cash").experience.save(folder / "past.parquet")
    prior = method("zero-shot").learn(problem("cash").experience, seed=0)
    prior.save(folder / "prior.safetensors")
    table.save(folder / "t.npz")
    return folder


def naive_bayes():
    from foretune.automl.spaces import load_shipped_space

    return (
        load_shipped_space("pipeline-classification").build(["naive_bayes"]).defaults().dicts()[0]
    )


def entries_of(path):
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.parametrize("entry", ["schema.json", "foretune.json"])
def test_a_zip_bomb_is_not_unpacked(entry, whole, tmp_path):
    entries = entries_of(whole / "m.foretune") | {entry: b" " * 2**23}
    bomb = archive(entries)
    assert len(bomb) < 2**17
    with takes_at_most(2**22):
        assert "its size when unpacked" in refused("m.foretune", bomb, tmp_path)


def test_an_archive_that_lies_about_its_size_is_refused(whole, tmp_path):
    entries = entries_of(whole / "m.foretune") | {"schema.json": b"[" + b"0," * 2**20 + b"0]"}
    content = archive(entries)
    said = (2 * 2**20 + 3).to_bytes(4, "little")
    assert content.count(said) == 2  # in the entry's own header, and in the directory
    refused("m.foretune", content.replace(said, (100).to_bytes(4, "little")), tmp_path)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("runs.csv.gz", gzip.compress),
        ("runs.csv.bz2", bz2.compress),
        ("runs.csv.xz", lzma.compress),
        ("runs.csv.zip", lambda text: archive({"../runs.csv": text})),
    ],
)
def test_packed_tables_are_read_and_bombs_are_not(name, pack, tmp_path, monkeypatch):
    text = b"task,rate,loss\n" + b"".join(b"t,%d,0.5\n" % i for i in range(50))
    (tmp_path / name).write_bytes(pack(text))
    assert len(import_table(tmp_path / name)) == 50
    monkeypatch.setattr("foretune.stores.files.compressed.ALWAYS_FINE", 2**16)
    (tmp_path / name).write_bytes(pack(text + b"t,1,0.5\n" * 2**18))
    with refuses("inflated-table"):
        import_table(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_bomb_in_the_archive_of_a_benchmark(tmp_path, monkeypatch):
    monkeypatch.setattr("foretune.stores.files.compressed.ALWAYS_FINE", 2**16)
    bomb = archive({"meta-test-dataset.json": b"[" + b" " * 2**21 + b"]"})
    (tmp_path / "hpob.zip").write_bytes(bomb)
    with refuses("inflated-table"):
        import_experience("hpob", tmp_path / "hpob.zip")


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..\\evil.npy", "a/../../b.npy"])
def test_names_that_lead_out_of_an_archive(name, whole, tmp_path):
    content = archive(entries_of(whole / "m.foretune") | {name: b"x"})
    assert "entries that no model has" in refused("m.foretune", content, tmp_path)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("file", ["../secret.json", "/etc/hostname", "a/../../secret.json", ".."])
def test_a_manifest_that_names_files_elsewhere(file, tmp_path):
    (tmp_path / "secret.json").write_text("{}")
    plain = json.loads((SHIPPED / MANIFEST).read_text())
    folder = tmp_path / "knowledge"
    folder.mkdir()
    [name, *_] = plain["spaces"]
    plain["spaces"][name]["definition"]["file"] = file
    (folder / MANIFEST).write_text(json.dumps(plain))
    bundle = Bundle.open(folder)
    with pytest.raises(ArtifactError):
        bundle.path(bundle.spaces[name].definition)
    bundle.without_space(name)
    assert (tmp_path / "secret.json").exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_arrays_full_of_nan_are_refused_even_if_signed(bad, whole, tmp_path):
    meta = {"space": problem("cash").space.to_json()}
    described = {"kind": "foretune-zero-shot", "version": 1, "meta": meta}
    arrays = {"values": np.full((3, 5), bad), "active": np.ones((3, 5), dtype=bool)}
    message = refused("prior.safetensors", signed_artifact(described, arrays), tmp_path)
    assert "NaN or infinity in 'values'" in message
    with np.load(whole / "t.npz") as loaded:
        stream = io.BytesIO()
        np.savez(stream, header=loaded["header"], x=loaded["x"], y=np.full(40, bad))
    refused("t.npz", stream.getvalue(), tmp_path)


def nested(experts):
    """A signed prior of the method that holds the priors of others."""
    meta = {"experts": list(experts), "taught": list(experts), "trials": 5, "seed": 0}
    described = {"kind": "foretune-auto", "version": 1, "meta": meta}
    arrays = {f"expert.{name}": np.frombuffer(held, np.uint8) for name, held in experts.items()}
    return signed_artifact(described, arrays)


def test_parts_of_a_prior_are_checked_as_closely(mark, whole, tmp_path):
    refused("auto.safetensors", nested({"gcp-prior": pickle.dumps(Trap(mark))}), tmp_path)
    assert not mark.exists()
    other = (whole / "prior.safetensors").read_bytes()
    assert "foretune-zero-shot" in refused(
        "auto.safetensors", nested({"gcp-prior": other}), tmp_path
    )
    for name in ("../../evil", "/tmp/evil", "zero-shot"):
        refused("auto.safetensors", nested({name: other}), tmp_path)
    assert not (tmp_path / "evil").exists()
    described = {"kind": method("gcp-prior").learner().kind, "version": 1, "meta": {}}
    bad = signed_artifact(described, {"weights": np.full(3, np.nan)})
    message = refused("auto.safetensors", nested({"gcp-prior": bad}), tmp_path)
    assert "NaN or infinity in 'weights'" in message


def test_headers_that_claim_gigabytes(whole, tmp_path):
    claims = json.dumps(
        {
            "__metadata__": {"foretune": json.dumps({})},
            "a": {"dtype": "F64", "shape": [1000 * GIGABYTE], "data_offsets": [0, 8000 * GIGABYTE]},
        }
    ).encode()
    refused("prior.safetensors", len(claims).to_bytes(8, "little") + claims, tmp_path)
    refused("prior.safetensors", (2**62).to_bytes(8, "little") + claims, tmp_path)
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        array, {"descr": "<f8", "fortran_order": False, "shape": (1000 * GIGABYTE,)}
    )
    entries = entries_of(whole / "t.npz") | {"x.npy": array.getvalue()}
    refused("t.npz", archive(entries), tmp_path)
    parquet = (whole / "past.parquet").read_bytes()
    refused("past.parquet", parquet[:-8] + b"\xff\xff\xff\x7fPAR1", tmp_path)


def test_an_experience_that_claims_more_configurations_than_it_has(whole, tmp_path):
    file = pq.ParquetFile(whole / "past.parquet")
    metadata = dict(file.metadata.metadata)
    header = json.loads(metadata[b"foretune"])
    for shape in ([10**12, 5], [-1, 5], [2**62, 4], [1.5, 2]):
        spoilt = metadata | {b"foretune": json.dumps(header | {"configs": shape}).encode()}
        stream = io.BytesIO()
        with pq.ParquetWriter(stream, file.schema_arrow) as writer:
            writer.write_table(file.read())
            writer.add_key_value_metadata(spoilt)
        refused("past.parquet", stream.getvalue(), tmp_path)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"hyperparameters":', "[[[{}],"])
@pytest.mark.parametrize("name", [name for name in READERS if "json" in name])
def test_json_of_great_depth(name, opening, tmp_path):
    refused(name, (opening * DEPTH).encode() + b"\n", tmp_path)
    if opening == "[":
        refused(name, b"[" * DEPTH + b"]" * DEPTH + b"\n", tmp_path)


def test_deep_json_inside_of_other_formats(whole, tmp_path):
    deep = b"[" * DEPTH + b"]" * DEPTH
    metadata = {b"foretune": deep, b"foretune.configs": b"", b"foretune.sha256": b""}
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(metadata), stream)
    refused("past.parquet", stream.getvalue(), tmp_path)
    refused("prior.safetensors", len(deep).to_bytes(8, "little") + deep, tmp_path)
    for entry in ("schema.json", "foretune.json"):
        spoilt = entries_of(whole / "m.foretune") | {entry: deep}
        refused("m.foretune", archive(spoilt), tmp_path)
    arrays = {"header": np.frombuffer(deep, dtype=np.uint8), "x": np.zeros(0), "y": np.zeros(0)}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    refused("t.npz", stream.getvalue(), tmp_path)


def test_versions_from_the_future(whole, tmp_path):
    entries = entries_of(whole / "m.foretune")
    header = json.loads(entries["foretune.json"]) | {"version": 99}
    content = archive(entries | {"foretune.json": json.dumps(header).encode()})
    assert "99" in refused("m.foretune", content, tmp_path)
    described = {"kind": "foretune-zero-shot", "version": 99, "meta": {}}
    assert "99" in refused("prior.safetensors", signed_artifact(described, {}), tmp_path)
    plain = json.loads(shipped_portfolio("xgboost").to_json()) | {"version": 99}
    refused("portfolio.json", json.dumps(plain).encode(), tmp_path)
    manifest = json.loads((SHIPPED / MANIFEST).read_text()) | {"version": 99}
    assert "99" in refused(MANIFEST, json.dumps(manifest).encode(), tmp_path)
    metadata = {b"foretune": json.dumps({"format": "foretune-experience", "version": 99}).encode()}
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(metadata), stream)
    assert "99" in refused("past.parquet", stream.getvalue(), tmp_path)


def test_checksums_that_do_not_fit(whole, tmp_path):
    content = (whole / "prior.safetensors").read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1])
    assert "checksum" in refused("prior.safetensors", changed, tmp_path)
    folder = tmp_path / "knowledge"
    folder.mkdir()
    manifest = json.loads((SHIPPED / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest))
    bundle = Bundle.open(folder)
    kept = next(iter(bundle.spaces.values())).definition
    (folder / kept.file).write_bytes((SHIPPED / kept.file).read_bytes() + b" ")
    with refuses("damaged-knowledge", kind=ArtifactError):
        bundle.path(kept)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_writing_replaces_a_link_and_not_what_it_leads_to(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    link = tmp_path / "prior"
    link.symlink_to(precious)
    save_artifact(link, kind="k", version=1, meta={}, arrays={})
    assert precious.read_text() == "keep me"
    assert not link.is_symlink()
    link = tmp_path / "past.parquet"
    link.symlink_to(precious)
    problem("flat").experience.save(link)
    assert precious.read_text() == "keep me"
    assert load_artifact(tmp_path / "prior", kind="k", newest_version=1) == ({}, {})


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("name", [name for name in READERS if name != MANIFEST])
def test_links_that_lead_nowhere_or_to_themselves(name, tmp_path):
    for target in ("nowhere", name):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(target)
        try:
            READERS[name](tmp_path / name)
        except ForetuneError:
            continue
        assert name == "trials.jsonl"  # a journal that is not there yet is an empty one
