import inspect
import subprocess
import sys

import pandas as pd
import pytest

from foretune.stores import IMPORTERS, TableColumns, import_experience
from tests.refusals import refuses


@pytest.mark.parametrize("name", IMPORTERS)
def test_every_importer_reads_with_the_options_it_announces(name):
    importer = IMPORTERS[name]
    parameters = inspect.signature(importer.read).parameters
    assert {"source", "progress", *importer.options} <= set(parameters)
    assert importer.summary
    assert importer.source


def test_importing_the_registry_imports_no_importer():
    check = (
        "import sys, foretune.stores;"
        "bad = {'optuna', 'pandas', 'pyarrow'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_reads_by_kind(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "x": [1], "y": [2.0]}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min"})
    assert import_experience("table", path, columns=columns).losses.tolist() == [[2.0]]


def test_refuses_an_unknown_kind(tmp_path):
    with refuses("unknown-source-kind", value="csv"):
        import_experience("csv", tmp_path)


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("oboe", {"columns": TableColumns(task="t")}, "columns"),
        ("table", {"space_id": "1"}, "space_id"),
        ("hpob", {"studies": ["a"]}, "studies"),
    ],
)
def test_refuses_options_of_another_kind(tmp_path, kind, options, field):
    with refuses("foreign-option", field=field, value=kind):
        import_experience(kind, tmp_path, **options)


def test_unused_columns_are_no_option(tmp_path):
    with refuses("missing-member", field="error_matrix.csv"):
        import_experience("oboe", tmp_path, columns=TableColumns())


def test_a_table_without_columns_says_what_it_needs(tmp_path):
    with refuses("no-task-or-value-column"):
        import_experience("table", tmp_path / "runs.csv", columns=TableColumns())
