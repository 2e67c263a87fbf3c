"""Files whose bytes are whole, and whose notes or cells libraries stumble over."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretune.errors import ForetuneError
from foretune.stores.files.table_files import read_columns
from foretune.tables.formats.reader import read_frame, read_parts
from tests.refusals import refuses

DIGITS = "9" * 400


@pytest.mark.parametrize("lost", ["numpy_type", "pandas_type", "name", "metadata"])
def test_notes_of_pandas_that_are_not_whole_count_for_nothing(tmp_path, lost):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    table = pa.Table.from_pandas(frame)
    notes = json.loads(table.schema.metadata[b"pandas"])
    for column in notes["columns"]:
        del column[lost]
    path = tmp_path / "table.parquet"
    pq.write_table(table.replace_schema_metadata({b"pandas": json.dumps(notes).encode()}), path)
    [part] = read_parts(path)
    for read in (read_frame(path), part):
        assert list(read.columns) == ["a", "b"]
        assert read["a"].tolist() == [1, 2, 3]
        assert read["b"].tolist() == ["x", "y", "z"]
    assert len(read_columns(path)) == 3


@pytest.mark.parametrize("cells", [[DIGITS], ["1", DIGITS], ["1.5", DIGITS], ["", f"-{DIGITS}"]])
@pytest.mark.parametrize(
    "read",
    [read_frame, lambda path: pd.concat(list(read_parts(path, part_bytes=1))), read_columns],
)
def test_a_number_of_400_digits_is_read_or_refused(tmp_path, read, cells):
    """Some versions of pandas raise an OverflowError for it."""
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    try:
        rows = read(path)
    except ForetuneError:
        return
    assert len(rows) == len(cells)


def test_an_overflow_is_refused_in_one_sentence(tmp_path):
    from foretune.tables.formats import reader

    path = tmp_path / "table.csv"
    path.write_text("a\n1\n")
    with refuses("table-format", value=str(path)), reader._one_sentence(path):
        float(int(DIGITS))
    assert np.isfinite(float(int(DIGITS[:300])))
