import os
import sqlite3
from contextlib import closing

import pytest

from foretune.stores.mlflow.tracking_store import (
    IMPATIENT,
    existing_uri,
    first_contact,
    tracking_uri,
)
from tests.refusals import refuses


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("runs.db")) as made:
        made.execute("CREATE TABLE runs (id INTEGER)")
    (tmp_path / "notes.txt").write_text("not a database")
    (tmp_path / "mlruns").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("runs.db", "sqlite:///runs.db"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
        ("sqlite:///runs.db?timeout=5", "sqlite:///runs.db?timeout=5"),
        ("http://localhost:5000", "http://localhost:5000"),
        ("databricks", "databricks"),
        ("file:./elsewhere", "file:./elsewhere"),
        ("mlruns", "mlruns"),
    ],
)
def test_what_may_be_read(given, uri):
    assert existing_uri(given) == uri


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("sqlite:///typo.db", "missing-source"),
        ("typo.db", "missing-source"),
        ("notes.txt", "not-sqlite"),
        ("sqlite:///notes.txt", "not-sqlite"),
    ],
)
def test_a_store_that_is_not_there_is_refused_and_not_created(here, given, rule):
    before = sorted(os.listdir(here))
    with refuses(rule):
        existing_uri(given)
    assert sorted(os.listdir(here)) == before


def test_trials_may_be_logged_to_a_new_file():
    assert tracking_uri("sqlite:///new.db") == "sqlite:///new.db"
    assert tracking_uri("runs.db") == "sqlite:///runs.db"


def test_the_first_contact_is_short_unless_the_user_says_otherwise(monkeypatch):
    retries, seconds = IMPATIENT
    monkeypatch.delenv(retries, raising=False)
    monkeypatch.setenv(seconds, "300")
    with first_contact():
        assert (os.environ[retries], os.environ[seconds]) == ("1", "300")
    assert retries not in os.environ
    assert os.environ[seconds] == "300"
