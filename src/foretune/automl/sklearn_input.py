"""Turns the arguments of scikit-learn estimators into data frames."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from foretune._base.data_frames import with_columns
from foretune.errors import UsageError
from foretune.tables import ColumnRoles


def as_frame(given: ArrayLike, checked: NDArray[Any]) -> pd.DataFrame:
    """Return a given data frame; give columns of anything else the names x0, x1, ..."""
    if isinstance(given, pd.DataFrame):
        return given.rename(columns=str).reset_index(drop=True)
    names = [f"x{column}" for column in range(checked.shape[1])]
    return pd.DataFrame(checked, columns=names)


def new_name(wanted: str, frame: pd.DataFrame) -> str:
    """Return a name that no column has."""
    while wanted in frame.columns:
        wanted += "_"
    return wanted


def with_roles(frame: pd.DataFrame, **given: ArrayLike | None) -> tuple[pd.DataFrame, ColumnRoles]:
    """Add groups, order or weights of the rows as columns that are not learnt from."""
    added = {}
    for role, values in given.items():
        if values is None:
            continue
        column = _one_column(role, values)
        if len(column) != len(frame):
            raise UsageError(
                f"{role} needs a value for each of the {len(frame):,} rows, but got "
                f"{len(column):,}: give as many",
                rule="wrong-length",
                field=role,
            )
        added[role] = new_name(role, frame)
        frame = with_columns(frame, {added[role]: column.reset_index(drop=True)})
    return frame, ColumnRoles(
        added.get("groups"),
        added.get("order"),
        tuple(added.values()),
        added.get("sample_weight"),
    )


def _one_column(role: str, values: ArrayLike) -> "pd.Series[Any]":
    if isinstance(values, pd.Series):
        return values
    try:
        return pd.Series(column_or_1d(values))
    except ValueError:
        # The error is raised here, because scikit-learn's error would name the target.
        shown = f"the text '{values}'" if isinstance(values, str) else type(values).__name__
        raise UsageError(
            f"{role} must be one column with a value for each row, but got {shown}: give a list, "
            "a Series or an array of one dimension",
            rule="wrong-length",
            field=role,
        ) from None


def without_times(given: ArrayLike) -> ArrayLike:
    """Turn dates and durations into objects, because NumPy cannot hold them beside numbers."""
    if not isinstance(given, pd.DataFrame):
        return given
    times = given.select_dtypes(["datetime", "datetimetz", "timedelta"]).columns
    return given.astype(dict.fromkeys(times, object)) if len(times) else given


def as_array(y: ArrayLike) -> ArrayLike:
    """Turn nullable whole numbers and booleans of pandas into plain ones, if none is missing.

    scikit-learn would turn them into floats.
    """
    if not isinstance(y, pd.Series) or isinstance(y.dtype, np.dtype) or y.isna().any():
        return y
    whole = pd.api.types.is_integer_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype)
    return np.array(y.tolist()) if whole else y
