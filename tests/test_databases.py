"""Where databases lie, however they are written."""

import os

import pytest

from foretune._base.databases import file_of, is_sqlite, parse_url, place, with_driver
from foretune.errors import ForetuneError


@pytest.mark.parametrize(
    "other",
    [
        "{tmp}/x.db",
        "./x.db",
        "sub/../x.db",
        "link.db",
        "hard.db",
        "sqlite:///x.db",
        "sqlite:///{tmp}/x.db",
        "sqlite:///x.db?timeout=5",
        "sqlite+pysqlite:///x.db",
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_file_is_the_same_under_all_its_names(tmp_path, monkeypatch, other, exists):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    if exists:
        (tmp_path / "x.db").touch()
        os.link("x.db", "hard.db")
    elif other == "hard.db":
        return
    (tmp_path / "link.db").symlink_to("x.db")
    assert place(other.format(tmp=tmp_path)) == place("x.db")
    assert place("y.db") != place("x.db")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://me:pw@host/db", "postgresql+psycopg://you@HOST:5432/db", True),
        ("postgresql://me@host/db", "postgresql://me@host:5433/db", False),
        ("postgresql://me@host/db", "postgresql://me@host/other", False),
        ("postgresql://me@host/db", "postgresql://me@elsewhere/db", False),
        ("postgresql:///db", "postgresql://localhost/db", True),
        ("postgresql:///db?host=/tmp", "postgresql://localhost/db", False),
        ("mysql://host/db", "mysql+pymysql://host:3306/db?charset=utf8", True),
        ("mysql://host/db", "postgresql://host/db", False),
        ("postgresql://host:port/db", "postgresql://host/db", False),
    ],
)
def test_a_server_is_the_same_by_its_host_port_and_database(one, other, same):
    pytest.importorskip("sqlalchemy")
    assert (place(one) == place(other)) is same


def driven(url: str, installed: set[str]) -> str:
    """The URL where only these modules are installed."""
    return with_driver(url, find=lambda name: name if name in installed else None)


def test_a_driver_that_is_installed_stands_in_for_the_usual_one():
    here = {"pymysql"}
    assert driven("mysql://me:a://b@h/d", here) == "mysql+pymysql://me:a://b@h/d"
    for as_it_is in ("postgresql+asyncpg://h/d", "sqlite:///x.db", "x.db"):
        assert driven(as_it_is, here) == as_it_is
    assert driven("mysql://h/d", here | {"MySQLdb"}) == "mysql://h/d"
    assert driven("postgresql://h/d", set()) == "postgresql://h/d"


@pytest.mark.parametrize("installed", ["psycopg", "psycopg2"])
def test_either_driver_of_postgresql_will_do(installed):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    url = sqlalchemy.make_url(driven("postgresql://me:word@h/d", {installed}))
    assert url.get_dialect().driver == installed
    assert url.render_as_string(hide_password=False).endswith("://me:word@h/d")


def test_files_and_servers_are_told_apart():
    assert is_sqlite("sqlite:///x.db")
    assert is_sqlite("sqlite+pysqlite:///x.db")
    assert not is_sqlite("postgresql://h/sqlite")
    assert str(file_of("sqlite+pysqlite:///a/x.db")) == "a/x.db"
    assert str(file_of("a/journal.log")) == "a/journal.log"
    assert file_of("mysql://h/d") is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host:notaport/db",
        "postgresql://me:s3cret@host:99999/db",
        "postgresql://me:s3cret@host:0/db",
        "postgresql://me:s3cret@host:-1/db",
        "postgresql://me:s3cret@[::1/db",
        "mysql://me:s3:cr@et@host:x/db",
        "sqlite://me:s3cret@host:bad/x",
        "sqlite:///x\udcff.db",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url):
    from foretune.stores.optuna.storage import open_storage
    from foretune.stores.optuna.study import check_store

    for open_ in (parse_url, check_store, open_storage):
        with pytest.raises(ForetuneError) as refused:
            open_(url)
        assert "s3" not in str(refused.value)
        assert "\n" not in str(refused.value)
        str(refused.value).encode()
