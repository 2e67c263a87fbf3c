"""Stores of tests in this folder: making the tables of one takes longer than a test with them."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with tables and no study."""
    pytest.importorskip("optuna")
    from foretune.stores.optuna.study import _database

    path = tmp_path_factory.mktemp("store") / "study.db"
    _database(f"sqlite:///{path}").engine.dispose()
    return path


@pytest.fixture
def url(tmp_path: Path, empty_store: Path) -> str:
    """The address of a store of this test alone."""
    return f"sqlite:///{shutil.copy(empty_store, tmp_path)}"
