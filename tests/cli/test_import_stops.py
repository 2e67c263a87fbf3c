"""What an import leaves that is stopped: whole files or none."""

import os

import pandas as pd
import pytest

from foretune.experience import Experience
from foretune.space import Space

OPERATIONS = ("replace", "fsync")


@pytest.fixture
def words(tmp_path):
    rows = [{"dataset": f"d{i % 3}", "rate": 0.1 * i, "error": 1.0 / (i + 1)} for i in range(9)]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    given = ("import", "table", tmp_path / "runs.csv", "--task", "dataset", "--value", "error:min")
    return (*given, "-o", tmp_path / "runs.parquet")


def watched(monkeypatch, stops_at=None):
    """Note the operations on files, and press Ctrl-C before one of them."""
    done = []
    for name in OPERATIONS:
        operation = getattr(os, name)

        def watch(*given, name=name, operation=operation, **named):
            if len(done) == stops_at:
                raise KeyboardInterrupt
            done.append((name, str(given[-1])))
            return operation(*given, **named)

        monkeypatch.setattr(os, name, watch)
    return done


def test_both_files_are_put_in_their_places_in_one_step(foretune, words, tmp_path, monkeypatch):
    done = watched(monkeypatch)
    assert foretune(*words)[0] == 0
    replaced = [path for name, path in done if name == "replace"]
    assert replaced == [str(tmp_path / "runs.parquet"), str(tmp_path / "runs.space.json")]


@pytest.mark.parametrize("stops_at", range(6))
def test_a_stopped_import_leaves_whole_files_and_the_same_command_ends_well(
    foretune, words, tmp_path, monkeypatch, stops_at
):
    with monkeypatch.context() as patched:
        watched(patched, stops_at)
        assert foretune(*words)[0] == 130
    left = {path.name for path in tmp_path.iterdir()} - {"runs.csv"}
    assert left <= {"runs.parquet", "runs.space.json"}
    if "runs.parquet" in left:
        assert len(Experience.open(tmp_path / "runs.parquet")) == 9
    if "runs.space.json" in left:
        Space.from_json((tmp_path / "runs.space.json").read_text())
    assert foretune(*words)[0] == 0
    assert len(Experience.open(tmp_path / "runs.parquet")) == 9
