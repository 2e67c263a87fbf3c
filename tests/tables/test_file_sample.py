"""A small file with some rows of a large one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from foretune.tables.formats.file_sample import write_sample
from foretune.tables.formats.reader import read_frame

ROWS = 20_000


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"row": np.arange(ROWS), "x": rng.random(ROWS).round(6), "word": "a,b"})


def sampled(path: Path, size: int, tmp_path: Path) -> pd.DataFrame:
    folder = tmp_path / "made"
    folder.mkdir()
    sample = write_sample(path, size, folder)
    assert sample is not None
    assert sample.stat().st_size < 1.5 * size
    return read_frame(sample)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_rows_of_a_text_are_whole_each_there_once_and_from_everywhere(
    table: pd.DataFrame, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "t.csv"
    table.assign(word="é,b").to_csv(path, index=False, encoding=encoding)
    found = sampled(path, 40_000, tmp_path)
    rows = found["row"].to_numpy()
    assert 1_000 < len(rows) < 4_000
    assert (np.diff(rows) > 0).all()
    assert np.histogram(rows, bins=8, range=(0, ROWS))[0].min() > len(rows) / 16
    np.testing.assert_array_equal(found["x"], table["x"].to_numpy()[rows])
    assert set(found["word"]) == {"é,b"}


def test_a_sample_as_large_as_the_file_is_the_file(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    sample = write_sample(path, 2 * path.stat().st_size, tmp_path)
    assert sample is not None
    assert sample.read_bytes() == path.read_bytes()


def test_rows_of_parquet_are_from_everywhere_and_have_their_types(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    typed = table.assign(word=table["word"].astype("category"))
    typed.to_parquet(path, row_group_size=5_000)
    folder = tmp_path / "made"
    folder.mkdir()
    sample = write_sample(path, 50_000, folder)
    assert sample is not None
    found = read_frame(sample)
    assert pq.ParquetFile(sample).schema_arrow.equals(pq.ParquetFile(path).schema_arrow)
    rows = found["row"].to_numpy()
    assert 500 < len(rows) < ROWS / 2
    assert len(set(rows)) == len(rows)
    assert np.histogram(rows, bins=4, range=(0, ROWS))[0].min() > 0


def test_values_that_span_lines_are_not_torn_apart(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table.assign(word="two\nlines").to_csv(path, index=False)
    assert write_sample(path, 40_000, tmp_path) is None


def test_characters_of_two_bytes_are_not_torn_apart(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False, encoding="utf-16")
    assert write_sample(path, 40_000, tmp_path) is None
