"""Scores a model on a test table whose target is known."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from foretune._base.arrays import Floats
from foretune._base.names import quote_names
from foretune.automl.final_model.model import Model
from foretune.automl.metrics import Predictions, scorer
from foretune.errors import UsageError
from foretune.tables import (
    RowWeights,
    Task,
    as_table,
    encode_classes,
    new_target_numbers,
    table_mark,
    target_of,
)


def scores_on(
    model: Model,
    frame: pd.DataFrame,
    metrics: Iterable[str],
    *,
    weighting: RowWeights | None = None,
) -> dict[str, float]:
    """Score a model on a table with a known target; rows without one are left out.

    weighting: the row weights in the table of the fit.
    """
    known, y = rows_with_target(
        frame,
        model.target,
        model.task,
        model.classes,
        decimal=model.target_decimal,
        weighting=weighting,
    )
    all_of_them = np.ones(len(known), dtype=np.bool_)
    counts = None if weighting is None else weighting.of_test(known, all_of_them)
    if model.task is Task.REGRESSION:
        given = Predictions(y, model.predict(known), weights=counts)
    else:
        certain = model.predict_proba(known)
        given = Predictions(y, model.choose_classes(certain), certain, counts)
    return {name: scorer(name, model.task).score(given) for name in metrics}


def rows_with_target(
    frame: pd.DataFrame,
    target: str,
    task: Task,
    classes: Sequence[str],
    *,
    decimal: str = "",
    weighting: RowWeights | None = None,
) -> tuple[pd.DataFrame, Floats]:
    """Return the rows of a test table whose target is known, and the target as numbers or codes.

    decimal: the decimal mark of the target in the table of the fit; used if this table shows none.
    weighting: the row weights in the table of the fit; here, rows of weight 0 are left out.
    """
    frame = as_table(frame)
    needs = {target: "to predict"}
    if weighting is not None:
        needs[weighting.column] = "of weights"
    for needed, what in needs.items():
        if needed not in frame.columns:
            raise UsageError(
                f"a test table must have the column {what}, but it has no '{needed}': add it, or "
                "leave the test table out",
                rule="missing-column",
                field=needed,
            )
    present = frame[target].notna().to_numpy(copy=True)
    if weighting is not None and present.any():
        present[present] = weighting.of_test(frame, present) > 0.0
    known = frame[present].reset_index(drop=True)
    if known.empty:
        raise UsageError(
            f"a test table needs rows with a known '{target}', but it has none: add them",
            rule="no-known-target",
            field=target,
        )
    mark = table_mark(frame, decimal)
    if task is Task.REGRESSION:
        return known, new_target_numbers(known[target], target, mark)
    column, _ = target_of(known[target], task, mark)
    codes, new = encode_classes(column, classes)
    if new:
        raise UsageError(
            f"a test table must have the classes of the table of the fit, but '{target}' has "
            f"{quote_names(new)} besides: leave those rows out",
            rule="unknown-class",
            field=target,
            value=list(new),
        )
    return known, codes
