"""Helpers for pandas."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from numpy.typing import NDArray


def with_columns(
    frame: pd.DataFrame, columns: "Mapping[str, pd.Series[Any] | NDArray[Any]]"
) -> pd.DataFrame:
    """Return the frame with these columns added. `assign` fails for a column called `self`."""
    changed = frame.copy(deep=False)
    for name, column in columns.items():
        changed[name] = column
    return changed
