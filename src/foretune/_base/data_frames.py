"""What pandas does not offer itself."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from numpy.typing import NDArray


def with_columns(
    frame: pd.DataFrame, columns: "Mapping[str, pd.Series[Any] | NDArray[Any]]"
) -> pd.DataFrame:
    """The frame with these columns. Unlike `assign`, this works for a column called `self`."""
    changed = frame.copy(deep=False)
    for name, column in columns.items():
        changed[name] = column
    return changed
