import pytest

from foretune.tables.reading import read_table
from foretune.tables.target import Task
from foretune_lab.collect.table_sources import sources
from tests.automl.samples import mixed_frame
from tests.refusals import refuses


def test_a_folder_of_files(tmp_path):
    mixed_frame().drop(columns="amount").to_csv(tmp_path / "b.csv", index=False)
    mixed_frame().drop(columns="amount").to_parquet(tmp_path / "a.parquet")
    (tmp_path / "notes.md").write_text("about")
    found = sources(str(tmp_path), Task.CLASSIFICATION)
    assert [source.name for source in found] == ["a", "b"]
    tables = [source.load() for source in found]
    assert {table.classes for table in tables} == {("high", "low", "middle")}
    [other, _] = sources(str(tmp_path), Task.CLASSIFICATION, target="letter")
    assert other.load().classes == ("x", "y", "z")


def test_groups_and_names_of_the_catalogue_for_one_task():
    bundled = sources("catalogue:bundled", Task.REGRESSION)
    assert [source.name for source in bundled] == ["sklearn-diabetes"]
    named = sources("catalogue:iris,yeast1,iris", Task.CLASSIFICATION)
    assert [(source.name, source.family) for source in named] == [
        ("iris", "iris"),
        ("yeast1", "yeast"),
    ]


def test_nothing_to_collect(tmp_path):
    for given in ("catalogue:iris", str(tmp_path)):
        with refuses("no-datasets"):
            sources(given, Task.REGRESSION)
    with refuses("no-datasets", value="no such folder"):
        sources("no such folder", Task.REGRESSION)


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    mixed_frame().to_csv(tmp_path / "a.csv", index=False)
    mixed_frame().drop(columns="class").to_csv(tmp_path / "b.csv", index=False)
    good, bad = sources(str(tmp_path), Task.CLASSIFICATION, target="class")
    good.load()
    with refuses("unusable-table"):
        bad.load()


def test_a_target_that_a_fit_refuses_is_refused_here_too(tmp_path):
    mixed_frame().to_csv(tmp_path / "a.csv", index=False)
    [as_classes] = sources(str(tmp_path), Task.CLASSIFICATION, target="amount")
    with refuses("unusable-table"):
        as_classes.load()
    [as_numbers] = sources(str(tmp_path), Task.REGRESSION, target="amount")
    assert as_numbers.load().task is Task.REGRESSION


@pytest.mark.parametrize("target", ["class", None])
def test_classes_are_named_as_in_a_fit(tmp_path, target):
    frame = mixed_frame().drop(columns="amount")
    frame["class"] = frame["class"].map({"high": "001", "low": "002", "middle": "003"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    [found] = sources(str(tmp_path), Task.CLASSIFICATION, target=target)
    as_in_a_fit = read_table(tmp_path / "a.csv", "class").table
    assert found.load().classes == as_in_a_fit.classes == ("001", "002", "003")


def test_files_of_the_same_name_are_refused(tmp_path):
    frame = mixed_frame().drop(columns="amount")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    with refuses("repeated-table", value=("a.csv", "a.parquet")):
        sources(str(tmp_path), Task.CLASSIFICATION)
