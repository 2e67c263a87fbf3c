import bz2
import gzip
import hashlib
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from foretune.tables.formats.reader import TextLayout
from foretune.tables.target import Task
from foretune_lab.collect import catalogue
from foretune_lab.collect.catalogue import group, load
from foretune_lab.collect.catalogue_entries import ENTRIES, FOLDERS, Entry
from foretune_lab.wheels import Wheel
from tests.refusals import refuses

ROWS = "".join(f"{i % 5},{i * i},{'ab'[i % 2]}\n" for i in range(24)) + "1,1,c\n"
LABELS = "".join(f"{'ab'[i % 2]}\n" for i in range(25))


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    path = tmp_path / "tables.whl"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("package/data/t/one.txt", ROWS)
        zipped.writestr("package/data/t/two.txt", ROWS)
        zipped.writestr("package/data/t/of.labels", LABELS)
        zipped.writestr("package/data/t/three.csv.gz", gzip.compress(ROWS.encode()))
        zipped.writestr("package/data/t/four.csv.bz2", bz2.compress(ROWS.encode()))
    made = Wheel("tables", "1.0", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(FOLDERS, made, "package/data")
    return made


@pytest.fixture
def entry(wheel):
    layout = TextLayout(separator=",", header=False)
    return Entry("t", Task.CLASSIFICATION, "t/*.txt", layout, wheel)


@pytest.fixture
def opened(tmp_path):
    def download(wheel, folder):
        path = folder / "tables.whl"
        path.write_bytes((tmp_path / "tables.whl").read_bytes())
        return path

    return lambda entry: load(entry, download=download, cache=tmp_path / "cache")


def test_files_of_one_pattern_follow_each_other_and_rare_classes_are_left_out(entry, opened):
    table = opened(entry)
    assert len(table) == 48
    assert table.classes == ("a", "b")
    assert table.schema.features == ("c0", "c1")
    assert table.x[24:28].tolist() == [[0, 0], [1, 1], [2, 4], [3, 9]]


def test_targets_and_columns_by_position(entry, opened):
    numbers = replace(entry, task=Task.REGRESSION, path="t/one.txt", target=1, without=(0,))
    table = opened(numbers)
    assert table.schema.features == ("c2",)
    assert table.y.tolist()[:4] == [0, 1, 4, 9]


@pytest.mark.parametrize("file", ["three.csv.gz", "four.csv.bz2"])
def test_compressed_tables_are_read_like_plain_ones(entry, opened, file):
    plain, packed = (
        opened(replace(entry, path="t/one.txt")),
        opened(replace(entry, path=f"t/{file}")),
    )
    assert packed.schema.features == plain.schema.features
    assert packed.x.tolist() == plain.x.tolist()


def test_labels_in_a_file_of_their_own(entry, opened):
    table = opened(replace(entry, path="t/one.txt", labels="t/of.labels"))
    assert table.schema.features == ("c0", "c1", "c2")
    assert table.y.tolist()[:4] == [0, 1, 0, 1]


def test_the_catalogue_is_large_enough_and_keeps_families_together():
    classification, regression = group("classification"), group("regression")
    assert len(classification) >= 75
    assert len(regression) >= 25
    family = {entry.name: entry.family for entry in ENTRIES.values()}
    assert family["yeast1"] == family["yeast-1-2-8-9_vs_7"] == family["yeast"] == "yeast"
    assert family["heart"] == family["cleveland"]
    assert "australian" not in ENTRIES
    artificial = {entry.name for entry in group("artificial")}
    assert artificial == {"banana", "ring", "twonorm", "monk-2", "led7digit"}
    assert not artificial & {entry.name for entry in classification}


def test_every_entry_that_names_an_original_is_no_original_itself():
    for entry in ENTRIES.values():
        original = ENTRIES.get(entry.variant_of)
        assert original is None or not original.variant_of


@pytest.mark.parametrize(
    ("whole", "known", "held_out"), [("classification", 81, 19), ("regression", 25, 6)]
)
def test_the_sides_of_a_group_share_no_family(whole, known, held_out):
    sides = group(f"{whole}-known"), group(f"{whole}-held-out")
    assert [len(side) for side in sides] == [known, held_out]
    assert sorted(e.name for side in sides for e in side) == sorted(e.name for e in group(whole))
    first, second = ({entry.family for entry in side} for side in sides)
    assert not first & second


def test_datasets_of_textbooks_are_in_no_other_group():
    books = [*group("classification-textbook"), *group("regression-textbook")]
    assert len(books) == 30
    others = [*group("classification"), *group("regression"), *group("bundled")]
    assert not {entry.name for entry in books} & {entry.name for entry in others}
    assert group("wooldridge-mroz")[0] in books
    for entry in books:
        assert entry.target not in entry.without


@pytest.mark.parametrize("entry", group("bundled"), ids=lambda entry: entry.name)
def test_bundled_datasets(entry):
    table = load(entry)
    assert table.task is entry.task
    assert len(table) >= 150
    assert np.isfinite(table.x).all()


def test_unknown_names():
    with refuses("unknown-dataset"):
        group("irris")
    assert group("iris") == [catalogue.ENTRIES["iris"]]
