"""A few of the inputs of benchmarks/reliability/fuzz.py, which has ten thousand."""

import pytest

from tests.hostile.readers import all_readers, outcome

pytest.importorskip("skops")

INPUTS = 20
METHODS = ("zero-shot", "ws-gp", "rgpe", "gp")
"""Those that learn in no time."""
READERS = (
    "space JSON", "experience", *(f"prior of {name}" for name in METHODS), "portfolio", "model",
    "booster",
    "table to fit (CSV)", "table to fit (Parquet)", "table to predict (CSV)",
    "table to predict (Parquet)", "prepared table", "manifest", "journal", "memory",
    "table of evaluations", "HPO-B",
)  # fmt: skip


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    made = all_readers(folder, methods=METHODS, algorithms=("naive_bayes", "rf", "logistic"))
    return {reader.name: reader for reader in made}


def test_no_reader_is_left_out(readers):
    assert set(readers) == set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_spoilt_files_are_loaded_or_refused(name, readers, tmp_path):
    results = [outcome(readers[name], seed, tmp_path) for seed in range(INPUTS)]
    assert "refused" in results or name == "memory"  # which sets aside what it cannot read
