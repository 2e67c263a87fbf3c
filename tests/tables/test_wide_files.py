"""Tables of very many columns are refused before anything slow looks at them."""

import pandas as pd
import pytest

from foretune.tables.formats.text_form import MOST_COLUMNS
from foretune.tables.reading import read_table
from tests.refusals import refuses


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_too_many_columns_are_refused_with_the_limit(suffix, tmp_path):
    path = tmp_path / f"wide.{suffix}"
    count = 100_000 if suffix == "csv" else MOST_COLUMNS + 1
    if suffix == "csv":
        row = ",".join(["1"] * count)
        path.write_text(",".join(f"c{i}" for i in range(count)) + f"\n{row}\n{row},1\n")
    else:
        pd.DataFrame([range(count)], columns=[f"c{i}" for i in range(count)]).to_parquet(path)
    with refuses("too-many-columns", value=count):
        read_table(path, "c1")
