"""Pipelines that fall apart when they learn from all rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.evaluation import Protocol
from foretune.automl.final_model.sanity_check import is_sound
from foretune.tables.table import Table


@dataclass
class Off:
    """A pipeline that errs by this much in every row."""

    by: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, 0] + self.by


@pytest.fixture(scope="module")
def table() -> Table:
    """The first column is the target."""
    y = np.random.default_rng(0).normal(size=50)
    y = (y - y.mean()) / y.std()
    return Table.of(pd.DataFrame({"x": y, "z": y[::-1], "y": y}), "y")


@pytest.mark.parametrize(
    ("by", "promised", "sound"),
    [
        (0.5, 0.6, True),
        (1.39, 0.6, True),
        (1.41, 0.6, False),
        (1e9, 0.6, False),
        (np.nan, 0.6, False),
        (1.09, 0.99, True),
        (1.11, 0.99, False),
        (1e9, 1.0, True),
        (1e9, 1.2, True),
    ],
)
def test_it_must_not_fall_as_far_below_a_guess_as_its_trial_was_above(
    table: Table, by: float, promised: float, sound: bool
) -> None:
    """A guess errs by 1: what promised 0.6 may err by 1.4, what promised 0.99 by 1.1.

    What was no better than a guess may err by anything.
    """
    member, protocol = Member({}, Off(by)), Protocol(("rmse",))
    assert is_sound(member, table, protocol, promised=promised, guessed=1.0) is sound


def test_scores_that_grow_are_turned_around(table: Table) -> None:
    """R² of what errs by two standard deviations is -3, and its trial was 0.9 above a guess."""
    spread, protocol = float(table.y.std()), Protocol(("r2",))
    near, far = Member({}, Off(1.3 * spread)), Member({}, Off(2.0 * spread))
    assert is_sound(near, table, protocol, promised=0.9, guessed=0.0)
    assert not is_sound(far, table, protocol, promised=0.9, guessed=0.0)
